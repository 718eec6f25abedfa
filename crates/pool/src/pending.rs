//! Freed blocks that wait for the work of other streams. A mark is set on each of those streams when the block is freed; the
//! block's memory is free once all of them have passed. Every mark that is set is forgotten exactly once.

use std::collections::VecDeque;

use lowtide_core::StreamId;
use lowtide_memory::{Error as SourceError, Mark, Source};

/// A block, by its address, and the marks that have not passed yet.
#[derive(Debug)]
struct Waiting {
    address: u64,
    marks: Vec<Mark>,
}

/// The blocks that wait, the one that was freed first first.
#[derive(Debug, Default)]
pub(crate) struct PendingBlocks {
    waiting: VecDeque<Waiting>,
    /// How many were added since the count was last reset.
    added: u64,
}

impl PendingBlocks {
    /// Whether no block waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Lets a freed block wait for what is queued on `streams`. Where a stream cannot be marked, nothing
    /// has changed.
    pub(crate) fn push(&mut self, address: u64, streams: &[StreamId], source: &dyn Source) -> Result<(), SourceError> {
        let marks = mark_all(streams.iter().copied(), source)?;
        self.waiting.push_back(Waiting { address, marks });
        self.added += 1;
        Ok(())
    }

    /// Takes out the blocks that have nothing to wait for any more, among the `most` that have waited longest.
    pub(crate) fn poll(&mut self, most: usize, source: &dyn Source) -> Vec<u64> {
        let (mut done, mut index) = (Vec::new(), 0);
        while index < self.waiting.len().min(most) {
            let marks = &mut self.waiting[index].marks;
            while let Some(mark) = marks.pop_if(|mark| source.passed(*mark)) {
                source.forget(mark);
            }
            if !marks.is_empty() {
                index += 1;
            } else if let Some(block) = self.waiting.remove(index) {
                done.push(block.address);
            }
        }
        done
    }

    /// Waits for the streams of all blocks, also after one that could not be waited for; the first error is returned. Blocks whose
    /// work never ends in a recording go on waiting.
    pub(crate) fn wait(&self, source: &dyn Source) -> Result<(), SourceError> {
        let mut outcome = Ok(());
        for &mark in self.waiting.iter().flat_map(|block| &block.marks) {
            outcome = outcome.and(source.wait(mark));
        }
        outcome
    }

    /// How many blocks had to wait since the last [reset](Self::reset_added).
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// Counts from zero again.
    pub(crate) fn reset_added(&mut self) {
        self.added = 0;
    }

    /// Asks no more about any mark.
    pub(crate) fn forget(&mut self, source: &dyn Source) {
        for mark in self.waiting.drain(..).flat_map(|block| block.marks) {
            source.forget(mark);
        }
    }
}

/// Marks what is queued on `streams`; where one cannot be marked, none is. The caller forgets the marks.
pub(crate) fn mark_all(streams: impl Iterator<Item = StreamId>, source: &dyn Source) -> Result<Vec<Mark>, SourceError> {
    let mut marks = Vec::new();
    for stream in streams {
        match source.mark(stream) {
            Ok(mark) => marks.push(mark),
            Err(error) => {
                for mark in marks {
                    source.forget(mark);
                }
                return Err(error);
            }
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use lowtide_memory::{CallKind, FailPlan, FailWhen, Failing, Simulated, SimulatedOptions};

    use super::*;

    const STREAMS: [StreamId; 2] = [StreamId(1), StreamId(2)];

    fn device() -> Simulated {
        Simulated::new(SimulatedOptions::default()).unwrap()
    }

    #[test]
    fn a_block_waits_until_all_its_streams_are_done() {
        let (device, mut pending) = (device(), PendingBlocks::default());
        pending.push(8, &STREAMS, &device).unwrap();
        assert_eq!(pending.poll(usize::MAX, &device), []);
        device.advance(1_000_000_000);
        assert_eq!(pending.poll(0, &device), []);
        assert_eq!(pending.poll(usize::MAX, &device), [8]);
        assert!(pending.is_empty());
        assert_eq!(pending.added(), 1);
    }

    #[test]
    fn a_stream_that_cannot_be_marked_leaves_no_mark_behind() {
        let plan = FailPlan::new(FailWhen::Nth(2)).only(&[CallKind::Mark]);
        let source = Failing::new(device(), plan);
        let mut pending = PendingBlocks::default();
        assert!(pending.push(7, &STREAMS, &source).is_err());
        assert!(pending.is_empty());
        pending.push(7, &STREAMS, &source).unwrap();
        pending.wait(&source).unwrap();
        assert_eq!(pending.poll(usize::MAX, &source), [7]);
    }
}
