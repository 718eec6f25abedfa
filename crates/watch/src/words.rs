//! An outcome in words, for a terminal and for the page alike: the headline, the reason, the faults, and the table of
//! actions.

use lowtide_core::Bytes;
use lowtide_report::{seconds, thousands};

use crate::{Judgement, Observed, Outcome, Reason, Trend, Verdict};

impl Outcome {
    /// The numbers that matter, behind the verdict.
    pub fn headline(&self) -> String {
        let peak = match self.observed.peak {
            0 => "ended before the first sample".to_owned(),
            peak if self.observed.is_exact() => format!("peak {}", Bytes::new(peak)),
            peak => format!("peak at least {}", Bytes::new(peak)),
        };
        let last = self.observed.series.entries().last().map(|entry| Bytes::new(entry.last.total()));
        let last = last.map(|last| format!(" · {last} at the end")).unwrap_or_default();
        format!("{peak}{last} · {}", seconds(self.observed.seconds))
    }

    /// Page faults, and how many processes there were.
    pub fn faults(&self) -> String {
        let Observed { seconds, faults, processes, .. } = self.observed;
        let rate = match seconds {
            1.0.. => format!(" ({} a second)", thousands((faults.minor as f64 / seconds).round() as usize)),
            _ => String::new(),
        };
        let several = if processes > 1 { format!(" · {processes} processes at most") } else { String::new() };
        let [minor, major] = [faults.minor, faults.major].map(|count| thousands(count as usize));
        format!("faults: {minor} minor{rate}, {major} major{several}")
    }

    /// Why the verdict is what it is.
    pub fn reason(&self) -> String {
        let Judgement { reason, trend, from, .. } = &self.over_time;
        let over_time = trend.map(|trend| {
            let length = seconds((self.observed.seconds - from).max(0.0));
            format!("{} over the last {length}", per_minute(&trend))
        });
        let of_action = match self.deciding() {
            None => None,
            Some((_, judgement)) if judgement.verdict == Verdict::Stable => Some("no action grows for good".to_owned()),
            Some((action, judgement)) => Some(format!("`{}`: {}", action.name, judgement.reason.words())),
        };
        match (of_action, over_time) {
            (Some(of_action), Some(over_time)) => format!("{of_action} · all in all {over_time}"),
            (Some(of_action), None) => of_action,
            (None, Some(over_time)) => format!("{over_time}: {}", reason.words()),
            (None, None) => reason.words().to_owned(),
        }
    }

    /// The actions in numbers: the names of the columns, then a row each.
    pub fn table(&self) -> Vec<Vec<String>> {
        let head = ["action", "count", "peak min", "median", "max", "growth each", "RSS after", "verdict"]
            .map(str::to_owned)
            .to_vec();
        let rows = self.observed.actions.all().iter().zip(&self.actions).map(|(action, judgement)| {
            let growth = judgement.trend.map_or_else(|| "-".to_owned(), |trend| amount(trend.slope));
            let verdict = in_words(judgement);
            let peaks = [action.lowest, action.median(), action.highest].map(|peak| Bytes::new(peak).to_string());
            let mut row = vec![action.name.clone(), thousands(action.count as usize)];
            row.extend(peaks);
            row.extend([growth, Bytes::new(action.median_after()).to_string(), verdict]);
            row
        });
        std::iter::once(head).chain(rows).collect()
    }
}

/// A verdict on an action with how sure it is, or else with its reason.
fn in_words(judgement: &Judgement) -> String {
    let Judgement { verdict, reason, trend, .. } = judgement;
    match judgement.confidence() {
        _ if *reason == Reason::TooShort || trend.is_none() => "too few".to_owned(),
        Some(confidence) => format!("{}, {}", verdict.words(), percent(confidence)),
        None => format!("{}: {}", verdict.words(), reason.words()),
    }
}

/// `+1.2 MiB`.
fn amount(bytes: f64) -> String {
    let sign = if bytes < 0.0 { '−' } else { '+' };
    format!("{sign}{}", Bytes::new(bytes.abs().round() as u64))
}

/// `+1.2 MiB/min (95%: +1.1 MiB to +1.3 MiB)`.
fn per_minute(trend: &Trend) -> String {
    let [slope, low, high] = [trend.slope, trend.low, trend.high].map(|rate| amount(rate * 60.0));
    if slope == low && slope == high {
        return format!("{slope}/min");
    }
    format!("{slope}/min (95%: {low} to {high})")
}

/// `97%`, `99.9%`.
fn percent(share: f64) -> String {
    if share >= 0.995 { format!("{:.1}%", share * 100.0) } else { format!("{:.0}%", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: Trend = Trend { slope: 0.0, low: 0.0, high: 0.0, confidence: 0.5, is_above: false, surely: 0.0 };

    #[test]
    fn slopes_are_shown_by_the_minute() {
        let trend = Trend { slope: 1_048_576.0 / 60.0, low: -1024.0 / 60.0, high: 2048.0, confidence: 0.9, ..FLAT };
        assert_eq!(per_minute(&trend), "+1.0 MiB/min (95%: −1.0 KiB to +120.0 KiB)");
        assert_eq!(per_minute(&FLAT), "+0 B/min");
        assert_eq!([percent(0.5), percent(0.97), percent(0.999)], ["50%", "97%", "99.9%"]);
    }

    #[test]
    fn a_confidence_is_shown_where_the_verdict_lies_in_it() {
        let words = |verdict, reason, is_above| {
            let trend = Some(Trend { confidence: 0.97, is_above, ..FLAT });
            in_words(&Judgement { verdict, reason, trend, from: 0.0 })
        };
        assert_eq!(words(Verdict::Leaking, Reason::Grows, true), "leaking, 97%");
        assert_eq!(words(Verdict::Stable, Reason::Flat, false), "stable, 97%");
        assert_eq!(words(Verdict::Stable, Reason::Flat, true), "stable: no growth for good was found");
        let back = "stable: it was as high before and came back";
        assert_eq!(words(Verdict::Stable, Reason::GivesBack, true), back);
        assert_eq!(words(Verdict::Warming, Reason::Bends, true), "still warming: it grows slower and slower");
        assert_eq!(words(Verdict::Warming, Reason::TooShort, true), "too few");
    }
}
