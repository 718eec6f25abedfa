//! Signals while something is watched: they are told as events, and one may mark.

use std::sync::mpsc::Sender;

use clap::ValueEnum;
use nix::sys::signal::{SigSet, Signal};

use super::Event;
use crate::program::{Hearing, of_program};

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

/// Tells of signals that were kept back.
pub(super) fn listen(mark: Option<MarkSignal>, events: Sender<Event>) {
    // Whoever has no file left to hear with hears nothing; all else goes on.
    let Ok(hearing) = Hearing::of(&set(mark)) else { return };
    std::thread::spawn(move || {
        for heard in hearing {
            let event = match mark {
                Some(mark) if mark.signal() == heard.signal => Event::Mark(mark.name().to_owned()),
                _ => Event::Signal(heard),
            };
            if events.send(event).is_err() {
                return;
            }
        }
    });
}
