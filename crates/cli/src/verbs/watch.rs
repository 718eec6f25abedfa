//! `lowtide watch`: what the memory of a program or of a running process does over time, and whether it leaks.

mod live;
mod output;
mod signals;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lowtide_core::Bytes;
use lowtide_core::options::{MARK, MARKS};
use lowtide_watch::{Ending, Error, Event, Marks, Observed, Outcome, Pace, Processes, Rules, Since, Subject, observe};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::arguments::numbers;
use crate::console::show;
use crate::program::{self, Program};
use crate::{Answer, Console, Failure};
use live::Live;
pub use signals::MarkSignal;
use signals::{PassedOn, Receiver};

/// What to watch, and what to call a leak.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// Watch the process with this number
    #[arg(long, value_name = "N", value_parser = process_number, allow_negative_numbers = true)]
    pid: Option<i32>,
    /// Watch its children too, down to the last; this is so for a COMMAND
    #[arg(long, conflicts_with = "alone")]
    tree: bool,
    /// Watch the first process alone; this is so with `--pid`
    #[arg(long)]
    alone: bool,
    /// Seconds from one sample to the next
    #[arg(long, value_name = "SECONDS", value_parser = interval, default_value = "0.1", allow_negative_numbers = true)]
    interval: Duration,
    /// With `--pid`: watch no longer than this
    #[arg(long = "for", value_name = "SECONDS", value_parser = numbers::seconds, conflicts_with = "command", allow_negative_numbers = true)]
    limit: Option<Duration>,
    /// Judge what comes after so many seconds, of a run of any length; without it the second half is judged, and 30 s are
    /// needed to call it leaking
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds, allow_negative_numbers = true)]
    warm_up: Option<Duration>,
    /// Growth in a minute that is no leak yet
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, default_value = "1MiB", allow_negative_numbers = true)]
    leak_rate: Bytes,
    /// What marks the end of an action: every step of an optimizer, and each `lowtide.step()`
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "pid")]
    mark: Option<Marking>,
    /// A signal to this process marks the end of an action
    #[arg(long, value_name = "SIGNAL", value_enum)]
    mark_signal: Option<MarkSignal>,
    /// Where to make the FIFO for marks; a COMMAND finds it in `LOWTIDE_MARKS` anyway
    #[arg(long, value_name = "PATH")]
    marks: Option<PathBuf>,
    /// Write x.html: a page with a chart; x.json: everything in numbers; may be given twice
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Print the verdict as one object on stdout, behind what COMMAND prints
    #[arg(long)]
    json: bool,
    /// Show no line while it runs
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(
        required_unless_present = "pid",
        conflicts_with = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// What marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Marking {
    /// The steps of the program
    Step,
}

const EXAMPLES: &str = "\
Examples:
  lowtide watch -- python serve.py                       a verdict at its end
  lowtide watch -o w.html --mark step -- python train.py a chart, and the peak of each step
  lowtide watch --pid 4711 --for 600                     ten minutes of what runs already
  lowtide watch --leak-rate 100KiB --warm-up 60 -- ./run finer, after a minute
  echo compile > \"$LOWTIDE_MARKS\"                        in the program: an action ends here

Verdicts:
  stable         no growth for good, or less than --leak-rate
  still warming  it grows, but slower and slower, or it is too early to tell
  growing        a run under 30 s that grew steeply to its end: more than
                 100 times --leak-rate, to twice of what it had and more
  leaking        it grows all the time, for 30 s or longer, or after --warm-up

The exit code is the program's; where that is 0, 1 if it is growing or leaking.";

/// What is said where steps were to be marked and none was.
const NO_STEP: &str = "no step was marked; `--mark step` marks the steps of PyTorch optimizers in a Python that has the \
                       package lowtide, and each lowtide.step()";

/// Watches until the end, and shows what was seen.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let files = output::files(&arguments.output)?;
    let (sender, events) = mpsc::channel();
    let Begun { subject, processes, child, marks, signals } = begin(arguments, sender.clone(), console)?;
    let mut observed = Observed::default();
    if let Some(mut processes) = processes {
        if let Some(marks) = &marks {
            marks.listen(sender.clone()).map_err(|error| Failure::access(show::path(marks.path()), "read", error))?;
        }
        if let Some(child) = &child {
            send_end(child, sender.clone());
        }
        let pace = Pace { interval: arguments.interval, limit: arguments.limit };
        let mut live = Live::new(!arguments.quiet);
        let sampled = |elapsed, sample: &_, observed: &_| live.show(elapsed, sample, observed);
        observed = observe(&mut processes, (marks.as_ref(), &events), pace, sampled);
    }
    if arguments.mark == Some(Marking::Step) && observed.actions.count == 0 {
        observed.notes.push(NO_STEP.to_owned());
    }
    drop(signals);
    let ended = child.as_ref().map(ended).transpose()?;
    let rules = Rules { leak_rate: arguments.leak_rate, warm_up: arguments.warm_up };
    let outcome = Outcome::new(subject, rules, observed, ended);
    output::show(&outcome, &files, arguments.json, console)
}

/// Something that is watched.
struct Begun {
    subject: Subject,
    /// Nothing where the program has ended already.
    processes: Option<Processes>,
    child: Option<Child>,
    marks: Option<Marks>,
    signals: PassedOn,
}

/// Starts the program, or finds the process.
fn begin(arguments: &Arguments, events: Sender<Event>, console: &mut Console) -> Result<Begun, Failure> {
    match arguments.pid {
        Some(pid) => find(pid, arguments, events),
        None => start(arguments, events, console),
    }
}

fn find(pid: i32, arguments: &Arguments, events: Sender<Event>) -> Result<Begun, Failure> {
    let is_tree = arguments.tree;
    let processes = Processes::of(pid, is_tree, Since::Now).map_err(failure)?;
    if processes.is_none() {
        let hint = "`ps -e` and `pgrep -f NAME` list the numbers";
        return Err(Failure::usage(format!("there is no process {pid}"), hint));
    }
    let marks = arguments.marks.as_deref().map(|path| Marks::new(Some(path))).transpose().map_err(failure)?;
    signals::keep_back(arguments.mark_signal);
    let signals = PassedOn::to(Receiver::Watching, arguments.mark_signal, events);
    let subject = subject(arguments, pid, is_tree);
    Ok(Begun { subject, processes, child: None, marks, signals })
}

fn start(arguments: &Arguments, events: Sender<Event>, console: &mut Console) -> Result<Begun, Failure> {
    let marks = Marks::new(arguments.marks.as_deref()).map_err(failure)?;
    let path = std::path::absolute(marks.path()).unwrap_or_else(|_| marks.path().to_owned());
    let mut program = Program::new(&arguments.command).with(MARKS.variable(), path);
    if arguments.mark == Some(Marking::Step) {
        program = program.with(MARK.variable(), "step");
        match program::injection(program.name()) {
            Ok(folder) => program = program.injected(folder)?,
            // A program that is no Python marks by itself.
            Err(failure) => {
                console.say(format!("warning: steps of optimizers are not marked: {failure}"));
                console.hint(failure.hint());
            }
        }
    }
    let child = program.start_behind(|| signals::keep_back(arguments.mark_signal))?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    let signals = PassedOn::to(Receiver::Program(Pid::from_raw(pid)), arguments.mark_signal, events);
    let is_tree = !arguments.alone;
    let processes = Processes::of(pid, is_tree, Since::Start).map_err(failure)?;
    let subject = subject(arguments, pid, is_tree);
    Ok(Begun { subject, processes, child: Some(child), marks: Some(marks), signals })
}

fn subject(arguments: &Arguments, pid: i32, is_tree: bool) -> Subject {
    let command = arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Subject { command, pid, is_tree, interval: arguments.interval }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Fifo { path, source } => Failure::access(show::path(&path), "make a FIFO", source),
        Error::Unreadable { ref source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::usage(error, "watch a process of your own, or run this as its user or as root")
        }
        error => Failure::usage(error, "this needs Linux, with /proc"),
    }
}

/// Sends when `child` has ended, and leaves it to be waited for.
fn send_end(child: &Child, events: Sender<Event>) {
    let Ok(pid) = i32::try_from(child.id()) else { return };
    std::thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(Pid::from_raw(pid)), flags) == Err(nix::Error::EINTR) {}
        let _ = events.send(Event::Ended);
    });
}

fn ended(child: &Child) -> Result<Ending, Failure> {
    let used = lowtide_memory::process::wait(child.id())
        .map_err(|error| Failure::usage(format!("the end of the program is not known: {error}"), "run it again"))?;
    Ok(Ending { used, code: program::code(used.status) })
}

fn process_number(text: &str) -> Result<i32, String> {
    numbers::refuse_negative(text)?;
    let number = text.trim().parse::<i32>().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "write the number of a process, such as 4711".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = numbers::seconds(text)?;
    let range = Duration::from_millis(1)..=Duration::from_hours(1);
    if range.contains(&interval) { Ok(interval) } else { Err("write seconds from 0.001 to 3600".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_command_line_have_bounds() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "1e9", "-1", "nan", "x"] {
            assert!(interval(text).is_err(), "{text}");
        }
        assert_eq!(process_number("17"), Ok(17));
        for text in ["0", "-4", "99999999999", "init"] {
            assert!(process_number(text).is_err(), "{text}");
        }
    }
}
