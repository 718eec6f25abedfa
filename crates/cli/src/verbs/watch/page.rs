//! What came of watching, as data: the object for scripts, and what the page is made of.

use lowtide_report::{Watched, WatchedAction, WatchedSeries, WatchedTrend, watched};
use serde::Serialize;

use super::actions::Action;
use super::judge::{Judgement, Reason, Verdict};
use super::outcome::{Outcome, Slope};
use crate::console::show;

/// What came of watching, in numbers. Amounts are bytes, times seconds; fields are added, never removed.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
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

/// The numbers, with what was seen over time or without.
pub(super) fn numbers(outcome: &Outcome, is_whole: bool) -> Numbers {
    let Outcome { what, observed, judgement, .. } = outcome;
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
        command: (!what.command.is_empty()).then(|| what.command.clone()),
        pid: what.pid,
        tree: what.is_tree,
        seconds: observed.seconds,
        interval: outcome.interval,
        samples: observed.series.samples,
        exit_code: outcome.code,
        stopped: observed.stopped,
        verdict: outcome.verdict(),
        over_time: OverTime {
            verdict: judgement.verdict,
            reason: judgement.reason,
            from: judgement.from,
            slope_per_minute: slope(judgement, 60.0),
        },
        leak_rate_per_minute: outcome.leak_rate * 60.0,
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

/// The page.
pub(super) fn page(outcome: &Outcome) -> String {
    let Outcome { what, observed, .. } = outcome;
    let title = match what.command.as_slice() {
        [] => format!("Memory of process {}", what.pid),
        words => format!("Memory of {}", show::name_within(&words.join(" "), 200)),
    };
    let actions: Vec<WatchedAction> = observed
        .actions
        .all()
        .iter()
        .map(|action| WatchedAction { name: action.name.clone(), peaks: peaks(action) })
        .collect();
    let marks: Vec<(f64, usize)> = observed.actions.marks().iter().map(|mark| (mark.at, mark.action)).collect();
    let mut notes = observed.notes.clone();
    if (marks.len() as u64) < observed.actions.count {
        let count = show::thousands(observed.actions.count as usize);
        notes.push(format!("{} of {count} marks are drawn", show::thousands(marks.len())));
    }
    let table = outcome.table();
    watched(&Watched {
        title: &title,
        verdict: outcome.verdict().words(),
        headline: &outcome.numbers_line(),
        lines: &[outcome.reason(), outcome.faults_line()],
        series: &series(outcome),
        actions: &actions,
        marks: &marks,
        trend: trend(outcome),
        table: &table,
        notes: &notes,
        generator: concat!("lowtide ", env!("CARGO_PKG_VERSION")),
    })
}

fn peaks(action: &Action) -> Vec<(f64, u64)> {
    action.repetitions().iter().map(|repetition| (repetition.at, repetition.peak)).collect()
}

fn after(action: &Action) -> Vec<(f64, u64)> {
    action.repetitions().iter().map(|repetition| (repetition.at, repetition.after)).collect()
}

fn series(outcome: &Outcome) -> WatchedSeries {
    let mut columns = WatchedSeries::default();
    for entry in outcome.observed.series.entries() {
        columns.time.push((f64::midpoint(entry.from, entry.to) * 1e4).round() / 1e4);
        columns.resident.push(entry.most.resident);
        columns.anonymous.push(entry.most.anonymous);
        columns.file.push(entry.most.file);
        columns.shared.push(entry.most.shared);
        columns.swapped.push(entry.most.swapped);
        columns.huge.push(entry.most.huge);
        columns.minor.push(entry.last.faults.minor);
        columns.major.push(entry.last.faults.major);
    }
    columns
}

/// The trend over time as a line through the middle of what was judged.
fn trend(outcome: &Outcome) -> Option<WatchedTrend> {
    let slope = outcome.judgement.trend?.slope;
    let from = outcome.judgement.from;
    let judged: Vec<_> = outcome.observed.series.own().into_iter().filter(|point| point.at >= from).collect();
    let to = judged.last()?.at;
    let mut levels: Vec<f64> = judged.iter().map(|point| point.value - slope * (point.at - from)).collect();
    levels.sort_unstable_by(f64::total_cmp);
    let level = *levels.get(levels.len() / 2)?;
    Some(WatchedTrend { from, to, level, slope })
}
