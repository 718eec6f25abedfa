//! Work that is queued on memory, and the marks in it. Each function is what [`Source`](crate::Source) says of the one of
//! its name.

use std::fmt;
use std::time::Duration;

use lowtide_core::StreamId;

use crate::error::Error;
use crate::source::{Mark, machine_time};

/// A queue of work. By itself it is that of memory which the processor alone uses: there is none, and marks pass at once.
pub(crate) trait Queue: Send + Sync + fmt::Debug {
    fn now(&self) -> Duration {
        machine_time()
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        let _ = stream;
        Ok(Mark(0))
    }

    fn passed(&self, mark: Mark) -> bool {
        let _ = mark;
        true
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        let _ = (stream, mark);
        Ok(())
    }

    /// The nanoseconds are for a wait that is not measured.
    fn wait(&self, mark: Mark) -> Result<Option<u64>, Error> {
        let _ = mark;
        Ok(None)
    }

    fn forget(&self, mark: Mark) {
        let _ = mark;
    }

    fn drain(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// No queue.
#[derive(Debug)]
pub(crate) struct NoQueue;

impl Queue for NoQueue {}
