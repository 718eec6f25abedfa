//! The memory of captured graphs. A graph will use every address that it was captured with, at any time and on any
//! stream: nothing is ever moved, given back or ordered by marks until the pool goes as a whole.

use std::sync::Arc;

use lowtide_core::StreamId;
use lowtide_memory::{Description, Error, Mark, Source, Span, forward_to_source};

/// Another source, whose memory stays where it is put until its addresses go.
#[derive(Debug)]
pub(super) struct Still {
    source: Arc<dyn Source>,
}

impl Still {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source }
    }
}

impl Source for Still {
    forward_to_source!(reserve, release, commit, calls, now, drain);

    fn describe(&self) -> Description {
        Description { queued: false, aliases: false, relocates: false, ..self.source.describe() }
    }

    /// Refused as if there were no more memory: whoever gives back for want of it is to say so.
    fn decommit(&self, span: Span) -> Result<(), Error> {
        Err(Error::OutOfMemory { asked: span.bytes })
    }

    fn mark(&self, _stream: StreamId) -> Result<Mark, Error> {
        Ok(Mark(0))
    }

    fn passed(&self, _mark: Mark) -> bool {
        true
    }

    fn hold(&self, _stream: StreamId, _mark: Mark) -> Result<(), Error> {
        Ok(())
    }

    fn wait(&self, _mark: Mark) -> Result<(), Error> {
        Ok(())
    }

    fn forget(&self, _mark: Mark) {}
}
