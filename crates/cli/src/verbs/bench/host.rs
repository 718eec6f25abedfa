//! `lowtide bench host`: training and inference on the CPU under each allocator, interleaved in one run: processor time,
//! faults and memory of a step once it is steady.

mod measure;
mod text;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::contestant::{Allocator, Contestants};
use super::report::Skipped;
use super::{ending, processors, rounds};
use crate::arguments::numbers;
use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::console::show;
use crate::options::HostFlags;
use crate::planning::solving::was_interrupted;
use crate::verbs::estimate;
use crate::{Answer, Console, Failure};
use measure::{Bench, Row, Standing, standing};

/// What to measure, and how often.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to run [default: all]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Measure only what programs without large blocks pay; short for --workloads small
    #[arg(long, conflicts_with = "workloads")]
    small: bool,
    /// On what to run it [default: glibc, jemalloc, tcmalloc, mimalloc, lowtide]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    allocators: Vec<Allocator>,
    /// Processes of each workload and allocator
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "5", allow_negative_numbers = true)]
    runs: NonZeroUsize,
    /// Go on until Lowtide's ratio to the best of the others is known to so many percent, 95 times of 100; at most 100 runs
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent, allow_negative_numbers = true)]
    within: Option<f64>,
    /// Steps that are measured
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20", allow_negative_numbers = true)]
    steps: NonZeroUsize,
    /// Steps before those
    #[arg(long, value_name = "N", value_parser = numbers::whole, default_value = "20", allow_negative_numbers = true)]
    warm_up: u64,
    /// Threads that PyTorch uses
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1", allow_negative_numbers = true)]
    threads: NonZeroUsize,
    /// The Python that has PyTorch [default: the active environment's, or python3]
    #[arg(long, value_name = "PYTHON")]
    python: Option<OsString>,
    /// Write x.json: the numbers
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    lowtide: HostFlags,
}

const EXAMPLES: &str = "\
Examples:
  lowtide bench host                                      everything; takes an hour
  lowtide bench host --workloads cnn,gpt --runs 1         a first look
  lowtide bench host --small                              what other programs pay
  lowtide bench host --threads 2 --json -o host.json      for a script
  lowtide bench host --workloads cnn --within 2           until it is known to 2%
  lowtide bench host --allocators jemalloc,jemalloc-decaying,glibc

Host options are for Lowtide alone. Times are medians, with the lowest and the
highest of all runs.";

/// Who is measured where nobody is named.
const USUAL: [Allocator; 5] =
    [Allocator::Glibc, Allocator::Jemalloc, Allocator::Tcmalloc, Allocator::Mimalloc, Allocator::Lowtide];

/// However wide an interval stays, so many runs are enough.
const MOST: usize = 100;

/// Something that is done over and over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Workload {
    /// Element-wise operations on large tensors, bound by memory
    Eltwise,
    /// A small residual network is trained
    Cnn,
    /// A recommender is trained on batches of changing size
    #[value(name = "dlrm_var")]
    DlrmVar,
    /// A small transformer is trained
    Gpt,
    /// A transformer reads sequences of changing length
    Infer,
    /// A small U-Net is trained on images of any size
    #[value(name = "unet_sizes")]
    UnetSizes,
    /// An encoder is trained on texts of any length
    #[value(name = "bert_lengths")]
    BertLengths,
    /// A convolutional network reads images
    #[value(name = "cnn_infer")]
    CnnInfer,
    /// A transformer continues texts with a cache that grows
    Generate,
    /// Python without large blocks, and without PyTorch
    Small,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Eltwise => "eltwise",
            Self::Cnn => "cnn",
            Self::DlrmVar => "dlrm_var",
            Self::Gpt => "gpt",
            Self::Infer => "infer",
            Self::UnetSizes => "unet_sizes",
            Self::BertLengths => "bert_lengths",
            Self::CnnInfer => "cnn_infer",
            Self::Generate => "generate",
            Self::Small => "small",
        }
    }
}

/// What `bench host --format json` prints. Times are milliseconds a step; fields are added, never removed.
#[derive(Debug, Serialize)]
struct Report {
    version: u64,
    processors: usize,
    python: String,
    threads: usize,
    runs: usize,
    warm_up: u64,
    steps: usize,
    rows: Vec<Row>,
    /// Lowtide's CPU time to that of each other, round by round.
    ratios: Vec<Standing>,
    missing: Vec<Skipped>,
    failed: Vec<Skipped>,
    /// Of what was asked for, and may not be what was wanted.
    warnings: Vec<String>,
    interrupted: bool,
}

/// Measures and tells.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let target = arguments.output.as_deref().map(|path| Target::new(path, &[])).transpose()?;
    let python = arguments.python.clone().unwrap_or_else(estimate::python);
    check(&python, arguments.workloads().iter().any(|workload| *workload != Workload::Small))?;
    let wanted = if arguments.allocators.is_empty() { &USUAL[..] } else { &arguments.allocators };
    let contestants = Contestants::find(wanted, &python, &arguments.lowtide, console)?;
    let report = arguments.measure(&python, contestants, console)?;
    ending::tell((&report, report.interrupted), text::lines, arguments.view, target.as_ref(), console)?;
    Ok(Answer::from_bool(!report.interrupted && report.failed.is_empty()))
}

impl Arguments {
    fn workloads(&self) -> Vec<Workload> {
        match (self.small, &self.workloads[..]) {
            (true, _) => vec![Workload::Small],
            (false, []) => Workload::value_variants().to_vec(),
            (false, named) => named.to_vec(),
        }
    }

    /// Whether after so many rounds the ratio of each workload is known as well as was asked for, or there is none.
    fn is_enough(&self, rounds: usize, ratios: &[Standing]) -> bool {
        let Some(percent) = self.within else { return true };
        let is_known = |standing: &Standing| !standing.is_best || standing.cpu.reach() <= percent / 100.0;
        rounds > 1 && ratios.iter().all(is_known)
    }

    /// Runs everything, each allocator in turn, and again from the start.
    fn measure(
        &self,
        python: &OsString,
        Contestants { there: contestants, missing, warnings }: Contestants,
        console: &mut Console,
    ) -> Result<Report, Failure> {
        let workloads = self.workloads();
        let bench = Bench::new(python.clone(), self.steps.get(), self.warm_up, self.threads.get())?;
        let mut rows: Vec<Row> = Vec::new();
        let names: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
        let mut failed = Vec::new();
        let mut rounds = 0..self.runs.get();
        let ratios = loop {
            rounds::run((&names, rounds.clone()), &contestants, &mut failed, console, |place, contestant| {
                let workload = workloads[place].name();
                let sample = bench.run(workload, contestant)?;
                Row::add(&mut rows, workload, contestant.name(), sample);
                Ok(())
            });
            rows.iter_mut().for_each(Row::add_up);
            let ratios = standing(&rows);
            if was_interrupted() || rounds.end >= MOST || self.is_enough(rounds.end, &ratios) {
                break ratios;
            }
            rounds = rounds.end..rounds.end + 1;
        };
        let order = |row: &Row| {
            let workload = workloads.iter().position(|workload| workload.name() == row.workload);
            (workload, contestants.iter().position(|contestant| contestant.name() == row.allocator))
        };
        rows.sort_by_key(order);
        Ok(Report {
            version: 1,
            processors: processors(),
            python: python.to_string_lossy().into_owned(),
            threads: self.threads.get(),
            runs: rounds.end,
            warm_up: self.warm_up,
            steps: self.steps.get(),
            rows,
            ratios,
            missing,
            failed,
            warnings,
            interrupted: was_interrupted(),
        })
    }
}

/// Whether `python` is one, and has PyTorch where that is needed.
fn check(python: &OsString, needs_torch: bool) -> Result<(), Failure> {
    const ASK: &str = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('torch') else 3)";
    let shown = show::path(Path::new(python));
    let hint = "name one that has PyTorch: `--python PYTHON`; or install it: pip install torch";
    let answer = Command::new(python).args(["-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    match answer.map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(3)) if !needs_torch => Ok(()),
        Ok(Some(3)) => Err(Failure::usage(format!("{shown} has no torch"), hint)),
        Ok(_) => Err(Failure::usage(format!("{shown} is no Python"), hint)),
        Err(error) => Err(Failure::usage(format!("cannot run {shown}: {error}"), hint)),
    }
}
