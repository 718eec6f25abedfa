//! The arena under a program's own `malloc`: blocks of 32 KiB and more in one long range of host memory. Placement works on
//! addresses; pages follow by themselves when they are touched, and go back when nothing has used them for a while.
//!
//! Between steps of a program that repeats, the [learner](lowtide_learn::Learner)'s plan gets a run of free memory:
//! once steps are met to the last block, and the program closes them itself, planned blocks come and go without the arena's lock. All
//! others are placed around them.
//!
//! Whoever waits for the lock may be inside `dlopen`: nothing is done under it that needs the loader, such as the first use of a
//! thread-local that has a destructor.

mod clock;
mod pages;
mod plan_range;
mod state;
mod step_boundary;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use lowtide_memory::{Error as MemoryError, HostOptions, Pages};

use crate::error::Error;
use crate::pool::{Address, Request, UNIT};
use crate::serving::{Found, Given, Published};
use lowtide_learn::LearnerOptions;
use state::{State, Taken};

/// How a [`HostArena`] works.
#[derive(Clone, PartialEq, Debug)]
pub struct HostArenaOptions {
    /// How many addresses to take; where the system has not so many, fewer.
    pub range: Bytes,
    /// What pages to ask for.
    pub pages: HostOptions,
    /// How to learn the steps of the program and plan them; without it, blocks are placed as they come.
    pub learner: Option<LearnerOptions>,
    /// After how many allocations to find steps by their period, until the program closes one itself.
    pub find_steps: Option<u64>,
    /// How long memory is kept that nothing uses.
    pub decay: Duration,
}

impl Default for HostArenaOptions {
    fn default() -> Self {
        let learner = LearnerOptions {
            patterns: 32,
            longest: 1 << 16,
            time_limit: Duration::from_millis(20),
            ..LearnerOptions::default()
        };
        Self {
            range: Bytes::new(1 << 42),
            pages: HostOptions { pages: Pages::Transparent, ..HostOptions::default() },
            learner: Some(learner),
            find_steps: Some(64),
            decay: Duration::from_secs(10),
        }
    }
}

/// What a [`HostArena`] holds and has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostStats {
    /// What blocks hold.
    pub live: Bytes,
    /// The most that was seen.
    pub peak_live: Bytes,
    /// How many blocks there are.
    pub blocks: u64,
    /// What may be resident.
    pub resident: Bytes,
    /// Blocks handed out.
    pub allocations: u64,
    /// Of those that were asked for while a plan was served, how many had their place in it.
    pub hits: u64,
    /// And how many did not.
    pub misses: u64,
    /// Steps that were closed.
    pub steps: u64,
    /// Whether the program closes its steps itself.
    pub marked: bool,
    /// The step in which a plan was served first.
    pub planned_from: Option<u64>,
    /// What was not granted or went wrong without being an error, a sentence each.
    pub warnings: Vec<String>,
}

/// The arena.
#[derive(Debug)]
pub struct HostArena {
    range: Range<u64>,
    state: Mutex<State>,
    /// The plan that is served, if one is.
    served: Published,
    /// Whether the program has said that its step is over: the next allocation closes it, so that what is let go in
    /// between belongs to it.
    step_is_over: AtomicBool,
    /// Blocks handed out without the lock.
    unlocked: AtomicU64,
}

impl HostArena {
    /// Takes addresses, and no memory yet.
    pub fn new(options: HostArenaOptions) -> Result<Self, MemoryError> {
        let served = Published::default();
        let state = State::new(options, Arc::clone(&served))?;
        let span = state.span();
        Ok(Self {
            range: span.start..span.end(),
            state: Mutex::new(state),
            served,
            step_is_over: AtomicBool::new(false),
            unlocked: AtomicU64::new(0),
        })
    }

    /// Where all its blocks are, and nobody else's, until it is made [shorter](Self::shrink_range).
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// A block, for a thread of the program; none where there is no room.
    pub fn alloc(&self, bytes: u64, align: u64, thread: ThreadId) -> Option<u64> {
        self.take(bytes, align, thread, None)
    }

    /// A block of zeros: `zero` is called for each part that has to be cleared, and not for pages that are empty anyway.
    pub fn alloc_zeroed(
        &self,
        bytes: u64,
        align: u64,
        thread: ThreadId,
        zero: &mut dyn FnMut(Range<u64>),
    ) -> Option<u64> {
        self.take(bytes, align, thread, Some(zero))
    }

    fn take(&self, bytes: u64, align: u64, thread: ThreadId, zero: Option<&mut dyn FnMut(Range<u64>)>) -> Option<u64> {
        let request = request(bytes, align, thread)?;
        if self.step_is_over.load(Ordering::Relaxed) && self.step_is_over.swap(false, Ordering::Relaxed) {
            self.state().close_marked_step();
        }
        let found = self.served.load().as_ref().and_then(|served| match served.take(&request)? {
            Found::At(offset) => Some(Some(served.address(offset).0)),
            Found::Online | Found::Missed => Some(None),
        });
        let taken = match found {
            Some(Some(address)) => {
                self.unlocked.fetch_add(1, Ordering::Relaxed);
                if let Some(zero) = zero {
                    zero(address..address + bytes);
                }
                return Some(address);
            }
            Some(None) => self.state().place(&request, zero.is_some()),
            None => self.state().alloc(&request, zero.is_some()),
        };
        let Taken { address, dirty } = taken?;
        // The block is the caller's by now: nobody has to wait while it is cleared.
        if let Some(zero) = zero {
            dirty.into_iter().for_each(zero);
        }
        Some(address)
    }

    /// Takes a block back.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        let address = Address(address);
        match self.served.load().as_ref().map_or(Given::No, |served| served.give(address)) {
            Given::Yes => Ok(()),
            Given::Late(number) => {
                self.state().free_dropped(address, number);
                Ok(())
            }
            Given::No => self.state().free(address),
        }
    }

    /// How many bytes of a block can be used.
    pub fn usable(&self, address: u64) -> Option<u64> {
        self.state().usable(Address(address))
    }

    /// Makes a block larger or smaller where it is, and says whether that was possible. Where not, nothing has changed.
    pub fn resize(&self, address: u64, bytes: u64) -> Result<bool, Error> {
        self.state().resize(Address(address), bytes)
    }

    /// The program's step is over.
    pub fn step(&self) {
        self.step_is_over.store(true, Ordering::Relaxed);
    }

    /// Gives all memory back that no block holds, and says how much may have been resident.
    pub fn trim(&self) -> Bytes {
        self.state().trim()
    }

    /// Gives memory back that nothing has used for long; `now` is any clock that goes on.
    pub fn tick(&self, now: Duration) {
        self.state().tick(now);
    }

    /// How much more memory the system would give the program, or others beside it, as was found out just now. What is kept beyond a part of that
    /// is the system's to take.
    pub fn set_room(&self, room: Option<Bytes>) {
        self.state().set_room(room);
    }

    /// What it holds and has done.
    pub fn stats(&self) -> HostStats {
        let mut stats = self.state().stats();
        stats.allocations += self.unlocked.load(Ordering::Relaxed);
        stats
    }

    /// The same, where that can be told without waiting.
    pub fn try_stats(&self) -> Option<HostStats> {
        let mut stats = match self.state.try_lock() {
            Ok(mut state) => state.stats(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().stats(),
            Err(TryLockError::WouldBlock) => return None,
        };
        stats.allocations += self.unlocked.load(Ordering::Relaxed);
        Some(stats)
    }

    /// Gives addresses back that were never used, because others may get no more of them. `announce` gets the range that
    /// is left before they are anybody else's. What does not fit from now on is refused.
    pub fn shrink_range(&self, announce: impl FnOnce(Range<u64>)) {
        self.state().shrink_range(announce);
    }

    /// Gives all addresses back that no block lies on, as far as they can be; what is freed later serves no other block. `announce` is as in
    /// [`shrink_range`](Self::shrink_range).
    pub fn close(&self, announce: impl FnOnce(Range<u64>)) {
        self.state().close(announce);
    }

    /// Holds everything still, so that the process can be forked.
    pub fn freeze(&'static self) -> Frozen {
        let state = self.state();
        state.pause();
        Frozen { arena: self, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread's first look registers a destructor.
        drop(self.served.load());
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An arena that is held still.
#[derive(Debug)]
pub struct Frozen {
    arena: &'static HostArena,
    state: MutexGuard<'static, State>,
}

impl Frozen {
    /// Goes on.
    pub fn thaw(self) {
        self.state.resume();
    }

    /// Goes on in a forked child: its blocks are there; the threads that served or planned for its parent are not. What the
    /// parent has done is not counted.
    pub fn thaw_in_child(mut self) {
        self.arena.unlocked.store(0, Ordering::Relaxed);
        self.arena.step_is_over.store(false, Ordering::Relaxed);
        self.state.start_anew();
    }
}

/// The request for a block; none where sizes make no sense.
fn request(bytes: u64, align: u64, thread: ThreadId) -> Option<Request> {
    const MOST: u64 = 1 << 46;
    let align = Align::new(align.max(UNIT)).filter(|align| align.get().is_power_of_two())?;
    (bytes > 0 && bytes <= MOST && align.get() <= MOST).then(|| Request {
        bytes: Bytes::new(bytes),
        align,
        stream: StreamId::default(),
        thread,
    })
}
