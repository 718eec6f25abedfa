//! `lowtide watch`: what the memory of a program or of a running process does over time, and whether it leaks.

mod actions;
mod judge;
mod live;
mod marks;
mod observe;
mod outcome;
mod page;
mod process;
mod series;
mod signals;
mod subject;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lowtide_core::Bytes;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::arguments::numbers;
use crate::atomic_file::Target;
use crate::console::show;
use crate::program::{self, Program};
use crate::{Answer, Console, Failure};
use live::Live;
use marks::Marks;
use observe::Pace;
use outcome::{Outcome, What};
pub use signals::MarkSignal;
use subject::{Since, Subject};

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
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", value_parser = interval, default_value = "0.1", allow_negative_numbers = true)]
    interval: Duration,
    /// With `--pid`: watch no longer than this
    #[arg(long = "for", value_name = "SECONDS", value_parser = numbers::seconds, conflicts_with = "command", allow_negative_numbers = true)]
    limit: Option<Duration>,
    /// Judge what comes after so many seconds; without it, the second half
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
  lowtide watch --leak-rate 100KiB --warm-up 60 -- ./run a finer look after a minute
  echo compile > \"$LOWTIDE_MARKS\"                        in the program: an action ends here

The exit code is the program's; 1 where it is 0 and memory leaks.";

/// What happens while something is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// An action of this name ends.
    Mark(String),
    /// Every mark that was made before is told.
    Heard,
    /// The program has ended.
    Ended,
    /// A signal has come that would end this process, or that is for the program.
    Signal(program::Heard),
}

/// Watches until the end, and tells what was seen.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let targets = targets(&arguments.output)?;
    let (what, subject, child, marks, events) = begin(arguments, console)?;
    let (sender, receiver) = events;
    let Some(mut subject) = subject else {
        // It has ended before anybody could look.
        let ended = child.as_ref().map(ended).transpose()?;
        return Outcome::empty(what, arguments, ended).tell(&targets, arguments, console);
    };
    if let Some(marks) = &marks {
        marks.listen(sender.clone()).map_err(|error| Failure::access(show::path(marks.path()), "read", error))?;
    }
    if let Some(child) = &child {
        tell_end(child, sender);
    }
    let program = child.as_ref().and_then(|child| i32::try_from(child.id()).ok()).map(Pid::from_raw);
    let pace = Pace { interval: arguments.interval, limit: arguments.limit, program };
    let mut live = Live::new(!arguments.quiet);
    let observed = observe::observe(&mut subject, (marks.as_ref(), &receiver), pace, &mut live);
    drop(live);
    let ended = child.as_ref().map(ended).transpose()?;
    Outcome::new(what, arguments, observed, ended).tell(&targets, arguments, console)
}

type Events = (Sender<Event>, mpsc::Receiver<Event>);
type Begun = (What, Option<Subject>, Option<Child>, Option<Marks>, Events);

/// Starts the program, or finds the process.
fn begin(arguments: &Arguments, console: &mut Console) -> Result<Begun, Failure> {
    let events = mpsc::channel();
    if let Some(pid) = arguments.pid {
        let is_tree = arguments.tree;
        let subject = Subject::new(pid, is_tree, Since::Now).map_err(|error| unreadable(pid, &error))?;
        let subject = subject.ok_or_else(|| {
            Failure::usage(format!("there is no process {pid}"), "`ps -e` and `pgrep -f NAME` tell the numbers")
        })?;
        let marks = arguments.marks.as_deref().map(|path| Marks::new(Some(path))).transpose()?;
        signals::keep_back(arguments.mark_signal);
        signals::listen(arguments.mark_signal, events.0.clone());
        let what = What { command: Vec::new(), pid, is_tree };
        return Ok((what, Some(subject), None, marks, events));
    }
    let marks = Marks::new(arguments.marks.as_deref())?;
    let path = std::path::absolute(marks.path()).unwrap_or_else(|_| marks.path().to_owned());
    let mut program = Program::new(&arguments.command).with("LOWTIDE_MARKS", path);
    if arguments.mark == Some(Marking::Step) {
        program = program.with("LOWTIDE_MARK", "step");
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
    signals::listen(arguments.mark_signal, events.0.clone());
    let pid = i32::try_from(child.id()).unwrap_or(0);
    let is_tree = !arguments.alone;
    let subject = Subject::new(pid, is_tree, Since::Start).map_err(|error| unreadable(pid, &error))?;
    let command = arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok((What { command, pid, is_tree }, subject, Some(child), Some(marks), events))
}

fn unreadable(pid: i32, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "watch a process of your own, or run this as its user or as root",
        _ => "this needs Linux, with /proc",
    };
    Failure::usage(format!("process {pid} cannot be read: {error}"), hint)
}

/// Tells when `child` has ended, and leaves it to be waited for.
fn tell_end(child: &Child, events: Sender<Event>) {
    let Ok(pid) = i32::try_from(child.id()) else { return };
    std::thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(Pid::from_raw(pid)), flags) == Err(nix::Error::EINTR) {}
        let _ = events.send(Event::Ended);
    });
}

fn ended(child: &Child) -> Result<lowtide_memory::process::Ended, Failure> {
    lowtide_memory::process::wait(child.id())
        .map_err(|error| Failure::usage(format!("the end of the program is not known: {error}"), "run it again"))
}

/// Where to write, by the ending of each name.
fn targets(paths: &[PathBuf]) -> Result<Vec<(Target, Kind)>, Failure> {
    let target = |path: &PathBuf| {
        let target = Target::new(path, &[])?;
        let ending = path.extension().map(OsStr::to_ascii_lowercase);
        match ending.as_deref().and_then(OsStr::to_str) {
            Some("html" | "htm") => Ok((target, Kind::Page)),
            Some("json") => Ok((target, Kind::Json)),
            _ => {
                let message = format!("{} is neither a page nor JSON by its name", show::path(path));
                Err(Failure::usage(message, "give `-o` a name that ends in .html or .json"))
            }
        }
    };
    paths.iter().map(target).collect()
}

/// What a file gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Page,
    Json,
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
