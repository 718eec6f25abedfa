//! Signals that come while a program runs. They are kept from this process, so that what the program did is told whatever
//! ends it, and passed on to the program.

use std::io;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_memory::process;
use nix::errno::Errno;
use nix::libc::SI_KERNEL;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// Those that would end this process, and that others send.
const ENDING: [Signal; 13] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGABRT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGXCPU,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGPWR,
];

/// Those that a program may wait for, and that do nothing to this process.
const TELLING: [Signal; 2] = [Signal::SIGCONT, Signal::SIGWINCH];

/// The signals that are a program's while one runs.
pub(crate) fn of_program() -> SigSet {
    ENDING.into_iter().chain(TELLING).collect()
}

/// A signal that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Heard {
    pub signal: Signal,
    /// Whether a terminal has sent it, to the program as well.
    from_terminal: bool,
}

impl Heard {
    fn new(signal: Signal, code: i32) -> Self {
        let of_terminals = matches!(signal, Signal::SIGINT | Signal::SIGQUIT | Signal::SIGWINCH);
        Self { signal, from_terminal: of_terminals && code == SI_KERNEL }
    }

    /// Whether it would have ended this process.
    pub fn ends(self) -> bool {
        ENDING.contains(&self.signal)
    }

    /// Passes it on to `program`, unless that has it already.
    pub fn pass_on(self, program: Pid) {
        if !self.from_terminal {
            let _ = kill(program, self.signal);
        }
    }
}

/// Hears signals that are kept back.
#[derive(Debug)]
pub(crate) struct Hearing(SignalFd);

impl Hearing {
    /// Hears those of `set`, which every thread keeps back.
    pub fn of(set: &SigSet) -> io::Result<Self> {
        Ok(Self(SignalFd::with_flags(set, SfdFlags::SFD_CLOEXEC)?))
    }

    fn of_those_there(set: &SigSet) -> io::Result<Self> {
        Ok(Self(SignalFd::with_flags(set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }
}

impl Iterator for Hearing {
    type Item = Heard;

    /// Waits for the next; none where nothing more can be heard.
    fn next(&mut self) -> Option<Heard> {
        loop {
            let told = match self.0.read_signal() {
                Err(Errno::EINTR) => continue,
                told => told.ok()??,
            };
            if let Ok(signal) = i32::try_from(told.ssi_signo).map_or(Err(Errno::EINVAL), Signal::try_from) {
                return Some(Heard::new(signal, told.ssi_code));
            }
        }
    }
}

/// Signals are kept from this process for as long as this lives. Programs that are to have them are
/// [ready](super::Program::ready) before.
#[derive(Debug)]
pub(crate) struct KeptBack {
    set: SigSet,
    before: SigSet,
    receiver: Arc<Mutex<Receiver>>,
}

/// Who is to have a signal.
#[derive(Debug)]
enum Receiver {
    Program(Pid),
    /// None runs; what comes now is for the next.
    Next(Vec<Signal>),
    /// This process again.
    Own,
}

impl KeptBack {
    /// For the calling thread and those that it begins from now on.
    pub fn new() -> io::Result<Self> {
        let set = of_program();
        let hearing = Hearing::of(&set)?;
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let receiver = Arc::new(Mutex::new(Receiver::Next(Vec::new())));
        let heard_by = Arc::clone(&receiver);
        std::thread::spawn(move || hearing.for_each(|heard| lock(&heard_by).hear(heard)));
        Ok(Self { set, before, receiver })
    }

    /// Starts a program and waits for it; what comes until it has ended is passed on to it.
    pub fn around<E>(
        &self,
        start: impl FnOnce() -> Result<Child, E>,
        failed: impl FnOnce(io::Error) -> E,
    ) -> Result<(u32, process::Ended), E> {
        // Nothing is passed on until it is known to whom.
        let mut receiver = lock(&self.receiver);
        let child = start()?;
        let program = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        if let Receiver::Next(earlier) = std::mem::replace(&mut *receiver, Receiver::Program(program)) {
            for signal in earlier {
                let _ = kill(program, signal);
            }
        }
        drop(receiver);
        until_end(program);
        *lock(&self.receiver) = Receiver::Next(Vec::new());
        let ended = process::wait(child.id()).map_err(failed)?;
        Ok((child.id(), ended))
    }
}

impl Receiver {
    fn hear(&mut self, heard: Heard) {
        match self {
            Self::Program(program) => heard.pass_on(*program),
            Self::Next(signals) if heard.ends() => signals.push(heard.signal),
            Self::Next(_) => {}
            Self::Own => {
                let _ = SigSet::from(heard.signal).thread_unblock();
                let _ = raise(heard.signal);
            }
        }
    }
}

impl Drop for KeptBack {
    /// What comes so late was for the program: who ends a group of processes ends this one as well.
    fn drop(&mut self) {
        if let Ok(there) = Hearing::of_those_there(&self.set) {
            there.for_each(drop);
        }
        *lock(&self.receiver) = Receiver::Own;
        let _ = self.before.thread_set_mask();
    }
}

fn lock(receiver: &Mutex<Receiver>) -> MutexGuard<'_, Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns when `program` has ended, and leaves it to be waited for: until then, nobody else has its number.
fn until_end(program: Pid) {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(program), flags) == Err(Errno::EINTR) {}
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::program::Program;

    #[test]
    fn what_a_terminal_sends_the_program_has_already() {
        for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGWINCH] {
            assert!(Heard::new(signal, SI_KERNEL).from_terminal && !Heard::new(signal, 0).from_terminal, "{signal}");
        }
        // An alarm outlives the start of this program, and is the system's too.
        assert!(!Heard::new(Signal::SIGALRM, SI_KERNEL).from_terminal);
    }

    #[test]
    fn a_signal_that_comes_while_nothing_runs_is_for_the_next_program() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
        if u64::from_str_radix(ignored, 16).unwrap() & 1 << (Signal::SIGINT as i32 - 1) != 0 {
            // What this process ignores, the program ignores too.
            return lowtide_testing::skip("whoever runs the tests has them ignore SIGINT");
        }
        let command = ["sleep", "60"].map(OsString::from);
        let mut ready = Program::new(&command).ready().unwrap();
        let signals = KeptBack::new().unwrap();
        lock(&signals.receiver).hear(Heard::new(Signal::SIGWINCH, 0));
        lock(&signals.receiver).hear(Heard::new(Signal::SIGINT, SI_KERNEL));
        assert_eq!(ready.run_to_end(&signals).unwrap().code(), 130);
    }
}
