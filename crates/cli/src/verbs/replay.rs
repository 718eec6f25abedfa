//! `lowtide replay`: plays a recorded run on several allocators over a simulated device, and tells what each would
//! reserve, what it would ask of the driver, and which serves the run best.

mod outcome;
mod sweep;
mod text;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lowtide_core::Bytes;
use lowtide_pool::Start;
use lowtide_replay::{Replay, ReplayError, ReplayOptions, Strategy, TorchOptions, replay};
use serde::Serialize;

use crate::arguments::numbers;
use crate::arguments::typed::Typed;
use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::console::{progress, show};
use crate::input::recorded::Recorded;
use crate::input::source::Source;
use crate::planning::solving::was_interrupted;
use crate::{Answer, Console, Failure};
use outcome::Numbers;

/// What to play, on what, and how it is shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A trace or a PyTorch snapshot, plain or gzip; stdin for `-` or when absent
    input: Option<PathBuf>,
    /// The allocator to play it on
    #[arg(long, value_name = "NAME", value_enum, default_value_t, conflicts_with = "sweep")]
    strategy: Choice,
    #[command(flatten)]
    device: DeviceArguments,
    /// Play the closed steps this often
    #[arg(
        long,
        value_name = "N",
        value_parser = numbers::count,
        default_value_t = NonZeroUsize::MIN,
        allow_negative_numbers = true
    )]
    repeat: NonZeroUsize,
    /// Do not say where steps end, as a program that marks none: `planned` finds them by their period
    #[arg(long)]
    unmarked: bool,
    /// How arena and planned take their memory in the first steps
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    start: StartChoice,
    /// PyTorch's settings for caching and expandable, and where --sweep begins
    #[arg(long, value_name = "PYTORCH_ALLOC_CONF", default_value = "", hide_default_value = true)]
    alloc_conf: TorchOptions,
    /// Try PyTorch's settings and print the best line for `PYTORCH_ALLOC_CONF`
    #[arg(long)]
    sweep: bool,
    /// Write x.json: the numbers
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    view: View,
}

/// The device that a run is played on.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArguments {
    /// The memory that a device has: bytes, an amount such as 80GiB, or a GPU's name such as H100 [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = numbers::typed_memory, allow_negative_numbers = true)]
    pub device_memory: Option<Typed<Bytes>>,
    /// What a device maps at once: a power of two from 4KiB to 1TiB
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = numbers::typed_size,
        default_value = "2MiB",
        allow_negative_numbers = true
    )]
    pub page: Typed<Bytes>,
}

impl DeviceArguments {
    /// As they can be typed again, behind a command: what differs from what is usual.
    fn typed(&self) -> String {
        let memory = self.device_memory.as_ref().map(|memory| format!(" --device-memory {}", memory.word()));
        let is_usual = self.page.value() == ReplayOptions::default().page;
        let page = (!is_usual).then(|| format!(" --page {}", self.page.word()));
        [memory, page].into_iter().flatten().collect()
    }
}

const EXAMPLES: &str = "\
Examples:
  lowtide replay trace.csv.gz                         which allocator serves it best
  lowtide replay trace.csv.gz --strategy caching      what PyTorch would reserve
  lowtide replay trace.csv.gz --device-memory 16GiB   does it fit, and if not, where
  lowtide replay snapshot.pickle --sweep              the best PYTORCH_ALLOC_CONF
  lowtide replay trace.csv.gz --repeat 10 --json      ten times the steps, for a script
  lowtide replay trace.csv.gz --unmarked              as under a program without an optimizer
  lowtide replay trace.csv.gz --start fast            with the start that a program has on a device

Exit code 1: an allocator that was asked about ran out of memory.";

/// The allocators to choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Choice {
    /// Lowtide's arena, each block placed as it comes
    Arena,
    /// Lowtide's arena with the plan that it learns
    Planned,
    /// PyTorch's native allocator
    Caching,
    /// PyTorch's expandable segments
    Expandable,
    /// All four of them
    #[default]
    All,
}

/// How Lowtide starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum StartChoice {
    /// With as little memory as can be: driver calls are not limited in the first two steps
    #[default]
    Tight,
    /// With few driver calls, as under `lowtide.torch.install()`: some more memory in the first ten steps
    Fast,
}

impl StartChoice {
    fn of(self, strategy: Strategy) -> Strategy {
        match self {
            Self::Tight => strategy,
            Self::Fast => strategy.starting(Start::Fast),
        }
    }
}

/// Plays, shows and writes.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let source = Source::new(arguments.input.as_deref());
    let target = arguments.output.as_deref().map(|path| target(path, &source)).transpose()?;
    let run = Recorded::read(&source, console)?;
    let stage = Stage { arguments, source: &source, run: &run };
    if arguments.sweep { sweep::run(&stage, target.as_ref(), console) } else { stage.compare(target.as_ref(), console) }
}

/// The file that numbers are written to, looked at before any work is done.
fn target(path: &Path, source: &Source) -> Result<Target, Failure> {
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("json")) {
        let name = show::escaped(&path.to_string_lossy()).into_owned();
        return Err(Failure::unfit(&name, "the output is not .json", "name it such as replay.json"));
    }
    Target::new(path, &[source])
}

/// A run, and what it is to be played on.
struct Stage<'a> {
    arguments: &'a Arguments,
    source: &'a Source,
    run: &'a Recorded,
}

impl Stage<'_> {
    fn options(&self) -> ReplayOptions {
        let DeviceArguments { device_memory, page } = &self.arguments.device;
        let (device_memory, page) = (device_memory.as_ref().map(Typed::value), page.value());
        let repeat = u64::try_from(self.arguments.repeat.get()).ok().and_then(std::num::NonZeroU64::new);
        ReplayOptions {
            device_memory,
            page,
            repeat: repeat.unwrap_or(std::num::NonZeroU64::MIN),
            unmarked: self.arguments.unmarked,
        }
    }

    /// The allocators that were asked for.
    fn strategies(&self) -> Vec<Strategy> {
        let torch = || self.arguments.alloc_conf.clone();
        let strategies = match self.arguments.strategy {
            Choice::Arena => vec![Strategy::arena()],
            Choice::Planned => vec![Strategy::planned()],
            Choice::Caching => vec![Strategy::Caching(torch())],
            Choice::Expandable => vec![Strategy::Expandable(torch())],
            Choice::All => {
                vec![Strategy::arena(), Strategy::planned(), Strategy::Caching(torch()), Strategy::Expandable(torch())]
            }
        };
        strategies.into_iter().map(|strategy| self.arguments.start.of(strategy)).collect()
    }

    /// Plays the run on one allocator; nothing where Ctrl-C ended it.
    fn play(&self, strategy: &Strategy) -> Result<Option<Replay>, Failure> {
        play(&self.run.trace, strategy, &self.options(), &self.source.to_string())
    }

    fn compare(&self, target: Option<&Target>, console: &mut Console) -> Result<Answer, Failure> {
        let strategies = self.strategies();
        let mut played = Vec::new();
        for strategy in &strategies {
            let Some(replay) = self.play(strategy)? else { break };
            played.push(Numbers::new(strategy, &replay, self.run));
        }
        let missing: Vec<&str> = strategies[played.len()..].iter().map(Strategy::name).collect();
        if self.arguments.view.is_json() {
            match (self.arguments.strategy, &*played) {
                (Choice::All, played) => console.print_json(&played)?,
                (_, [one]) => console.print_json(one)?,
                _ => {}
            }
        } else {
            text::compared(self, &played, console)?;
        }
        console.finish()?;
        if !missing.is_empty() {
            console.say(format!("interrupted: not played on {}", missing.join(", ")));
        } else if let Some(target) = target {
            match (self.arguments.strategy, &*played) {
                (Choice::All, played) => write(&played, target)?,
                (_, [one, ..]) => write(one, target)?,
                (_, []) => {}
            }
        }
        if !self.arguments.view.is_json() && !played.is_empty() {
            console.say(text::next(self, &played, target.filter(|_| missing.is_empty())));
        }
        Ok(Answer::from_bool(missing.is_empty() && played.iter().all(Numbers::fits)))
    }

    /// The command with another choice of allocators.
    fn typed(&self, choice: &str) -> String {
        let Arguments { device, repeat, unmarked, start, alloc_conf, .. } = self.arguments;
        let repeat = if repeat.get() > 1 { format!(" --repeat {repeat}") } else { String::new() };
        let marks = if *unmarked { " --unmarked" } else { "" };
        let start = if *start == StartChoice::Fast { " --start fast" } else { "" };
        let line = alloc_conf.to_string();
        let line = if line.is_empty() { line } else { format!(" --alloc-conf {}", show::quoted(&line)) };
        format!("lowtide replay {}{}{repeat}{marks}{start}{line}{choice}", self.source.typed(), device.typed())
    }
}

/// Plays `trace`, which messages call `name`, on one allocator; nothing where Ctrl-C ended it.
pub(crate) fn play(
    trace: &lowtide_core::Trace,
    strategy: &Strategy,
    options: &ReplayOptions,
    name: &str,
) -> Result<Option<Replay>, Failure> {
    let line = progress::Counting::new(&format!("playing {name} on {}", strategy.name()));
    let mut watch = |progress: lowtide_replay::ReplayProgress| {
        line.show(progress.played, progress.of);
        if was_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match replay(trace, strategy, options, &mut watch) {
        Ok(replay) => Ok(Some(replay)),
        Err(ReplayError::Stopped) => Ok(None),
        Err(error) => Err(failure(name, error)),
    }
}

/// Why a run called `name` could not be played.
fn failure(name: &str, error: ReplayError) -> Failure {
    match error {
        ReplayError::BadPage { .. } => Failure::usage(error, "give a `--page` such as 2MiB"),
        ReplayError::NoSteps => Failure::unfit(name, error, "leave out `--repeat`, or give a trace with `step` rows"),
        ReplayError::NotAlive { .. } => Failure::unfit(name, error, "record the run again, from its start"),
        ReplayError::Stopped => Failure::Fault(format!("{name}: {error}")),
        ReplayError::Failed { event, source } => {
            let why = std::error::Error::source(&source).map(|why| format!(": {why}")).unwrap_or_default();
            Failure::Fault(format!("{name}: event {event}: {source}{why}"))
        }
    }
}

/// Writes `numbers` as JSON.
fn write(numbers: &impl Serialize, target: &Target) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(numbers)
        .map_err(|error| Failure::Fault(format!("{}: {error}", show::path(target.path()))))?;
    text.push(b'\n');
    target.write_bytes(&text)
}
