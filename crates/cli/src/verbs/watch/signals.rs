//! Signals while something is watched: one may mark, and the others are passed on to the program or end the watching.

use std::sync::mpsc::{SendError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use lowtide_watch::Event;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use crate::program::{Heard, Hearing, of_program};

/// A signal that marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MarkSignal {
    /// SIGUSR1
    #[value(name = "USR1", alias = "SIGUSR1", alias = "usr1")]
    First,
    /// SIGUSR2
    #[value(name = "USR2", alias = "SIGUSR2", alias = "usr2")]
    Second,
}

impl MarkSignal {
    fn signal(self) -> Signal {
        match self {
            Self::First => Signal::SIGUSR1,
            Self::Second => Signal::SIGUSR2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::First => "USR1",
            Self::Second => "USR2",
        }
    }
}

/// Keeps signals from this thread and those that it begins from now on, until somebody listens.
pub(super) fn keep_back(mark: Option<MarkSignal>) {
    let _ = set(mark).thread_block();
}

fn set(mark: Option<MarkSignal>) -> SigSet {
    let mut set = of_program();
    set.extend(mark.map(MarkSignal::signal));
    set
}

/// Who gets a signal that does not mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Receiver {
    /// The program that was started to be watched.
    Program(Pid),
    /// The watching, which it ends.
    Watching,
    /// Nobody any more: the program has ended, and its number may be another's.
    Nobody,
}

/// Signals that are passed on for as long as this lives.
#[derive(Debug)]
pub(super) struct PassedOn(Arc<Mutex<Receiver>>);

impl PassedOn {
    /// Passes on signals that were kept back.
    pub fn to(receiver: Receiver, mark: Option<MarkSignal>, events: Sender<Event>) -> Self {
        let receiver = Arc::new(Mutex::new(receiver));
        let passed_on = Self(Arc::clone(&receiver));
        // Without a file left to read signals from, none is passed on; all else works.
        let Ok(hearing) = Hearing::of(&set(mark)) else { return passed_on };
        std::thread::spawn(move || {
            for heard in hearing {
                let sent = match mark {
                    Some(mark) if mark.signal() == heard.signal => events.send(Event::Mark(mark.name().to_owned())),
                    _ => lock(&receiver).hear(heard, &events),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        passed_on
    }
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        *lock(&self.0) = Receiver::Nobody;
    }
}

impl Receiver {
    fn hear(self, heard: Heard, events: &Sender<Event>) -> Result<(), SendError<Event>> {
        match self {
            Self::Program(program) => heard.pass_on(program),
            Self::Watching if heard.ends() => return events.send(Event::Stop),
            Self::Watching | Self::Nobody => {}
        }
        Ok(())
    }
}

fn lock(receiver: &Mutex<Receiver>) -> MutexGuard<'_, Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner)
}
