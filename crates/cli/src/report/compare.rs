//! Two runs side by side: what the peak became, which groups made it so, and whether that is too much.

use std::collections::BTreeMap;

use lowtide_core::Bytes;
use lowtide_report::{Grouping, alive_at, group};
use serde::Serialize;

use super::{Arguments, Kind, data, html, wrote};
use crate::beside::Target;
use crate::console::Emphasis;
use crate::study::Study;
use crate::{Answer, Console, Failure, numbers, show};

/// How much a peak may rise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Tolerance {
    /// By so many hundredths of what it was.
    Percent(f64),
    /// By so many bytes.
    Bytes(Bytes),
}

impl Tolerance {
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(percent) = text.trim().strip_suffix('%') else {
            return numbers::size(text).map(Self::Bytes).map_err(|_| "write such as 2% or 64MiB".to_owned());
        };
        match percent.trim().parse() {
            Ok(percent) if (0.0..f64::INFINITY).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err("write a percentage from 0 on, such as 2%".to_owned()),
        }
    }

    /// Whether a rise from `before` to `after` is more than that.
    fn is_exceeded(self, before: Bytes, after: Bytes) -> bool {
        match self {
            Self::Percent(percent) => after.get() as f64 > before.get() as f64 * (1.0 + percent / 100.0),
            Self::Bytes(bytes) => after > before + bytes,
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Two runs in numbers. Amounts are bytes; fields are added, never removed.
#[derive(Debug, Serialize)]
struct Two {
    version: u64,
    before: data::One,
    after: data::One,
    /// What was alive at the peak of the second run, less that of the first.
    change: i64,
    /// The second peak as a multiple of the first; absent where the first is nothing.
    ratio: Option<f64>,
    /// Whether that is more than was allowed; absent where nothing was said.
    too_much: Option<bool>,
    groups: Vec<Difference>,
}

/// What a group holds at the two peaks.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    key: String,
    before: Bytes,
    after: Bytes,
}

impl Difference {
    fn change(&self) -> i64 {
        self.after.get() as i64 - self.before.get() as i64
    }
}

/// Rows of the table of differences.
const ROWS: usize = 12;

/// Letters of a group's name that fit into eighty columns.
const NAME: usize = 31;

pub(super) fn run(
    arguments: &Arguments,
    before: &Study,
    after: &Study,
    output: Option<&(Target, Kind)>,
    console: &mut Console,
) -> Result<Answer, Failure> {
    let by = arguments.by.map_or_else(|| Grouping::telling(&after.usage), Grouping::from);
    let too_much = arguments.fail_over.map(|tolerance| tolerance.is_exceeded(before.peak.live, after.peak.live));
    let two = Two {
        version: 1,
        change: after.peak.live.get() as i64 - before.peak.live.get() as i64,
        ratio: (before.peak.live > Bytes::ZERO).then(|| after.peak.live.ratio(before.peak.live)),
        too_much,
        groups: differences(before, after, by),
        before: data::One::new(before, by),
        after: data::One::new(after, by),
    };
    if arguments.view.is_json() {
        console.print_json(&two)?;
    } else {
        show(&two, by, arguments, console)?;
    }
    console.finish()?;
    if let Some((target, kind)) = output {
        match kind {
            Kind::Html => html::write(&[before, after], target)?,
            Kind::Json | Kind::Csv | Kind::CsvGz => data::write(&two, target)?,
        }
        console.say(wrote(target, *kind));
    }
    Ok(Answer::from_bool(too_much != Some(true)))
}

fn show(two: &Two, by: Grouping, arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let emphasis = if two.too_much == Some(true) { Emphasis::Bad } else { Emphasis::Strong };
    let ink = arguments.view.ink();
    let (before, after) = (two.before.live_peak, two.after.live_peak);
    for line in ink.headline(&[format!("peak {before} → {after}"), change(before, after)]) {
        let line = console.paint(emphasis, line);
        console.print(line)?;
    }
    let rows = [
        ("alive at most", Some(two.before.live_peak), Some(two.after.live_peak)),
        ("planned", two.before.plan.peak, two.after.plan.peak),
        ("reserved as recorded", two.before.reserved_peak, two.after.reserved_peak),
        ("without reuse", Some(two.before.plan.naive), Some(two.after.plan.naive)),
    ];
    for (what, before, after) in rows {
        if before.is_some() || after.is_some() {
            console.print(ink.written(&row(before, after, what)))?;
        }
    }
    console.print(format!("\nalive at the two peaks, by {}", by.name()))?;
    let (shown, rest) = two.groups.split_at(two.groups.len().min(ROWS));
    for difference in shown {
        let key = if difference.key.is_empty() { "(unknown)" } else { &difference.key };
        console.print(ink.written(&row(
            Some(difference.before),
            Some(difference.after),
            &show::name_within(key, NAME),
        )))?;
    }
    if !rest.is_empty() {
        let sum = |of: fn(&Difference) -> Bytes| Some(rest.iter().map(of).sum());
        let name = format!("+{} that changed less", show::thousands(rest.len()));
        console.print(ink.written(&row(sum(|rest| rest.before), sum(|rest| rest.after), &name)))?;
    }
    if let (Some(tolerance), Some(too_much)) = (arguments.fail_over, two.too_much) {
        let verdict = if too_much { "rose by more than" } else { "did not rise by more than" };
        console.print(format!("\nthe peak {verdict} {tolerance}"))?;
    }
    Ok(())
}

fn row(before: Option<Bytes>, after: Option<Bytes>, what: &str) -> String {
    let amount = |bytes: Option<Bytes>| bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    let change = match (before, after) {
        (Some(before), Some(after)) => change(before, after),
        _ => String::new(),
    };
    format!("  {:>10}  {:>10}  {change:>21}  {what}", amount(before), amount(after)).trim_end().to_owned()
}

/// `+412.0 MiB (+4.2%)`.
fn change(before: Bytes, after: Bytes) -> String {
    if before == after {
        return "no change".to_owned();
    }
    let (sign, amount) = if after > before { ('+', after - before) } else { ('−', before - after) };
    let percent = (before > Bytes::ZERO).then(|| format!(" ({sign}{:.1}%)", 100.0 * amount.ratio(before)));
    format!("{sign}{amount}{}", percent.unwrap_or_default())
}

/// Every group of either run, those first that changed most.
fn differences(before: &Study, after: &Study, by: Grouping) -> Vec<Difference> {
    let mut groups: BTreeMap<String, [Bytes; 2]> = BTreeMap::new();
    for (side, study) in [before, after].into_iter().enumerate() {
        for found in group(&study.usage, &alive_at(&study.usage, study.peak.time), by) {
            groups.entry(found.key).or_default()[side] = found.bytes;
        }
    }
    let mut differences: Vec<Difference> =
        groups.into_iter().map(|(key, [before, after])| Difference { key, before, after }).collect();
    differences
        .sort_by_key(|difference| (std::cmp::Reverse(difference.change().unsigned_abs()), difference.key.clone()));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_too_much_only_above_the_tolerance() {
        let bytes = Bytes::new;
        let two = Tolerance::parse("2%").unwrap();
        assert!(!two.is_exceeded(bytes(1000), bytes(1020)));
        assert!(two.is_exceeded(bytes(1000), bytes(1021)));
        assert!(!two.is_exceeded(bytes(1000), bytes(10)));
        let fixed = Tolerance::parse("1KiB").unwrap();
        assert!(!fixed.is_exceeded(bytes(0), bytes(1024)));
        assert!(fixed.is_exceeded(bytes(0), bytes(1025)));
        for text in ["-1%", "%", "nan%", "inf%", "two", "", "-5"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn changes_read_with_their_sign() {
        let of = |before, after| change(Bytes::new(before), Bytes::new(after));
        assert_eq!(of(1000, 1042), "+42 B (+4.2%)");
        assert_eq!(of(1000, 500), "−500 B (−50.0%)");
        assert_eq!(of(7, 7), "no change");
        assert_eq!(of(0, 7), "+7 B");
    }
}
