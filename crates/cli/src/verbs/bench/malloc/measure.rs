//! One process for one number of everything, and what several of them come to.

use std::env;
use std::process::Command;

use serde::Serialize;

use super::program::Program;
use super::work::Sample;
use crate::verbs::bench::contestant::Contestant;
use crate::verbs::bench::process::{self, Served};
use crate::verbs::bench::spread::Spread;

/// A program on an allocator.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    /// Of the program.
    #[serde(rename = "row")]
    pub number: usize,
    pub name: &'static str,
    pub threads: usize,
    /// Blocks of each thread.
    pub blocks: usize,
    pub smallest_bytes: u64,
    pub largest_bytes: u64,
    /// Turns of each thread.
    pub turns: usize,
    pub allocator: &'static str,
    pub runs: usize,
    /// For one turn of a thread, as faults are.
    pub cpu_ns: Spread,
    pub wall_ns: Spread,
    pub faults: Spread,
    pub peak_rss_bytes: Spread,
    /// How Lowtide did in the last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowtide: Option<Served>,
    #[serde(skip)]
    samples: Vec<Sample>,
}

impl Row {
    pub fn new(program: &Program, allocator: &'static str, turns: usize) -> Self {
        let none = Spread::default();
        Self {
            number: program.number,
            name: program.name,
            threads: program.threads,
            blocks: program.blocks,
            smallest_bytes: program.smallest,
            largest_bytes: program.largest,
            turns,
            allocator,
            runs: 0,
            cpu_ns: none,
            wall_ns: none,
            faults: none,
            peak_rss_bytes: none,
            lowtide: None,
            samples: Vec::new(),
        }
    }

    pub fn is_of(&self, program: &Program, allocator: &str) -> bool {
        (self.number, self.allocator) == (program.number, allocator)
    }

    /// Measures once more, or tells why that failed.
    pub fn measure(&mut self, contestant: &Contestant) -> Result<(), String> {
        let mut command = this_program().map_err(|error| format!("this program does not find itself: {error}"))?;
        let (row, turns) = (self.number.to_string(), self.turns.to_string());
        command.args(["bench", "malloc", "--run-row", &row, "--turns", &turns]);
        let (sample, lowtide) = process::run(&mut command, contestant)?;
        self.samples.push(sample);
        self.lowtide = lowtide;
        Ok(())
    }

    /// Makes numbers of the samples; whether there are any.
    pub fn add_up(&mut self) -> bool {
        let of = |number: fn(&Sample) -> f64| Spread::of(self.samples.iter().map(number).collect());
        self.cpu_ns = of(|sample| sample.cpu_ns);
        self.wall_ns = of(|sample| sample.wall_ns);
        self.faults = of(|sample| sample.faults);
        self.peak_rss_bytes = of(|sample| sample.peak_rss_bytes);
        self.runs = self.samples.len();
        self.runs > 0
    }
}

/// The `lowtide` binary, or the Python that has it as a module.
fn this_program() -> std::io::Result<Command> {
    let path = env::current_exe()?;
    let is_python = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
    let mut command = Command::new(path);
    if is_python {
        command.args(["-m", "lowtide"]);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::bench::malloc::program::PROGRAMS;

    #[test]
    fn a_row_without_samples_has_no_numbers() {
        let mut row = Row::new(&PROGRAMS[2], "glibc", 7);
        assert!(!row.add_up() && row.is_of(&PROGRAMS[2], "glibc") && !row.is_of(&PROGRAMS[1], "glibc"));
        let sample = |cpu_ns| Sample { cpu_ns, wall_ns: 1.0, faults: 0.0, peak_rss_bytes: 1.0 };
        row.samples = [5.0, 1.0, 3.0].map(sample).to_vec();
        assert!(row.add_up());
        assert_eq!((row.runs, row.cpu_ns), (3, Spread { median: 3.0, low: 1.0, high: 5.0 }));
    }
}
