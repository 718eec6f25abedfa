//! A program that is run with Lowtide in it: what it finds in its environment, where it computes, how it ends and what it
//! used.

mod executable;
mod imported;
mod python;
pub(crate) mod resources;
mod signals;
mod unserved;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use lowtide_memory::{Placement, process};

use crate::{Answer, Failure};
use executable::failure;
pub(crate) use imported::Imported;
pub(crate) use python::{INSTALL, injection};
pub(crate) use signals::{Heard, Hearing, KeptBack, of_program};
pub(crate) use unserved::Unserved;

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
        let ended = self.injected(folder)?.ready()?.run_to_end(&keep_back()?)?;
        Ok(Answer::Ended(ended.code()))
    }

    /// Starts it with the streams of this process, after `keep_back`, which keeps signals from this process and not from
    /// the program.
    pub fn start_behind(self, keep_back: impl FnOnce()) -> Result<Child, Failure> {
        let mut ready = self.ready()?;
        keep_back();
        ready.start()
    }

    /// Ready to be started, as often as is wanted: it has the signals that the calling thread lets through now, whatever is
    /// kept back later.
    pub fn ready(self) -> Result<Ready, Failure> {
        let name = self.name().to_owned();
        let mut command = Command::new(&name);
        command.args(self.command.get(1..).unwrap_or_default()).envs(self.variables);
        process::keep_signals(&mut command).map_err(|error| failure(&name, &error))?;
        Ok(Ready { name, command, seat: self.seat })
    }
}

/// A program that can be started.
pub(crate) struct Ready {
    name: OsString,
    command: Command,
    seat: Seat,
}

impl Ready {
    /// From now on the program finds `value` under `name`.
    pub fn set(&mut self, name: &'static str, value: impl AsRef<OsStr>) {
        self.command.env(name, value);
    }

    fn start(&mut self) -> Result<Child, Failure> {
        self.seat.spawn(&mut self.command, &self.name)
    }

    /// Runs it to its end, with the streams of this process. Ctrl-C goes to the program and not to this process; what
    /// else would end this process is passed on.
    pub fn run_to_end(&mut self, signals: &KeptBack) -> Result<Ended, Failure> {
        let start = Instant::now();
        let name = self.name.clone();
        let (pid, usage) = signals.around(|| self.start(), |error| failure(&name, &error))?;
        Ok(Ended { pid, wall: start.elapsed(), usage })
    }
}

/// Keeps signals back, for programs that are ready.
pub(crate) fn keep_back() -> Result<KeptBack, Failure> {
    KeptBack::new().map_err(|error| Failure::usage(format!("signals cannot be kept back: {error}"), "run it again"))
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

/// As a shell tells it: 128 and more for a program that a signal ended.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
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
        let mut ready = Program::new(&command).with("CODE", "4").seated(seat).ready().unwrap();
        let ended = ready.run_to_end(&keep_back().unwrap()).unwrap();
        assert_eq!(ended.code(), 4);
        assert!(ended.usage.minor_faults > 0 && ended.wall > Duration::ZERO);
    }

    #[test]
    fn a_program_has_the_signals_that_are_kept_from_this_process() {
        let command = ["sh", "-c", "kill -USR1 $$; exit 0"].map(OsString::from);
        let mut ready = Program::new(&command).ready().unwrap();
        let signals = keep_back().unwrap();
        for _ in 0..2 {
            assert_eq!(ready.run_to_end(&signals).unwrap().code(), 138);
        }
    }
}
