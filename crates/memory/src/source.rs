//! The one trait of this crate, and the few nouns it speaks in.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lowtide_core::{Bytes, StreamId};

use crate::calls::Calls;
use crate::error::Error;

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// The first address.
    pub start: u64,
    /// How many bytes follow.
    pub bytes: Bytes,
}

impl Span {
    /// `bytes` from `start` on.
    pub fn new(start: u64, bytes: Bytes) -> Self {
        Self { start, bytes }
    }

    /// The first address behind it, or the last there is.
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.bytes.get())
    }
}

/// What a source is, for people and for strategies that choose by it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Description {
    /// In words: `host memory, transparent huge pages`, `NVIDIA H200, device 0`.
    pub name: String,
    /// Every span that is committed, decommitted or mapped twice is a multiple of this.
    pub granularity: Bytes,
    /// The memory there is, where that is known.
    pub capacity: Option<Bytes>,
    /// Whether memory can have two addresses at once ([`Source::alias`]).
    pub aliases: bool,
    /// Whether memory can change its address with its contents ([`Source::relocate`]).
    pub relocates: bool,
    /// Whether the processor may read and write the addresses.
    pub host_visible: bool,
    /// Whether work on the memory is queued, so that a freed block may still be in use.
    pub queued: bool,
    /// What was asked for and not granted, and what was taken instead: one sentence each.
    pub fallbacks: Vec<String>,
}

/// A point in a stream's queue of work; see [`Source::mark`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mark(pub u64);

/// Addresses, the memory under them, and the order of the work that uses it.
///
/// A span that was [committed](Source::commit) in one call is one *handle*: a device maps, unmaps and gives it back
/// whole. Every call is safe to make from any thread; spans that do not belong to the source are an [`Error`], never
/// undefined behaviour.
pub trait Source: Send + Sync + fmt::Debug {
    /// What this source is.
    fn describe(&self) -> Description;

    /// Addresses without memory, aligned at least to the granularity. The span that comes back is a whole number of
    /// granules, so it may be larger than what was asked for.
    fn reserve(&self, bytes: Bytes) -> Result<Span, Error>;

    /// Gives addresses back, and whatever memory is still under them. `span` is one that [`Source::reserve`] gave.
    fn release(&self, span: Span) -> Result<(), Error>;

    /// Puts memory under a part of a reserved span that has none: one handle.
    fn commit(&self, span: Span) -> Result<(), Error>;

    /// Takes the memory from under `span`, which is covered by whole handles. Memory that has another address stays
    /// there; otherwise it is given back. A span that is not so covered is [`Error::BadSpan`] and changes nothing; after
    /// any other error a part of the span may have lost its memory.
    fn decommit(&self, span: Span) -> Result<(), Error>;

    /// Gives the memory of the handle that lies at `from` the address `to` as well.
    fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        let _ = (from, to);
        Err(Error::Unsupported { what: "two addresses for the same memory", by: self.describe().name })
    }

    /// Moves the memory at `from`, with its contents, to the address `to`.
    fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        let _ = (from, to);
        Err(Error::Unsupported { what: "moving memory to another address", by: self.describe().name })
    }

    /// What was asked of the system or the driver so far.
    fn calls(&self) -> Calls;

    /// The time that passes for the program, since a moment that does not change. It is the machine's clock unless the source is a model that
    /// has its own.
    fn now(&self) -> Duration {
        machine_time()
    }

    /// A mark behind all work that is queued on `stream` now.
    fn mark(&self, stream: StreamId) -> Result<Mark, Error>;

    /// Whether the work before `mark` is done. A mark that was [forgotten](Source::forget) has passed.
    fn passed(&self, mark: Mark) -> bool;

    /// Lets `stream` wait for `mark` before it begins what is queued on it from now on. The caller goes on at once.
    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error>;

    /// Lets the caller wait for `mark`.
    fn wait(&self, mark: Mark) -> Result<(), Error>;

    /// The caller asks no more about `mark`.
    fn forget(&self, mark: Mark);

    /// Lets the caller wait for all work that is queued on any stream. Memory that the processor alone uses has none.
    fn drain(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// The time since the process first asked for it.
pub(crate) fn machine_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
