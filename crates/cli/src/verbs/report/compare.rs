//! Two runs side by side: what the peak became, which groups made it so, and whether that is too much.

use lowtide_core::Bytes;
use lowtide_report::{Difference, Grouping, differences};
use serde::Serialize;

use super::{Arguments, Kind, data, html, wrote};
use crate::arguments::numbers;
use crate::atomic_file::Target;
use crate::console::Emphasis;
use crate::console::show;
use crate::planning::study::Study;
use crate::{Answer, Console, Failure};

/// How much a peak may rise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Tolerance {
    /// By so many millionths of a hundredth of what it was.
    Millionths(u64),
    /// By so many bytes.
    Bytes(Bytes),
}

impl Tolerance {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some(percent) = text.strip_suffix('%') else {
            if text.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err("write a unit: such as 2% or 64MiB".to_owned());
            }
            return numbers::size(text).map(Self::Bytes).map_err(|_| "write such as 2% or 64MiB".to_owned());
        };
        match percent.trim().parse::<f64>() {
            Ok(percent) if (0.0..1e9).contains(&percent) => Ok(Self::Millionths((percent * 1e6).round() as u64)),
            _ => Err("write a percentage from 0 on, such as 2%".to_owned()),
        }
    }

    /// Whether a rise from `before` to `after` is more than that.
    fn is_exceeded(self, before: Bytes, after: Bytes) -> bool {
        match self {
            // In whole bytes: a rise of exactly so much is allowed, whatever the decimals.
            Self::Millionths(millionths) => {
                let rise = after.saturating_sub(before).get();
                u128::from(rise) * 100_000_000 > u128::from(before.get()) * u128::from(millionths)
            }
            Self::Bytes(bytes) => after.saturating_sub(before) > bytes,
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Millionths(millionths) => write!(f, "{}%", *millionths as f64 / 1e6),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Two runs in numbers. Amounts are bytes; fields are added, never removed.
#[derive(Debug, Serialize)]
struct Two {
    kind: &'static str,
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
    let too_much = arguments.fail_over.map(|tolerance| tolerance.is_exceeded(before.peak().live, after.peak().live));
    let two = Two {
        kind: "comparison",
        version: 1,
        change: after.peak().live.get() as i64 - before.peak().live.get() as i64,
        ratio: (before.peak().live > Bytes::ZERO).then(|| after.peak().live.ratio(before.peak().live)),
        too_much,
        groups: differences(at_peak(before), at_peak(after), by),
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
            Kind::Html => html::write(&[before, after], &two.groups, target)?,
            Kind::Json | Kind::Csv | Kind::CsvGz => data::write(&two, target)?,
        }
        console.say(wrote(target, *kind, 2));
    }
    Ok(Answer::from_bool(too_much != Some(true)))
}

fn show(two: &Two, by: Grouping, arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let emphasis = if two.too_much == Some(true) { Emphasis::Bad } else { Emphasis::Strong };
    let sheet = arguments.view.sheet();
    let (before, after) = (two.before.live_peak, two.after.live_peak);
    console.print(sheet.written(&format!("{} → {}", show::name(&two.before.name), show::name(&two.after.name))))?;
    for line in sheet.headline(&[format!("peak {before} → {after}"), change(before, after)]) {
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
            console.print(sheet.written(&row(before, after, what)))?;
        }
    }
    console.print(format!("\nalive at the two peaks, by {}", by.name()))?;
    let (shown, rest) = two.groups.split_at(two.groups.len().min(ROWS));
    for difference in shown {
        let key = if difference.key.is_empty() { "(unknown)" } else { &difference.key };
        console.print(sheet.written(&row(
            Some(difference.before),
            Some(difference.after),
            &show::name_within(key, NAME),
        )))?;
    }
    if !rest.is_empty() {
        let sum = |of: fn(&Difference) -> Bytes| Some(rest.iter().map(of).sum());
        let name = format!("+{} that changed less", show::thousands(rest.len()));
        console.print(sheet.written(&row(sum(|rest| rest.before), sum(|rest| rest.after), &name)))?;
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

/// What is explained of a run, and the event of its peak.
fn at_peak(study: &Study) -> (&lowtide_core::Usage, i64) {
    (study.explained().0, study.peak().time)
}

fn change(before: Bytes, after: Bytes) -> String {
    Difference { key: String::new(), before, after }.change()
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
        let tenth = Tolerance::parse("0.1%").unwrap();
        assert!(!tenth.is_exceeded(bytes(1000), bytes(1001)) && tenth.is_exceeded(bytes(1000), bytes(1002)));
        let fixed = Tolerance::parse("1KiB").unwrap();
        assert!(!fixed.is_exceeded(bytes(0), bytes(1024)));
        assert!(fixed.is_exceeded(bytes(0), bytes(1025)));
        for text in ["-1%", "%", "nan%", "inf%", "two", "", "-5", "2"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }
}
