//! `lowtide run`: runs a program whose memory Lowtide serves, without a change to it, and tells at the end how that went.

pub(crate) mod below;
mod compare;
pub(crate) mod conf;
pub(crate) mod host;
mod huge;
pub(crate) mod library;
mod nodes;
mod rounds;
pub(crate) mod summary;
mod text;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lowtide_core::Bytes;
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::beside::Target;
use crate::child::{Ended, Program, injection};
use crate::{Answer, Console, Failure, show};
use compare::{Comparison, Used};
use host::Surroundings;
use rounds::Compared;
use summary::Summaries;

/// What to run, and what to serve.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// Serve the large blocks of any program on the host; the default
    #[arg(long)]
    host: bool,
    /// Serve PyTorch's tensors on CUDA devices
    #[arg(long)]
    device: bool,
    /// Serve PyTorch's large tensors on the CPU, and nothing else of the program
    #[arg(long, conflicts_with = "host")]
    cpu: bool,
    /// Serve PyTorch's pinned memory at its exact size
    #[arg(long)]
    pinned: bool,
    /// The most that is taken of each device: bytes, or such as 40GiB
    #[arg(long, value_name = "SIZE", value_parser = crate::numbers::size, requires = "device", allow_negative_numbers = true)]
    limit: Option<Bytes>,
    /// End the program where Lowtide cannot serve it, instead of going on without
    #[arg(long)]
    strict: bool,
    /// Run it without Lowtide first, and show both side by side
    #[arg(long)]
    compare: bool,
    /// How often to compare, by turns without Lowtide first and with it first; shows medians [default: 1]
    #[arg(long, value_name = "N", value_parser = crate::numbers::count, requires = "compare", allow_negative_numbers = true)]
    rounds: Option<NonZeroUsize>,
    /// Say nothing at the end
    #[arg(short, long)]
    quiet: bool,
    /// Write x.json: what every process did
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    host_memory: host::HostArguments,
    #[command(flatten)]
    nodes: nodes::NodeArguments,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  lowtide run -- python train.py                           memory of the host
  lowtide run --compare -- python train.py                 with and without
  lowtide run --compare --rounds 5 -- python train.py      by turns, and medians
  lowtide run --pages 2M --cpu-node 0 --mem-node 0 -- ./a  huge pages, one socket
  lowtide run --device -- python train.py                  tensors on CUDA devices
  lowtide run --device --limit 40GiB -- python train.py    on a part of each device

The exit code is the program's.";

/// Runs the program.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let target = arguments.output.as_deref().map(|path| Target::new(path, &[])).transpose()?;
    let prepared = Prepared::new(arguments, console)?;
    let (ended, summaries, comparison) = if arguments.compare {
        match rounds::run(&prepared, arguments, console)? {
            Compared::Ended { ended, summaries, comparison } => (ended, summaries, comparison),
            Compared::FailsAnyway(ended) => return Ok(Answer::Ended(ended.code())),
        }
    } else {
        let (ended, summaries) = prepared.run()?;
        (ended, summaries, None)
    };
    if !arguments.quiet {
        tell(arguments, &ended, summaries.as_ref(), comparison.as_ref(), console);
    }
    if let Some(target) = target {
        let report = Report::new(&arguments.command, &ended, summaries.unwrap_or_default(), comparison);
        let mut text = serde_json::to_vec_pretty(&report).map_err(|error| Failure::Fault(error.to_string()))?;
        text.push(b'\n');
        target.write_bytes(&text)?;
        if !arguments.quiet {
            console.say(format!("wrote {}", show::path(target.path())));
        }
    }
    Ok(Answer::Ended(ended.code()))
}

/// A program that is ready to run.
struct Prepared<'a> {
    program: Program<'a>,
    /// Where its processes leave their summaries, where the host's memory is served.
    folder: Option<TempDir>,
}

impl<'a> Prepared<'a> {
    fn new(arguments: &'a Arguments, console: &mut Console) -> Result<Self, Failure> {
        let parts = arguments.parts();
        let host = parts.contains(&"host");
        if !host && let Some(flag) = arguments.host_memory.first_given() {
            let message = format!("`{flag}` is for the host's memory, which is not served");
            return Err(Failure::usage(message, "add `--host`"));
        }
        let mut program =
            Program::new(&arguments.command).seated(arguments.nodes.seat()?).with("LOWTIDE_RUN", parts.join(","));
        // A program without Python, or whose Python has no package, is served as well: its steps are found.
        let injection = match injection(program.name()) {
            Err(_) if parts == ["host"] => None,
            found => Some(found?),
        };
        let mut folder = None;
        if host {
            let library = library::find(injection.as_deref())?;
            let made = tempfile::Builder::new().prefix("lowtide-run-").tempdir();
            let made = made.map_err(|error| Failure::access("<temporary folder>", "write", error))?;
            let told = arguments.host_memory.told(&library, made.path(), Surroundings::of_process())?;
            for warning in told.warnings {
                console.say(format!("warning: {warning}"));
            }
            program = told.variables.into_iter().fold(program, |program, (name, value)| program.with(name, value));
            folder = Some(made);
        }
        if let Some(injection) = injection {
            program = program.injected(injection)?;
        }
        if let Some(limit) = arguments.limit {
            program = program.with("LOWTIDE_LIMIT", limit.get().to_string());
        }
        if arguments.strict {
            program = program.with("LOWTIDE_STRICT", "1");
        }
        Ok(Self { program, folder })
    }

    /// Runs it, and takes what its processes wrote out of the folder.
    fn run(&self) -> Result<(Ended, Option<Summaries>), Failure> {
        let ended = self.program.clone().run_to_end()?;
        Ok((ended, self.folder.as_ref().map(|folder| Summaries::take(folder.path()))))
    }
}

impl Arguments {
    /// What is to be served, by the names that the program is told.
    fn parts(&self) -> Vec<&'static str> {
        let named = self.host || self.device || self.cpu || self.pinned;
        let parts =
            [("host", self.host || !named), ("device", self.device), ("cpu", self.cpu), ("pinned", self.pinned)];
        parts.into_iter().filter_map(|(part, wanted)| wanted.then_some(part)).collect()
    }
}

/// Tells how it went.
fn tell(
    arguments: &Arguments,
    ended: &Ended,
    summaries: Option<&Summaries>,
    comparison: Option<&Comparison>,
    console: &mut Console,
) {
    for line in summaries.map(|summaries| text::lines(summaries, ended)).unwrap_or_default() {
        console.say(line);
    }
    for line in comparison.map(Comparison::lines).unwrap_or_default() {
        console.say(line);
    }
    if let Some(summaries) = summaries {
        console.say(text::next(summaries, comparison, &arguments.command));
    }
}

/// What `-o` writes. Fields are added, never removed.
#[derive(Debug, Serialize)]
struct Report {
    version: u64,
    command: Vec<String>,
    #[serde(flatten)]
    used: Used,
    /// The summaries of all processes as they were written, those with most memory first.
    processes: Vec<Value>,
    /// Processes that are known to have left none.
    without_summary: Vec<u32>,
    unreadable: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Comparison>,
}

impl Report {
    fn new(command: &[OsString], ended: &Ended, summaries: Summaries, compare: Option<Comparison>) -> Self {
        Self {
            version: 1,
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            used: Used::from(ended),
            without_summary: if summaries.has(ended.pid) { Vec::new() } else { vec![ended.pid] },
            processes: summaries.written,
            unreadable: summaries.unreadable,
            compare,
        }
    }
}
