//! A program that is run with Lowtide in it: what it finds in its environment, where it computes, how it ends and what it
//! used.

mod python;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use lowtide_memory::{Placement, process};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::{Answer, Failure, show};
pub(crate) use python::injection;

/// A program, and what it is told by variables.
#[derive(Clone)]
pub(crate) struct Program<'a> {
    command: &'a [OsString],
    variables: Vec<(&'static str, OsString)>,
    seat: Seat,
}

/// Where a program computes and has its memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seat {
    /// The processors; all that there are where none is named.
    pub processors: Vec<u32>,
    pub placement: Placement,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub pid: u32,
    /// From its start to its end.
    pub wall: Duration,
    /// What it used.
    pub usage: process::Ended,
}

impl Ended {
    /// As a shell tells it: 128 and more for a program that a signal ended.
    pub fn code(&self) -> u8 {
        code(self.usage.status)
    }
}

impl<'a> Program<'a> {
    pub fn new(command: &'a [OsString]) -> Self {
        Self { command, variables: Vec::new(), seat: Seat::default() }
    }

    /// Its name, or path.
    pub fn name(&self) -> &OsStr {
        self.command.first().map(OsString::as_os_str).unwrap_or_default()
    }

    /// The program finds `value` under `name`.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The program computes and has its memory there.
    pub fn seated(mut self, seat: Seat) -> Self {
        self.seat = seat;
        self
    }

    /// Python, wherever the program runs it, runs what is in `folder` first.
    pub fn injected(self, folder: PathBuf) -> Result<Self, Failure> {
        let mut paths = vec![folder];
        if let Some(known) = env::var_os("PYTHONPATH").filter(|known| !known.is_empty()) {
            paths.extend(env::split_paths(&known));
        }
        let paths = env::join_paths(paths)
            .map_err(|error| Failure::usage(format!("PYTHONPATH cannot be set: {error}"), "install it elsewhere"))?;
        Ok(self.with("PYTHONPATH", paths))
    }

    /// Runs it to its end, with the package in every Python of it.
    pub fn run(self) -> Result<Answer, Failure> {
        let folder = injection(self.name())?;
        let ended = self.injected(folder)?.run_to_end()?;
        Ok(Answer::Ended(ended.code()))
    }

    /// Starts it, with the streams of this process.
    pub fn start(self) -> Result<Child, Failure> {
        let name = self.name().to_owned();
        self.seat.spawn(&mut Self::command(self.command, self.variables), &name)
    }

    /// As [`start`](Self::start), after `keep_back`, which keeps signals from this process and not from the program.
    pub fn start_behind(self, keep_back: impl FnOnce()) -> Result<Child, Failure> {
        let name = self.name().to_owned();
        let mut command = Self::command(self.command, self.variables);
        process::keep_signals(&mut command).map_err(|error| failure(&name, &error))?;
        keep_back();
        self.seat.spawn(&mut command, &name)
    }

    fn command(words: &[OsString], variables: Vec<(&'static str, OsString)>) -> Command {
        let mut command = Command::new(words.first().map(OsString::as_os_str).unwrap_or_default());
        command.args(words.get(1..).unwrap_or_default()).envs(variables);
        command
    }

    /// Runs it to its end, with the streams of this process. Ctrl-C goes to the program and not to this process; what
    /// else would end this process is passed on.
    pub fn run_to_end(self) -> Result<Ended, Failure> {
        let name = self.name().to_owned();
        let start = Instant::now();
        let child = self.start()?;
        let pid = child.id();
        let usage = Signals::block().wait(&child).map_err(|error| failure(&name, &error))?;
        Ok(Ended { pid, wall: start.elapsed(), usage })
    }
}

impl Seat {
    /// Starts `command` here.
    pub fn spawn(&self, command: &mut Command, name: &OsStr) -> Result<Child, Failure> {
        if *self == Self::default() {
            return command.spawn().map_err(|error| failure(name, &error));
        }
        // A child inherits the place of the thread that starts it; this process keeps its own.
        std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                self.take()?;
                command.spawn().map_err(|error| failure(name, &error))
            });
            starting.join().unwrap_or_else(|_| Err(Failure::Fault("starting the program failed".to_owned())))
        })
    }

    /// Takes it for the calling thread.
    fn take(&self) -> Result<(), Failure> {
        let refused = |error| {
            Failure::usage(format!("the place cannot be taken: {error}"), "leave `--cpu-node` and `--mem-node` out")
        };
        if !self.processors.is_empty() {
            process::run_on(&self.processors).map_err(refused)?;
        }
        process::place(&self.placement).map_err(refused)
    }
}

fn failure(name: &OsStr, error: &std::io::Error) -> Failure {
    let shown = show::path(Path::new(name));
    let hint = match error.kind() {
        ErrorKind::NotFound => format!("check the name; a Python program is run by `python {shown}`"),
        ErrorKind::PermissionDenied => format!("it is no program; a Python program is run by `python {shown}`"),
        _ => "try the command alone".to_owned(),
    };
    Failure::usage(format!("cannot run {shown}: {error}"), hint)
}

/// As a shell tells it: 128 and more for a program that a signal ended.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Signals that end a process, kept from this one.
struct Signals(SigSet);

impl Signals {
    /// Threads and programs that are begun later would inherit this; so the program is begun before.
    fn block() -> Self {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
        // Without this, Ctrl-C ends both processes, and what was recorded is not told.
        let _ = set.thread_block();
        Self(set)
    }

    /// Waits for `child`. What the terminal sends, it has sent to the child as well; the rest is passed on.
    fn wait(self, child: &Child) -> std::io::Result<process::Ended> {
        let Self(set) = self;
        RUNNING.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
        PASSING_ON.call_once(|| {
            std::thread::spawn(move || {
                while let Ok(signal) = set.wait() {
                    pass_on(signal);
                }
            });
        });
        let usage = process::wait(child.id());
        RUNNING.store(0, Ordering::SeqCst);
        let _ = set.thread_unblock();
        usage
    }
}

/// The program that runs now; zero where none does.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// The thread that hears signals is begun once, and stays.
static PASSING_ON: Once = Once::new();

fn pass_on(signal: Signal) {
    let pid = RUNNING.load(Ordering::SeqCst);
    if pid > 0 && matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_code_above_128() {
        assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn a_program_tells_what_it_used() {
        let command = ["sh", "-c", "exit $CODE"].map(OsString::from);
        let seat = Seat { processors: vec![0], placement: Placement::Anywhere };
        let ended = Program::new(&command).with("CODE", "4").seated(seat).run_to_end().unwrap();
        assert_eq!(ended.code(), 4);
        assert!(ended.usage.minor_faults > 0 && ended.wall > Duration::ZERO);
    }
}
