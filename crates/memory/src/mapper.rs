//! Handles mapped into reserved addresses: the way every source of this crate works. A [`Backing`] makes the few calls
//! that differ between kinds of memory; a [`Mapper`] checks spans, accounts for handles, counts calls, and cleans up
//! after errors.

mod ledger;
mod queue;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lowtide_core::{Bytes, StreamId};

use crate::calls::{Calls, Counter};
use crate::error::Error;
use crate::mapper::ledger::Ledger;
use crate::source::{Description, Mark, Span};

pub(crate) use queue::{NoQueue, Queue};

/// What a call to the system does to one handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Create,
    Map,
    Unmap,
    Destroy,
}

/// The calls that one kind of memory needs. Spans were checked and no two calls run at once, marks aside.
pub(crate) trait Backing: Send + Sync + fmt::Debug {
    /// What the system knows a handle by.
    type Handle: Copy + Send + fmt::Debug;

    /// How work on the memory is queued.
    type Queue: Queue;

    /// What the source is.
    fn describe(&self) -> Description;

    /// The work on the memory.
    fn queue(&self) -> &Self::Queue;

    /// `bytes` of addresses, a whole number of granules.
    fn reserve(&self, bytes: Bytes) -> Result<u64, Error>;

    /// Gives a reserved range back, in which nothing is mapped.
    fn release(&self, span: Span) -> Result<(), Error>;

    /// Makes a handle that has no address yet.
    fn create(&self, bytes: Bytes) -> Result<Self::Handle, Error>;

    /// Gives a handle back that has no address any more.
    fn destroy(&self, handle: Self::Handle, bytes: Bytes) -> Result<(), Error>;

    /// Maps a handle at reserved, vacant addresses; where it fails, nothing is mapped.
    fn map(&self, handle: Self::Handle, span: Span) -> Result<(), Error>;

    /// Leaves the addresses reserved and vacant.
    fn unmap(&self, handle: Self::Handle, span: Span) -> Result<(), Error>;

    /// Moves a handle in one call; `None` where mapping it again and unmapping the old address is the way.
    fn relocate(&self, from: Span, to: Span) -> Option<Result<(), Error>> {
        let _ = (from, to);
        None
    }

    /// What a step costs where that is not measured.
    fn cost(&self, step: Step) -> Option<u64> {
        let _ = step;
        None
    }
}

/// The handles that are mapped, and those that the system has not taken back yet.
#[derive(Debug)]
struct Handles<H> {
    ledger: Ledger<H>,
    orphans: Vec<(H, Bytes)>,
}

/// A source made of a [`Backing`].
#[derive(Debug)]
pub(crate) struct Mapper<B: Backing> {
    backing: B,
    aliases: bool,
    relocates: bool,
    handles: Mutex<Handles<B::Handle>>,
    counter: Counter,
}

impl<B: Backing> Mapper<B> {
    pub(crate) fn new(backing: B) -> Self {
        let Description { granularity, aliases, relocates, .. } = backing.describe();
        let handles = Mutex::new(Handles { ledger: Ledger::new(granularity), orphans: Vec::new() });
        Self { backing, aliases, relocates, handles, counter: Counter::default() }
    }

    pub(crate) fn backing(&self) -> &B {
        &self.backing
    }

    pub(crate) fn calls(&self) -> Calls {
        self.counter.read()
    }

    pub(crate) fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        let mut handles = self.lock();
        let bytes = handles.ledger.round_up(bytes)?;
        let span = Span::new(self.backing.reserve(bytes)?, bytes);
        handles.ledger.reserve(span);
        self.counter.reserve();
        Ok(span)
    }

    pub(crate) fn release(&self, span: Span) -> Result<(), Error> {
        let mut handles = self.lock();
        handles.ledger.check_reservation(span)?;
        self.clear(&mut handles, span)?;
        self.backing.release(span)?;
        handles.ledger.unreserve(span);
        self.counter.release();
        Ok(())
    }

    pub(crate) fn commit(&self, span: Span) -> Result<(), Error> {
        let mut handles = self.lock();
        handles.ledger.check_vacant(span)?;
        self.destroy_orphans(&mut handles);
        let handle = self.timed(Step::Create, || self.backing.create(span.bytes))?;
        self.counter.create(span.bytes);
        if let Err(error) = self.timed(Step::Map, || self.backing.map(handle, span)) {
            self.destroy(&mut handles, handle, span.bytes);
            return Err(error);
        }
        self.counter.map();
        handles.ledger.create(handle, span);
        Ok(())
    }

    pub(crate) fn decommit(&self, span: Span) -> Result<(), Error> {
        let mut handles = self.lock();
        handles.ledger.check_covered(span)?;
        self.clear(&mut handles, span)
    }

    pub(crate) fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        if !self.aliases {
            return Err(self.unsupported("two addresses for the same memory"));
        }
        let mut handles = self.lock();
        self.map_again(&mut handles, from, to)
    }

    pub(crate) fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        if !self.relocates {
            return Err(self.unsupported("moving memory to another address"));
        }
        let mut handles = self.lock();
        handles.ledger.mapping(from)?;
        let target = Span::new(to, from.bytes);
        handles.ledger.check_vacant(target)?;
        let begun = Instant::now();
        if let Some(moved) = self.backing.relocate(from, target) {
            self.counter.charge(nanoseconds_since(begun));
            moved?;
            handles.ledger.relocate(from.start, to);
            self.counter.map();
            self.counter.unmap();
            return Ok(());
        }
        self.map_again(&mut handles, from, to)?;
        self.clear(&mut handles, from).inspect_err(|_| {
            let _ = self.clear(&mut handles, target);
        })
    }

    /// Whether there is memory under every byte of `span`.
    pub(crate) fn is_backed(&self, span: Span) -> bool {
        self.lock().ledger.is_backed(span)
    }

    pub(crate) fn now(&self) -> Duration {
        self.backing.queue().now()
    }

    pub(crate) fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        self.backing.queue().mark(stream)
    }

    pub(crate) fn passed(&self, mark: Mark) -> bool {
        self.backing.queue().passed(mark)
    }

    pub(crate) fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        self.backing.queue().hold(stream, mark)?;
        self.counter.hold();
        Ok(())
    }

    pub(crate) fn wait(&self, mark: Mark) -> Result<(), Error> {
        if self.backing.queue().passed(mark) {
            return Ok(());
        }
        let begun = Instant::now();
        let waited = self.backing.queue().wait(mark)?;
        self.counter.wait(waited.unwrap_or_else(|| nanoseconds_since(begun)));
        Ok(())
    }

    pub(crate) fn forget(&self, mark: Mark) {
        self.backing.queue().forget(mark);
    }

    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.backing.queue().drain()
    }

    fn map_again(&self, handles: &mut Handles<B::Handle>, from: Span, to: u64) -> Result<(), Error> {
        let (index, handle) = handles.ledger.mapping(from)?;
        let target = Span::new(to, from.bytes);
        handles.ledger.check_vacant(target)?;
        self.timed(Step::Map, || self.backing.map(handle, target))?;
        self.counter.map();
        handles.ledger.map(index, target);
        Ok(())
    }

    /// Unmaps whatever begins in `span`.
    fn clear(&self, handles: &mut Handles<B::Handle>, span: Span) -> Result<(), Error> {
        while let Some((place, handle)) = handles.ledger.first_in(span) {
            self.timed(Step::Unmap, || self.backing.unmap(handle, place))?;
            self.counter.unmap();
            if let Some((handle, bytes)) = handles.ledger.unmap(place.start) {
                self.destroy(handles, handle, bytes);
            }
        }
        Ok(())
    }

    /// Gives a handle back. One that the system does not take stays counted as committed and is tried again.
    fn destroy(&self, handles: &mut Handles<B::Handle>, handle: B::Handle, bytes: Bytes) {
        match self.timed(Step::Destroy, || self.backing.destroy(handle, bytes)) {
            Ok(()) => self.counter.destroy(bytes),
            Err(_) => handles.orphans.push((handle, bytes)),
        }
    }

    fn destroy_orphans(&self, handles: &mut Handles<B::Handle>) {
        for (handle, bytes) in std::mem::take(&mut handles.orphans) {
            self.destroy(handles, handle, bytes);
        }
    }

    fn timed<T>(&self, step: Step, call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if let Some(cost) = self.backing.cost(step) {
            return call().inspect(|_| self.counter.charge(cost));
        }
        let begun = Instant::now();
        let result = call();
        self.counter.charge(nanoseconds_since(begun));
        result
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported { what, by: self.backing.describe().name }
    }

    fn lock(&self) -> MutexGuard<'_, Handles<B::Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Backing> Drop for Mapper<B> {
    /// Gives back whatever is still reserved. A range that the system does not take back is left to it.
    fn drop(&mut self) {
        while let Some(span) = { self.lock().ledger.any_reservation() } {
            // A call that fails once is tried again: a driver may refuse while other work is under way.
            if self.release(span).is_err() && self.release(span).is_err() {
                let mut handles = self.lock();
                while let Some((place, _)) = handles.ledger.first_in(span) {
                    handles.ledger.unmap(place.start);
                }
                handles.ledger.unreserve(span);
            }
        }
        let mut handles = self.lock();
        self.destroy_orphans(&mut handles);
    }
}

fn nanoseconds_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Makes a struct with a field `mapper` a [`Source`](crate::Source).
macro_rules! source_by_mapper {
    ($source:ty) => {
        impl $crate::Source for $source {
            fn describe(&self) -> $crate::Description {
                $crate::mapper::Backing::describe(self.mapper.backing())
            }

            fn reserve(&self, bytes: ::lowtide_core::Bytes) -> Result<$crate::Span, $crate::Error> {
                self.mapper.reserve(bytes)
            }

            fn release(&self, span: $crate::Span) -> Result<(), $crate::Error> {
                self.mapper.release(span)
            }

            fn commit(&self, span: $crate::Span) -> Result<(), $crate::Error> {
                self.mapper.commit(span)
            }

            fn decommit(&self, span: $crate::Span) -> Result<(), $crate::Error> {
                self.mapper.decommit(span)
            }

            fn alias(&self, from: $crate::Span, to: u64) -> Result<(), $crate::Error> {
                self.mapper.alias(from, to)
            }

            fn relocate(&self, from: $crate::Span, to: u64) -> Result<(), $crate::Error> {
                self.mapper.relocate(from, to)
            }

            fn calls(&self) -> $crate::Calls {
                self.mapper.calls()
            }

            fn now(&self) -> ::std::time::Duration {
                self.mapper.now()
            }

            fn mark(&self, stream: ::lowtide_core::StreamId) -> Result<$crate::Mark, $crate::Error> {
                self.mapper.mark(stream)
            }

            fn passed(&self, mark: $crate::Mark) -> bool {
                self.mapper.passed(mark)
            }

            fn hold(&self, stream: ::lowtide_core::StreamId, mark: $crate::Mark) -> Result<(), $crate::Error> {
                self.mapper.hold(stream, mark)
            }

            fn wait(&self, mark: $crate::Mark) -> Result<(), $crate::Error> {
                self.mapper.wait(mark)
            }

            fn forget(&self, mark: $crate::Mark) {
                self.mapper.forget(mark);
            }

            fn drain(&self) -> Result<(), $crate::Error> {
                self.mapper.drain()
            }
        }
    };
}

pub(crate) use source_by_mapper;
