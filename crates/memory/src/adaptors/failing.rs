//! The failure injector: a source that fails on purpose, so that whoever builds on one can show that every error, and
//! every panic, leaves things as they should be. A test counts the calls of a run with [`FailWhen::Never`], and then
//! lets each of them fail in turn with [`FailWhen::Nth`].

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::random::{Random, mix};
use lowtide_core::{Bytes, StreamId};

use crate::error::Error;
use crate::source::{Mark, Source, Span};

/// A call that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    /// [`Source::reserve`]
    Reserve,
    /// [`Source::release`]
    Release,
    /// [`Source::commit`]
    Commit,
    /// [`Source::decommit`]
    Decommit,
    /// [`Source::alias`]
    Alias,
    /// [`Source::relocate`]
    Relocate,
    /// [`Source::mark`]
    Mark,
    /// [`Source::hold`]
    Hold,
    /// [`Source::wait`]
    Wait,
}

/// How a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Failure {
    /// With [`Error::OutOfMemory`].
    #[default]
    OutOfMemory,
    /// With [`Error::Refused`].
    Refused,
    /// With a panic, as a defect would.
    Panic,
}

/// Which of the calls fail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FailWhen {
    /// None: calls are counted only.
    Never,
    /// The one with this number; the first is 1.
    Nth(u64),
    /// The one with this number and all that follow.
    From(u64),
    /// Each with a probability, drawn from a seed.
    Randomly {
        /// Between 0 and 1.
        probability: f64,
        /// The same seed fails the same calls.
        seed: u64,
    },
}

impl FailWhen {
    /// Whether the call with this number fails.
    pub fn hits(self, number: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Nth(nth) => number == nth,
            Self::From(first) => number >= first,
            Self::Randomly { probability, seed } => Random::new(seed ^ mix(number)).fraction() < probability,
        }
    }
}

/// Which calls fail, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct FailPlan {
    /// Which.
    pub when: FailWhen,
    /// The kinds that are counted and fail; all of them where none is named.
    pub kinds: Vec<CallKind>,
    /// How.
    pub failure: Failure,
}

impl FailPlan {
    /// Calls of any kind, out of memory.
    pub fn new(when: FailWhen) -> Self {
        Self { when, kinds: Vec::new(), failure: Failure::default() }
    }

    /// Counts and fails these kinds alone.
    #[must_use]
    pub fn only(mut self, kinds: &[CallKind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// Fails in another way.
    #[must_use]
    pub fn with(mut self, failure: Failure) -> Self {
        self.failure = failure;
        self
    }
}

/// Another source, some of whose calls fail. A call that fails does nothing.
#[derive(Debug)]
pub struct Failing<S> {
    source: S,
    plan: FailPlan,
    made: AtomicU64,
    failed: AtomicU64,
}

impl<S: Source> Failing<S> {
    /// `source`, failing by `plan`.
    pub fn new(source: S, plan: FailPlan) -> Self {
        Self { source, plan, made: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// The source within.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Calls of the plan's kinds so far, those that failed among them.
    pub fn calls_made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Calls that failed on purpose.
    pub fn calls_failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn pass(&self, kind: CallKind, asked: Bytes) -> Result<(), Error> {
        if !self.plan.kinds.is_empty() && !self.plan.kinds.contains(&kind) {
            return Ok(());
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.plan.when.hits(number) {
            return Ok(());
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        Err(match self.plan.failure {
            Failure::OutOfMemory => Error::OutOfMemory { asked },
            Failure::Panic => panic!("call {number} panics on purpose"),
            Failure::Refused => Error::Refused { call: "Failing", why: format!("call {number} fails on purpose") },
        })
    }
}

impl<S: Source> Source for Failing<S> {
    crate::forward_to_source!(describe, calls, now, passed, forget, drain);

    fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        self.pass(CallKind::Reserve, bytes)?;
        self.source.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        self.pass(CallKind::Release, span.bytes)?;
        self.source.release(span)
    }

    fn commit(&self, span: Span) -> Result<(), Error> {
        self.pass(CallKind::Commit, span.bytes)?;
        self.source.commit(span)
    }

    fn decommit(&self, span: Span) -> Result<(), Error> {
        self.pass(CallKind::Decommit, span.bytes)?;
        self.source.decommit(span)
    }

    fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        self.pass(CallKind::Alias, from.bytes)?;
        self.source.alias(from, to)
    }

    fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        self.pass(CallKind::Relocate, from.bytes)?;
        self.source.relocate(from, to)
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        self.pass(CallKind::Mark, Bytes::ZERO)?;
        self.source.mark(stream)
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        self.pass(CallKind::Hold, Bytes::ZERO)?;
        self.source.hold(stream, mark)
    }

    fn wait(&self, mark: Mark) -> Result<(), Error> {
        self.pass(CallKind::Wait, Bytes::ZERO)?;
        self.source.wait(mark)
    }
}
