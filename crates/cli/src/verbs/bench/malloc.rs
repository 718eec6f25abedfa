//! `lowtide bench malloc`: programs that do not repeat, under each allocator. Their threads replace blocks of random sizes,
//! which no plan can serve: the other side of `bench host`.

mod exchange;
mod measure;
mod program;
mod text;
mod work;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::contestant::{Allocator, Contestants};
use super::report::Skipped;
use super::{ending, processors, rounds};
use crate::arguments::numbers;
use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::options::HostFlags;
use crate::planning::solving::was_interrupted;
use crate::verbs::estimate;
use crate::{Answer, Console, Failure};
use measure::Row;
use program::{PROGRAMS, Program};

/// What to measure, and how often.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to run, by the numbers below [default: all]
    #[arg(long, value_name = "NUMBERS", value_parser = row, value_delimiter = ',', allow_negative_numbers = true)]
    rows: Vec<&'static Program>,
    /// On what to run it [default: glibc, jemalloc-default, tcmalloc, mimalloc, lowtide]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    allocators: Vec<Allocator>,
    /// Processes of each row and allocator
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "5", allow_negative_numbers = true)]
    runs: NonZeroUsize,
    /// Turns of each thread that are measured, after a tenth as many [default: as many as take about 0.3 s]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    turns: Option<NonZeroUsize>,
    /// Write x.json: the numbers
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Be the program of this row, and print what it took: how this command runs itself under an allocator
    #[arg(long, value_name = "NUMBER", value_parser = row, hide = true)]
    run_row: Option<&'static Program>,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    lowtide: HostFlags,
}

const EXAMPLES: &str = "\
Rows:
  1  1 thread, 33-41 KB, 20 blocks
  2  1 thread, 32-256 KiB, 200 blocks
  3  2 threads, 32-256 KiB, 200 blocks each
  4  2 threads, 32 KiB-1 MiB, 100 blocks each, each block freed by the other thread
  5  2 threads, 256 KiB-8 MiB, 40 blocks each
  6  8 threads, 32-256 KiB, 50 blocks each
  7  1 thread, 16 B-16 KiB, 1000 blocks: below the size that Lowtide serves

In each turn a thread frees a random one of its blocks, allocates one of a random
size, all magnitudes alike, and writes its first 256 bytes and its last.

Examples:
  lowtide bench malloc                              everything; takes a minute
  lowtide bench malloc --rows 1,3 --runs 1          a first look
  lowtide bench malloc --json -o malloc.json        for a script
  lowtide bench malloc --allocators lowtide,lowtide-no-learn

Host options are for Lowtide alone. Numbers are medians; the JSON has the lowest
and the highest too.";

/// Who is measured where nobody is named.
const USUAL: [Allocator; 5] =
    [Allocator::Glibc, Allocator::JemallocDefault, Allocator::Tcmalloc, Allocator::Mimalloc, Allocator::Lowtide];

/// What `bench malloc --format json` prints. Fields are added, never removed.
#[derive(Debug, Serialize)]
struct Report {
    version: u64,
    processors: usize,
    runs: usize,
    rows: Vec<Row>,
    missing: Vec<Skipped>,
    failed: Vec<Skipped>,
    /// Of what was asked for, and may not be what was wanted.
    warnings: Vec<String>,
    interrupted: bool,
}

/// Measures and tells.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    if let Some(program) = arguments.run_row {
        console.print_json(&work::measure(program, arguments.turns(program))?)?;
        return Ok(Answer::Yes);
    }
    let target = arguments.output.as_deref().map(|path| Target::new(path, &[])).transpose()?;
    let wanted = if arguments.allocators.is_empty() { &USUAL[..] } else { &arguments.allocators };
    let contestants = Contestants::find(wanted, &estimate::python(), &arguments.lowtide, console)?;
    let report = arguments.measure(contestants, console);
    ending::tell((&report, report.interrupted), text::lines, arguments.view, target.as_ref(), console)?;
    Ok(Answer::from_bool(!report.interrupted && report.failed.is_empty()))
}

/// A row by its number.
fn row(text: &str) -> Result<&'static Program, String> {
    let number = numbers::count(text).ok().map(NonZeroUsize::get);
    number
        .and_then(|number| PROGRAMS.get(number - 1))
        .ok_or_else(|| format!("write numbers of rows from 1 to {}, such as 1,3", PROGRAMS.len()))
}

impl Arguments {
    /// What to run, in the order of the table, each once.
    fn programs(&self) -> Vec<&'static Program> {
        let is_wanted = |program: &&Program| self.rows.is_empty() || self.rows.contains(program);
        PROGRAMS.iter().filter(is_wanted).collect()
    }

    fn turns(&self, program: &Program) -> usize {
        self.turns.map_or(program.turns, NonZeroUsize::get)
    }

    /// Runs everything, each allocator in turn, and again from the start.
    fn measure(&self, contestants: Contestants, console: &mut Console) -> Report {
        let Contestants { there, missing, warnings } = contestants;
        let programs = self.programs();
        let mut rows: Vec<Row> = programs
            .iter()
            .flat_map(|program| there.iter().map(|one| Row::new(program, one.name(), self.turns(program))))
            .collect();
        let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
        let mut failed = Vec::new();
        rounds::run((&names, 0..self.runs.get()), &there, &mut failed, console, |place, contestant| {
            let row = rows.iter_mut().find(|row| row.is_of(programs[place], contestant.name()));
            row.map_or(Ok(()), |row| row.measure(contestant))
        });
        rows.retain_mut(Row::add_up);
        Report {
            version: 1,
            processors: processors(),
            runs: self.runs.get(),
            rows,
            missing,
            failed,
            warnings,
            interrupted: was_interrupted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_every_row() {
        let lines: Vec<&str> = EXAMPLES.lines().skip(1).take(PROGRAMS.len()).collect();
        for (line, program) in lines.iter().zip(&PROGRAMS) {
            assert!(line.starts_with(&format!("  {}  {}", program.number, program.name)), "{line}");
        }
    }

    #[test]
    fn a_row_is_known_by_its_number() {
        for (place, program) in PROGRAMS.iter().enumerate() {
            assert_eq!(program.number, place + 1);
            assert_eq!(row(&program.number.to_string()), Ok(program));
        }
        for text in ["0", "8", "-1", "x", ""] {
            assert_eq!(row(text).unwrap_err(), "write numbers of rows from 1 to 7, such as 1,3", "{text}");
        }
    }
}
