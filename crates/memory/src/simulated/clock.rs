//! The clock of a simulated device and the marks that pass by it. Time moves when it is set and when somebody waits; a clock that [runs](Clock::run) moves
//! by itself too; calls are charged and take no time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lowtide_core::StreamId;

use crate::error::Error;
use crate::mapper::Queue;
use crate::slots::Slots;
use crate::source::Mark;

/// When the work before a mark is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lag {
    /// So many nanoseconds after the mark was made.
    After(u64),
    /// At a given time of the clock; at once where that is past.
    At(u64),
    /// At no time.
    Never,
}

const NEVER: u64 = u64::MAX;

#[derive(Debug)]
struct Marks {
    lag: Lag,
    /// When each mark passes.
    times: Slots<u64>,
}

#[derive(Debug)]
pub(crate) struct Clock {
    now: AtomicU64,
    /// When it began to run by itself.
    running_since: Option<Instant>,
    marks: Mutex<Marks>,
}

impl Clock {
    pub(crate) fn new(lag: Lag) -> Self {
        let marks = Marks { lag, times: Slots::default() };
        Self { now: AtomicU64::new(0), running_since: None, marks: Mutex::new(marks) }
    }

    /// The same, whose time is never behind that of the machine.
    pub(crate) fn run(self) -> Self {
        Self { running_since: Some(Instant::now()), ..self }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        let passed = self.running_since.map_or(0, |start| start.elapsed().as_nanos() as u64);
        self.now.load(Ordering::Relaxed).max(passed)
    }

    pub(crate) fn advance(&self, nanoseconds: u64) {
        let before = self.now_ns();
        let later = |now: u64| Some(now.max(before).saturating_add(nanoseconds));
        let _ = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    pub(crate) fn set(&self, time: u64) {
        self.now.fetch_max(time, Ordering::Relaxed);
    }

    pub(crate) fn set_lag(&self, lag: Lag) {
        self.lock().lag = lag;
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Clock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
    }

    fn mark(&self, _stream: StreamId) -> Result<Mark, Error> {
        let now = self.now_ns();
        let mut marks = self.lock();
        let passes_at = match marks.lag {
            Lag::After(lag) => now.saturating_add(lag).min(NEVER - 1),
            Lag::At(time) => time.min(NEVER - 1),
            Lag::Never => NEVER,
        };
        Ok(marks.times.insert(passes_at))
    }

    fn passed(&self, mark: Mark) -> bool {
        let time = self.lock().times.get_mut(mark).copied();
        time.is_none_or(|time| time != NEVER && time <= self.now_ns())
    }

    /// Moves the clock on to where `mark` passes, and says by how much.
    fn wait(&self, mark: Mark) -> Result<Option<u64>, Error> {
        let Some(time) = self.lock().times.get_mut(mark).copied() else { return Ok(Some(0)) };
        if time == NEVER {
            return Err(Error::Refused { call: "wait", why: "the work never ends in this recording".to_owned() });
        }
        let before = self.now_ns();
        self.set(time);
        Ok(Some(time.saturating_sub(before)))
    }

    /// Moves the clock on to where every mark has passed that ever does.
    fn drain(&self) -> Result<(), Error> {
        let last = self.lock().times.iter().copied().filter(|&time| time != NEVER).max();
        self.now.fetch_max(last.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    fn forget(&self, mark: Mark) {
        self.lock().times.remove(mark);
    }
}
