//! `lowtide bench pool`: what Lowtide's arena wastes and asks of the driver on recorded runs, beside models of PyTorch's
//! allocators; how fast it serves, beside the system's own malloc; and how it goes with more threads.

mod curve;
mod latency;
mod plans;
mod program;
mod stepless;
mod text;
mod threads;
mod traces;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lowtide_core::Trace;
use lowtide_core::options::DATA;
use serde::Serialize;

use super::instances::{self, Instance};
use super::report::Skipped;
use super::{ending, processors};
use crate::arguments::view::View;
use crate::console::show;
use crate::input::recorded::Recorded;
use crate::input::source::Source;
use crate::planning::solving::was_interrupted;
use crate::{Answer, Console, Failure};

/// What to measure, and on which runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Recorded runs, and folders that are searched for them [default: gpu-traces in the folder `LOWTIDE_DATA`]
    #[arg(value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Measure only this; may be given several times
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Part>,
    #[command(flatten)]
    view: View,
}

const EXAMPLES: &str = "\
Examples:
  lowtide bench pool                        everything, on the runs of LOWTIDE_DATA
  lowtide bench pool trace.csv.gz           on a run of your own
  lowtide bench pool --only latency --json  how fast blocks are served, for a script";

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    /// Waste and driver calls on recorded runs
    Traces,
    /// Recorded runs with a plan and without, planning included
    Plans,
    /// The arena's waste against the driver calls that it may make
    Curve,
    /// Nanoseconds for a block on one thread
    Latency,
    /// Blocks a second with more and more threads
    Threads,
}

/// What `bench pool --format json` prints. Fields are added, never removed.
#[derive(Debug, Default, Serialize)]
struct Report {
    version: u64,
    processors: usize,
    traces: Vec<traces::Row>,
    plans: Vec<plans::Row>,
    curve: Vec<curve::Row>,
    latency: Vec<latency::Row>,
    threads: Vec<threads::Row>,
    skipped: Vec<Skipped>,
    interrupted: bool,
}

/// A recorded run with its name.
struct Run {
    label: String,
    trace: Trace,
}

/// Measures and tells.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let mut report = Report { version: 1, processors: processors(), ..Report::default() };
    let does = |part: Part| (arguments.only.is_empty() || arguments.only.contains(&part)) && !was_interrupted();
    let runs = if does(Part::Traces) || does(Part::Plans) || does(Part::Curve) {
        arguments.runs(&mut report.skipped, console)?
    } else {
        Vec::new()
    };
    if does(Part::Traces) {
        report.traces = traces::measure(&runs)?;
    }
    if does(Part::Plans) {
        report.plans = plans::measure(&runs)?;
    }
    if does(Part::Curve) {
        report.curve = curve::measure(&runs)?;
    }
    if does(Part::Latency) {
        report.latency = latency::measure()?;
    }
    if does(Part::Threads) {
        report.threads = threads::measure(report.processors)?;
    }
    report.interrupted = was_interrupted();
    ending::tell((&report, report.interrupted), text::lines, arguments.view, None, console)?;
    Ok(Answer::from_bool(!report.interrupted))
}

impl Arguments {
    /// The runs to measure on; what cannot be read is skipped loudly.
    fn runs(&self, skipped: &mut Vec<Skipped>, console: &mut Console) -> Result<Vec<Run>, Failure> {
        let paths = if self.paths.is_empty() { usual() } else { self.paths.clone() };
        if paths.is_empty() {
            let reason = "LOWTIDE_DATA names no folder with `gpu-traces`, and no run was given".to_owned();
            console.say(format!("skipped recorded runs: {reason}"));
            skipped.push(Skipped { name: "recorded runs".to_owned(), reason });
        }
        let mut runs = Vec::new();
        let before = skipped.len();
        for instance in instances::find(&paths)? {
            let Instance::File { path, label } = instance else { continue };
            match Recorded::read(&Source::File(path), console) {
                Ok(recorded) => runs.push(Run { label: short(&label), trace: recorded.trace }),
                Err(failure) => {
                    console.say(format!("skipped {failure}"));
                    skipped.push(Skipped { name: label, reason: failure.to_string() });
                }
            }
        }
        if runs.is_empty() && !self.paths.is_empty() {
            let files = show::counted(skipped.len() - before, "file");
            let hint = "give a trace or a PyTorch snapshot, or a folder with some";
            return Err(Failure::usage(format!("no recorded run was given; {files} skipped"), hint));
        }
        Ok(runs)
    }
}

/// The folder of recorded runs, where it is known.
fn usual() -> Vec<PathBuf> {
    let folder = std::env::var_os(DATA.variable()).map(|data| PathBuf::from(data).join("gpu-traces"));
    folder.filter(|folder| folder.is_dir()).into_iter().collect()
}

/// The file's name without folder and ending.
fn short(label: &str) -> String {
    let name = label.rsplit('/').next().unwrap_or(label);
    show::name(name.split('.').next().unwrap_or(name))
}
