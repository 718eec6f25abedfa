//! A benchmark in numbers: a row per instance, what was skipped, and what it comes to. The table and the JSON are
//! two views of it.

use lowtide_core::Bytes;
use lowtide_plan::Stopped;
use serde::Serialize;

use super::rival::Attempt;
use crate::console::show;
use crate::verbs::plan::Summary;

/// What `bench plan --format json` prints. Amounts are bytes; fields are added, never removed.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(super) struct Report {
    pub version: u64,
    pub instances: Vec<Row>,
    pub skipped: Vec<Skipped>,
    pub rivals_skipped: Vec<Skipped>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// What was not planned because of that.
    pub not_planned: Vec<String>,
    pub totals: Totals,
}

/// One instance: what `plan` says of it, and who else tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub file: String,
    #[serde(skip)]
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    #[serde(flatten)]
    pub summary: Summary,
    pub cpu_seconds: Option<f64>,
    /// The most memory that the process has had by then; for made problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Bytes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Attempt>,
}

/// What was not measured, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Skipped {
    pub name: String,
    pub reason: String,
}

/// What it comes to.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(super) struct Totals {
    pub instances: usize,
    pub skipped: usize,
    pub ratio_geometric_mean: Option<f64>,
    pub proved: usize,
    pub fit: usize,
    pub cpu_seconds: f64,
    pub seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalTotals>,
}

/// What a rival comes to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct RivalTotals {
    pub name: String,
    /// Instances with a valid plan of it.
    pub planned: usize,
    /// Over those instances only.
    pub ratio_geometric_mean: Option<f64>,
    pub cpu_seconds: f64,
}

impl Report {
    /// Adds up the rows; `rivals` are the names of those that ran.
    pub fn add_up(&mut self, rivals: &[String]) {
        let rows = &self.instances;
        self.version = 1;
        self.totals = Totals {
            instances: rows.len(),
            skipped: self.skipped.len(),
            ratio_geometric_mean: geometric_mean(rows.iter().filter_map(|row| row.summary.ratio)),
            proved: rows.iter().filter(|row| row.summary.proved).count(),
            fit: rows.iter().filter(|row| row.fits()).count(),
            cpu_seconds: rows.iter().filter_map(|row| row.cpu_seconds).sum(),
            seconds: rows.iter().map(|row| row.summary.seconds).sum(),
            rivals: rivals.iter().map(|name| self.rival_totals(name)).collect(),
        };
    }

    /// That it was interrupted, and what is missing because of that.
    pub fn interruption(&self) -> String {
        let cut = self.instances.last().filter(|row| row.summary.stopped == Stopped::Cancelled.name());
        let cut = cut.map(|row| format!("{} was cut short", row.label));
        let missing = (!self.not_planned.is_empty()).then(|| self.not_planned_line());
        let parts: Vec<String> = [cut, missing].into_iter().flatten().collect();
        if parts.is_empty() {
            "interrupted: nothing is missing".to_owned()
        } else {
            format!("interrupted: {}", parts.join("; "))
        }
    }

    /// `not planned: 2 (b.csv, c.csv)`.
    pub fn not_planned_line(&self) -> String {
        let names: Vec<_> = self.not_planned.iter().map(|name| show::escaped(name)).collect();
        format!("not planned: {} ({})", names.len(), names.join(", "))
    }

    fn rival_totals(&self, name: &str) -> RivalTotals {
        let attempts = || self.instances.iter().filter_map(|row| row.attempt(name));
        RivalTotals {
            name: name.to_owned(),
            planned: attempts().filter(|attempt| attempt.peak.is_some()).count(),
            ratio_geometric_mean: geometric_mean(attempts().filter_map(|attempt| attempt.ratio)),
            cpu_seconds: attempts().filter_map(|attempt| attempt.cpu_seconds).sum(),
        }
    }
}

impl Row {
    pub fn fits(&self) -> bool {
        self.summary.fits == Some(true)
    }

    /// What the rival called `name` made of it.
    pub fn attempt(&self, name: &str) -> Option<&Attempt> {
        self.rivals.iter().find(|attempt| attempt.name == name)
    }
}

/// `None` where there is nothing to average.
fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values.filter(|value| value.is_finite() && *value > 0.0) {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_ratios_is_geometric() {
        assert_eq!(geometric_mean([1.0, 1.0].into_iter()), Some(1.0));
        assert!((geometric_mean([1.0, 4.0].into_iter()).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean([f64::INFINITY].into_iter()), None);
    }
}
