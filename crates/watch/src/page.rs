//! An outcome as a page: what `report` draws.

use lowtide_report::{Watched, WatchedAction, WatchedSeries, WatchedTrend, name_within, thousands, watched};

use crate::{Action, Outcome};

impl Outcome {
    /// One HTML page with a chart.
    pub fn page(&self) -> String {
        page(self)
    }
}

fn page(outcome: &Outcome) -> String {
    let Outcome { subject, observed, .. } = outcome;
    let title = match subject.command.as_slice() {
        [] => format!("Memory of process {}", subject.pid),
        words => format!("Memory of {}", name_within(&words.join(" "), 200)),
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
        let count = thousands(observed.actions.count as usize);
        notes.push(format!("{} of {count} marks are drawn", thousands(marks.len())));
    }
    let table = outcome.table();
    watched(&Watched {
        title: &title,
        verdict: outcome.verdict().words(),
        headline: &outcome.headline(),
        lines: &[outcome.reason(), outcome.faults()],
        series: &series(outcome),
        actions: &actions,
        marks: &marks,
        trend: trend(outcome),
        table: &table,
        notes: &notes,
        generator: concat!("lowtide ", env!("CARGO_PKG_VERSION")),
    })
}

pub(crate) fn peaks(action: &Action) -> Vec<(f64, u64)> {
    action.repetitions().iter().map(|repetition| (repetition.at, repetition.peak)).collect()
}

pub(crate) fn series(outcome: &Outcome) -> WatchedSeries {
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
    let slope = outcome.over_time.trend?.slope;
    let from = outcome.over_time.from;
    let judged: Vec<_> = outcome.observed.series.own().into_iter().filter(|point| point.at >= from).collect();
    let to = judged.last()?.at;
    let mut levels: Vec<f64> = judged.iter().map(|point| point.value - slope * (point.at - from)).collect();
    levels.sort_unstable_by(f64::total_cmp);
    let level = *levels.get(levels.len() / 2)?;
    Some(WatchedTrend { from, to, level, slope })
}
