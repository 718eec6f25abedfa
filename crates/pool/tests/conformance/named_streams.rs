//! A source of a real device under the streams of the checks: those are numbers, the driver's are handles. Every number
//! stands for one of the three streams that every context has.

use std::time::Duration;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Calls, Description, Error, Mark, Source, Span};

#[derive(Debug)]
pub struct NamedStreams<S>(pub S);

/// The default stream, and the handles that the driver keeps for the legacy and the thread's own one.
fn handle(stream: StreamId) -> StreamId {
    StreamId(stream.0 % 3)
}

impl<S: Source> Source for NamedStreams<S> {
    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        self.0.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        self.0.release(span)
    }

    fn commit(&self, span: Span) -> Result<(), Error> {
        self.0.commit(span)
    }

    fn decommit(&self, span: Span) -> Result<(), Error> {
        self.0.decommit(span)
    }

    fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        self.0.alias(from, to)
    }

    fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        self.0.relocate(from, to)
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn calls(&self) -> Calls {
        self.0.calls()
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        self.0.mark(handle(stream))
    }

    fn passed(&self, mark: Mark) -> bool {
        self.0.passed(mark)
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        self.0.hold(handle(stream), mark)
    }

    fn wait(&self, mark: Mark) -> Result<(), Error> {
        self.0.wait(mark)
    }

    fn forget(&self, mark: Mark) {
        self.0.forget(mark);
    }
}
