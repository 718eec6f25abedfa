//! `lowtide run`: runs a program with Lowtide as its memory allocator, without a change to it, and reports at the end how that
//! went.

mod compare;
pub(crate) mod conf;
pub(crate) mod host;
mod huge;
pub(crate) mod library;
mod nodes;
mod rounds;
pub(crate) mod summary;
mod text;
pub(crate) mod underlying;

use std::env;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use lowtide_core::options::{IMPORTED, RUN, STRICT, SUMMARY, Scope};
use serde::Serialize;
use serde_json::Value;

use crate::atomic_file::Target;
use crate::console::show;
use crate::options::{InForce, OptionArguments};
use crate::program::{self, Ended, Imported, KeptBack, Program, Ready, Unserved, injection};
use crate::{Answer, Console, Failure};
use compare::{Comparison, Used};
use host::{Equipment, Surroundings, handed_on};
use summary::Summaries;

/// What to run, and what to serve.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
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
    /// Run it without Lowtide first, and show both side by side
    #[arg(long)]
    compare: bool,
    /// How often to run it each way, which take turns at being first; shows medians [default: 1]
    #[arg(long, value_name = "N", value_parser = crate::arguments::numbers::count, requires = "compare", allow_negative_numbers = true)]
    rounds: Option<NonZeroUsize>,
    /// Say nothing at the end
    #[arg(short, long)]
    quiet: bool,
    /// Write FILE, as JSON: what each process did that left a summary
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: OptionArguments,
    #[command(flatten)]
    nodes: nodes::NodeArguments,
}

const EXAMPLES: &str = "\
Examples:
  lowtide run -- python train.py                           memory of the host
  lowtide run --compare -- python train.py                 with and without
  lowtide run --compare --rounds 5 -- python train.py      by turns, and medians
  lowtide run --pages 2M --cpu-node 0 --mem-node 0 -- ./a  huge pages, one socket
  lowtide run --device -- python train.py                  tensors on CUDA devices
  lowtide run --device --limit 40GiB -- python train.py    on a part of each device
  lowtide run --config job.toml -- python train.py         options from a file

The exit code is the program's. `lowtide config` shows the options in force.";

/// Runs the program.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let target = arguments.output.as_deref().map(|path| Target::new(path, &[])).transpose()?;
    let mut prepared = Prepared::new(arguments, console)?;
    // Until all is reported, whatever would end this process ends the program.
    let signals = program::keep_back()?;
    let outcome = if arguments.compare {
        rounds::run(&mut prepared, arguments.rounds.map_or(1, NonZeroUsize::get), &signals)?
    } else {
        Outcome { run: Some(prepared.run(&signals)?), ..Outcome::default() }
    };
    if !arguments.quiet {
        outcome.report(&arguments.command, console);
        if prepared.imported.as_ref().is_some_and(|imported| !imported.is_seen()) {
            console.say("note: no tensor was served: the program did not import PyTorch");
        }
    }
    let code = outcome.last().map_or(0, Ended::code);
    let Some(target) = target else { return Ok(Answer::Ended(code)) };
    match outcome.write(&arguments.command, &target) {
        Ok(()) if arguments.quiet => {}
        Ok(()) => console.say(format!("wrote {}", show::path(target.path()))),
        Err(failure) if code == 0 => return Err(failure),
        Err(failure) => console.report(&failure),
    }
    Ok(Answer::Ended(code))
}

/// A program that is ready to run.
struct Prepared {
    with: Ready,
    /// For a comparison.
    without: Ready,
    /// Whether the host's memory is served, so that its processes leave summaries.
    is_host: bool,
    /// Where tensors are served: whether there are any.
    imported: Option<Imported>,
}

/// A run with Lowtide.
struct Run {
    ended: Ended,
    summaries: Option<Summaries>,
}

impl Prepared {
    fn new(arguments: &Arguments, console: &mut Console) -> Result<Self, Failure> {
        let parts = arguments.parts();
        let is_host = parts.contains(&"host");
        arguments.refuse_idle_flags(&parts)?;
        let InForce { options, file } = arguments.options.in_force()?;
        if let Some(file) = file.filter(|_| !arguments.quiet) {
            console.say(format!("options from {}", show::path(&file)));
        }
        let mut program =
            Program::new(&arguments.command).seated(arguments.nodes.seat()?).with(RUN.variable(), parts.join(","));
        program = handed_on(&options).fold(program, |program, (name, value)| program.with(name, value));
        // A program without Python, or whose Python has no package, is served as well: its steps are found.
        let injection = match injection(program.name()) {
            Err(failure @ Failure::Start { .. }) => return Err(failure),
            Err(_) if parts == ["host"] => None,
            found => Some(found?),
        };
        let unserved = if is_host { Unserved::of(program.name()) } else { None };
        if let Some(unserved) = unserved {
            let name = show::path(Path::new(program.name()));
            if options.get(STRICT) {
                let message = format!("{name} {}: it cannot be served", unserved.reason());
                return Err(Failure::usage(message, "leave `--strict` out, and it runs without Lowtide"));
            }
            let children = if unserved.must_not_preload() { "" } else { "; programs that it starts are served" };
            console.say(format!("note: {name} {}: it runs without Lowtide{children}", unserved.reason()));
        }
        let is_host = is_host && !unserved.is_some_and(Unserved::must_not_preload);
        if is_host {
            let library = library::find(injection.as_deref())?;
            let equipment = Equipment::new(&options, &library, Surroundings::of_process())?;
            for warning in equipment.warnings {
                console.say(format!("warning: {warning}"));
            }
            program = equipment.variables.into_iter().fold(program, |program, (name, value)| program.with(name, value));
        }
        if let Some(injection) = injection {
            program = program.injected(injection)?;
        }
        let imported = (parts != ["host"]).then(Imported::new).transpose()?;
        if let Some(imported) = &imported {
            program = program.with(IMPORTED.variable(), imported.path());
        }
        Ok(Self { with: program.ready()?, without: Program::new(&arguments.command).ready()?, is_host, imported })
    }

    /// Runs it, with a folder of its own for what its processes write: who outlives one run is not taken for another's.
    fn run(&mut self, signals: &KeptBack) -> Result<Run, Failure> {
        let folder = self.is_host.then(summary::Folder::new).transpose()?;
        if let Some(folder) = &folder {
            self.with.set(SUMMARY.variable(), folder.path());
        }
        let ended = self.with.run_to_end(signals)?;
        Ok(Run { ended, summaries: folder.map(|folder| Summaries::read(folder.path())) })
    }

    fn run_without(&mut self, signals: &KeptBack) -> Result<Ended, Failure> {
        self.without.run_to_end(signals)
    }
}

impl Arguments {
    /// Refuses a flag about memory that is not served.
    fn refuse_idle_flags(&self, parts: &[&str]) -> Result<(), Failure> {
        for (entry, _) in &self.options.flags.given {
            let (part, memory) = match entry.scope {
                Scope::Host | Scope::Underlying => ("host", "the host's memory"),
                Scope::Device => ("device", "the memory of CUDA devices"),
                _ => continue,
            };
            if !parts.contains(&part) {
                let message = format!("`--{}` is for {memory}, which is not served", entry.flag());
                return Err(Failure::usage(message, format!("add `--{part}`")));
            }
        }
        Ok(())
    }

    /// What is to be served, by the names that the program gets.
    fn parts(&self) -> Vec<&'static str> {
        let named = self.host || self.device || self.cpu || self.pinned;
        let parts =
            [("host", self.host || !named), ("device", self.device), ("cpu", self.cpu), ("pinned", self.pinned)];
        parts.into_iter().filter_map(|(part, wanted)| wanted.then_some(part)).collect()
    }
}

/// What came of it.
#[derive(Default)]
struct Outcome {
    /// The last run with Lowtide.
    run: Option<Run>,
    /// The run without Lowtide that ended badly, after which nothing was run.
    failed_without: Option<Ended>,
    /// None where no round has both.
    comparison: Option<Comparison>,
    /// Why there are fewer rounds than were asked for.
    stopped: Option<String>,
}

impl Outcome {
    /// The run that decides how this ends.
    fn last(&self) -> Option<&Ended> {
        self.failed_without.as_ref().or(self.run.as_ref().map(|run| &run.ended))
    }

    /// Says how it went.
    fn report(&self, command: &[OsString], console: &mut Console) {
        let served = self.run.as_ref().and_then(|run| Some((run, run.summaries.as_ref()?)));
        let mut lines = Vec::new();
        if let Some((run, summaries)) = served {
            lines.extend(text::lines(summaries, &run.ended));
        }
        lines.extend(self.comparison.iter().flat_map(Comparison::lines));
        lines.extend(self.stopped.clone());
        if let Some((run, summaries)) = served
            && run.ended.code() == 0
            && summaries.has(run.ended.pid)
        {
            lines.push(text::next(summaries, self.comparison.as_ref(), &flags(command), command));
        }
        for line in lines {
            console.say(line);
        }
    }

    fn write(self, command: &[OsString], target: &Target) -> Result<(), Failure> {
        let report = Report::new(command, self);
        let mut text = serde_json::to_vec_pretty(&report).map_err(|error| Failure::Fault(error.to_string()))?;
        text.push(b'\n');
        target.write_bytes(&text)
    }
}

/// The flags that stood between the verb and the command, without the file that was written.
fn flags(command: &[OsString]) -> Vec<OsString> {
    let words: Vec<OsString> = env::args_os().collect();
    let before = words.len().saturating_sub(command.len());
    let mut given = words.into_iter().take(before).skip_while(|word| word != "run").skip(1);
    let mut flags = Vec::new();
    while let Some(word) = given.next() {
        let text = word.to_string_lossy();
        if text == "-o" || text == "--output" {
            given.next();
        } else if text != "--" && !text.starts_with("-o") && !text.starts_with("--output=") {
            flags.push(word);
        }
    }
    flags
}

/// What `-o` writes. Fields are added, never removed.
#[derive(Debug, Serialize)]
struct Report {
    version: u64,
    command: Vec<String>,
    /// By the last run.
    #[serde(flatten)]
    used: Option<Used>,
    /// The summaries that processes of the last run with Lowtide left, as they were written, those with most memory first.
    processes: Vec<Value>,
    /// Processes that are known to have left none.
    without_summary: Vec<u32>,
    unreadable: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
}

impl Report {
    fn new(command: &[OsString], outcome: Outcome) -> Self {
        let used = outcome.last().map(Used::from);
        let Outcome { run, comparison, stopped, .. } = outcome;
        let pid = run.as_ref().map(|run| run.ended.pid);
        let summaries = run.and_then(|run| run.summaries).unwrap_or_default();
        Self {
            version: 1,
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            used,
            without_summary: pid.into_iter().filter(|&pid| !summaries.has(pid)).collect(),
            processes: summaries.written,
            unreadable: summaries.unreadable,
            compare: comparison,
            stopped,
        }
    }
}
