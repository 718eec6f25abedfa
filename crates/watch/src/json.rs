//! An outcome as one object for scripts. Amounts are bytes, times seconds; fields are added, never removed.

use lowtide_report::WatchedSeries;
use serde::Serialize;

use crate::page::{peaks, series};
use crate::{Action, Judgement, Outcome, Reason, Trend, Verdict};

/// What came of watching, in numbers. Amounts are bytes, times seconds; fields are added, never removed.
#[derive(Debug, Serialize)]
pub struct Numbers {
    version: u32,
    /// Nothing where a process was watched that ran already.
    command: Option<Vec<String>>,
    pid: i32,
    tree: bool,
    seconds: f64,
    interval: f64,
    samples: u64,
    /// How the program ended; nothing where none was started.
    exit_code: Option<u8>,
    /// Whether watching ended before what was watched.
    stopped: bool,
    verdict: Verdict,
    over_time: OverTime,
    leak_rate_per_minute: f64,
    peak: u64,
    /// Whether the peak was measured, or is the highest of what was seen.
    peak_is_exact: bool,
    minor_faults: u64,
    major_faults: u64,
    processes: usize,
    actions: Vec<ActionNumbers>,
    marks: u64,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<WatchedSeries>,
}

/// The judgement over time; slopes in bytes per minute.
#[derive(Debug, Serialize)]
struct OverTime {
    verdict: Verdict,
    reason: Reason,
    /// From which second on it was judged.
    from: f64,
    slope_per_minute: Option<Slope>,
}

/// An action; slopes in bytes per repetition.
#[derive(Debug, Serialize)]
struct ActionNumbers {
    name: String,
    count: u64,
    peak_min: u64,
    peak_median: u64,
    peak_max: u64,
    growth_each: Option<Slope>,
    /// What was resident when it ended.
    resident_after_median: u64,
    verdict: Verdict,
    reason: Reason,
    /// When a repetition ended, and its peak; of many the highest of every few. Only in files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    peaks: Vec<(f64, u64)>,
    /// The same of what was resident when it ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resident_after: Vec<(f64, u64)>,
}

impl Outcome {
    /// Everything in numbers, with the samples over time and every repetition.
    pub fn whole_numbers(&self) -> Numbers {
        numbers(self, true)
    }

    /// The numbers without what was sampled over time.
    pub fn numbers(&self) -> Numbers {
        numbers(self, false)
    }
}

fn numbers(outcome: &Outcome, is_whole: bool) -> Numbers {
    let Outcome { subject, rules, observed, over_time, .. } = outcome;
    let slope = |judgement: &Judgement, unit| judgement.trend.map(|trend| Slope::of(&trend, unit));
    let action = |(action, judgement): (&Action, &Judgement)| ActionNumbers {
        name: action.name.clone(),
        count: action.count,
        peak_min: action.lowest,
        peak_median: action.median(),
        peak_max: action.highest,
        growth_each: slope(judgement, 1.0),
        resident_after_median: action.median_after(),
        verdict: judgement.verdict,
        reason: judgement.reason,
        peaks: if is_whole { peaks(action) } else { Vec::new() },
        resident_after: if is_whole { after(action) } else { Vec::new() },
    };
    Numbers {
        version: 1,
        command: (!subject.command.is_empty()).then(|| subject.command.clone()),
        pid: subject.pid,
        tree: subject.is_tree,
        seconds: observed.seconds,
        interval: subject.interval.as_secs_f64(),
        samples: observed.series.samples,
        exit_code: outcome.exit_code,
        stopped: observed.stopped,
        verdict: outcome.verdict(),
        over_time: OverTime {
            verdict: over_time.verdict,
            reason: over_time.reason,
            from: over_time.from,
            slope_per_minute: slope(over_time, 60.0),
        },
        leak_rate_per_minute: rules.leak_rate.get() as f64,
        peak: observed.peak,
        peak_is_exact: observed.is_exact(),
        minor_faults: observed.faults.minor,
        major_faults: observed.faults.major,
        processes: observed.processes,
        actions: observed.actions.all().iter().zip(&outcome.actions).map(action).collect(),
        marks: observed.actions.count,
        notes: observed.notes.clone(),
        series: is_whole.then(|| series(outcome)),
    }
}

/// A trend in numbers.
#[derive(Debug, Serialize)]
struct Slope {
    bytes: f64,
    low: f64,
    high: f64,
    /// How sure it is that the slope lies on its side of the leak rate.
    confidence: f64,
    /// Which side that is.
    above_leak_rate: bool,
}

impl Slope {
    /// In bytes per `unit` of what the trend is over.
    fn of(trend: &Trend, unit: f64) -> Self {
        let Trend { slope, low, high, confidence, is_above, .. } = *trend;
        Self { bytes: slope * unit, low: low * unit, high: high * unit, confidence, above_leak_rate: is_above }
    }
}

fn after(action: &Action) -> Vec<(f64, u64)> {
    action.repetitions().iter().map(|repetition| (repetition.at, repetition.after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_says_on_which_side_of_the_leak_rate_it_lies() {
        let trend = Trend { slope: 2.0, low: 1.0, high: 3.0, confidence: 0.9, is_above: true, surely: 0.5 };
        let slope = Slope::of(&trend, 60.0);
        assert_eq!([slope.bytes, slope.low, slope.high].map(|bytes| bytes as u64), [120, 60, 180]);
        assert!(slope.above_leak_rate && !Slope::of(&Trend { is_above: false, ..trend }, 1.0).above_leak_rate);
    }
}
