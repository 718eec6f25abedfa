//! One process for one number of everything, and what several of them come to.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::Failure;
use crate::verbs::bench::contestant::{Allocator, Contestant};
use crate::verbs::bench::paired::Ratio;
use crate::verbs::bench::process::{self, Served};
use crate::verbs::bench::spread::Spread;

/// What Python runs: the measuring of one workload, and the workloads.
const PROGRAMS: [(&str, &str); 2] = [
    ("one.py", include_str!("../../../../../../benches/host/one.py")),
    ("workloads.py", include_str!("../../../../../../benches/host/workloads.py")),
];

/// How a workload is run.
pub(super) struct Bench {
    python: OsString,
    folder: TempDir,
    steps: usize,
    warm_up: u64,
    threads: usize,
}

/// What one process measured of itself.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Sample {
    cpu_ms: f64,
    system_ms: f64,
    faults: f64,
    wall_ms: f64,
    peak_rss_bytes: f64,
    rss_bytes: f64,
    #[serde(skip)]
    lowtide: Option<Served>,
}

/// A workload on an allocator.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub workload: &'static str,
    pub allocator: &'static str,
    pub runs: usize,
    pub cpu_ms: Spread,
    pub system_ms: Spread,
    pub wall_ms: Spread,
    pub faults: Spread,
    pub peak_rss_bytes: Spread,
    pub rss_bytes: Spread,
    /// How Lowtide did in the last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowtide: Option<Served>,
    #[serde(skip)]
    samples: Vec<Sample>,
}

impl Bench {
    /// Writes the programs down for Python.
    pub fn new(python: OsString, steps: usize, warm_up: u64, threads: usize) -> Result<Self, Failure> {
        let failed = |error| Failure::access("<temporary folder>", "write", error);
        let folder = tempfile::tempdir().map_err(failed)?;
        for (name, text) in PROGRAMS {
            fs::write(folder.path().join(name), text).map_err(failed)?;
        }
        Ok(Self { python, folder, steps, warm_up, threads })
    }

    /// Measures once, or tells why that failed.
    pub fn run(&self, workload: &str, contestant: &Contestant) -> Result<Sample, String> {
        let threads = self.threads.to_string();
        let mut command = Command::new(&self.python);
        command
            .arg(self.folder.path().join("one.py"))
            .args([workload, "--steps", &self.steps.to_string(), "--warm-up", &self.warm_up.to_string()])
            .args(["--threads", &threads])
            .env("OMP_NUM_THREADS", &threads)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let (sample, lowtide) = process::run::<Sample>(&mut command, contestant)?;
        Ok(Sample { lowtide, ..sample })
    }
}

impl Row {
    /// Adds a sample to the row that it belongs to.
    pub fn add(rows: &mut Vec<Self>, workload: &'static str, allocator: &'static str, sample: Sample) {
        let place = rows.iter().position(|row| (row.workload, row.allocator) == (workload, allocator));
        let place = place.unwrap_or_else(|| {
            rows.push(Self::new(workload, allocator));
            rows.len() - 1
        });
        rows[place].samples.push(sample);
    }

    fn new(workload: &'static str, allocator: &'static str) -> Self {
        let none = Spread::default();
        Self {
            workload,
            allocator,
            runs: 0,
            cpu_ms: none,
            system_ms: none,
            wall_ms: none,
            faults: none,
            peak_rss_bytes: none,
            rss_bytes: none,
            lowtide: None,
            samples: Vec::new(),
        }
    }

    /// Makes numbers of the samples.
    pub fn add_up(&mut self) {
        let of = |number: fn(&Sample) -> f64| Spread::of(self.samples.iter().map(number).collect());
        self.cpu_ms = of(|sample| sample.cpu_ms);
        self.system_ms = of(|sample| sample.system_ms);
        self.wall_ms = of(|sample| sample.wall_ms);
        self.faults = of(|sample| sample.faults);
        self.peak_rss_bytes = of(|sample| sample.peak_rss_bytes);
        self.rss_bytes = of(|sample| sample.rss_bytes);
        self.runs = self.samples.len();
        self.lowtide = self.samples.last().and_then(|sample| sample.lowtide.clone());
    }
}

/// Lowtide beside another on a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Standing {
    pub workload: &'static str,
    pub allocator: &'static str,
    /// Whether nobody else took less time.
    pub is_best: bool,
    pub cpu: Ratio,
}

/// Lowtide beside each other on each workload that both have run twice.
pub(super) fn standing(rows: &[Row]) -> Vec<Standing> {
    let is_own = |row: &&Row| row.allocator == Allocator::Lowtide.name();
    let mut all = Vec::new();
    for own in rows.iter().filter(is_own) {
        let others: Vec<&Row> = rows.iter().filter(|row| row.workload == own.workload && !is_own(row)).collect();
        let best = others.iter().map(|row| row.cpu_ms.median).min_by(f64::total_cmp);
        for other in others {
            let pairs = own.samples.iter().zip(&other.samples).map(|(own, other)| (own.cpu_ms, other.cpu_ms));
            let Some(cpu) = Ratio::of(pairs) else { continue };
            let is_best = Some(other.cpu_ms.median) == best;
            all.push(Standing { workload: own.workload, allocator: other.allocator, is_best, cpu });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_come_with_this_one() {
        let bench = Bench::new("python3".into(), 1, 0, 1).unwrap();
        assert!(["one.py", "workloads.py"].iter().all(|name| bench.folder.path().join(name).is_file()));
    }

    #[test]
    fn samples_of_one_kind_are_one_row() {
        let sample = |cpu_ms| Sample {
            cpu_ms,
            system_ms: 0.0,
            faults: 2.0,
            wall_ms: 1.0,
            peak_rss_bytes: 1.0,
            rss_bytes: 1.0,
            lowtide: None,
        };
        let mut rows = Vec::new();
        for (allocator, cpu_ms) in [("a", 1.0), ("b", 5.0), ("a", 3.0)] {
            Row::add(&mut rows, "cnn", allocator, sample(cpu_ms));
        }
        rows.iter_mut().for_each(Row::add_up);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].runs, rows[0].cpu_ms.median), (2, 2.0));
    }
}
