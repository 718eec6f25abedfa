//! Blocks that were freed while other streams use them, each behind marks on those streams. They are asked about in the
//! order of each stream's queue, so that a stream that is behind holds up only its own.

use std::collections::{BTreeMap, VecDeque};

use lowtide_core::StreamId;
use lowtide_memory::{Error, Mark, Source};

use super::blocks::Index;

#[derive(Debug, Default)]
pub(super) struct Marks {
    waiting: BTreeMap<StreamId, VecDeque<(Mark, Index)>>,
}

impl Marks {
    /// Sets a mark on each of `streams` behind the work that uses a block. Where that fails no mark is left.
    pub(super) fn set(&mut self, source: &dyn Source, streams: &[StreamId], block: Index) -> Result<(), Error> {
        let mut set = Vec::with_capacity(streams.len());
        for &stream in streams {
            match source.mark(stream) {
                Ok(mark) => set.push((stream, mark)),
                Err(error) => {
                    for (_, mark) in set {
                        source.forget(mark);
                    }
                    return Err(error);
                }
            }
        }
        for (stream, mark) in set {
            self.waiting.entry(stream).or_default().push_back((mark, block));
        }
        Ok(())
    }

    /// Calls `passed` for the block of each mark that has passed.
    pub(super) fn poll(&mut self, source: &dyn Source, mut passed: impl FnMut(Index)) {
        self.waiting.retain(|_, queue| {
            while let Some((mark, block)) = queue.pop_front_if(|(mark, _)| source.passed(*mark)) {
                source.forget(mark);
                passed(block);
            }
            !queue.is_empty()
        });
    }

    /// Waits for every mark and calls `passed` for its block. Where a wait fails the marks from there on are kept.
    pub(super) fn settle(&mut self, source: &dyn Source, mut passed: impl FnMut(Index)) -> Result<(), Error> {
        while let Some(mut queue) = self.waiting.first_entry() {
            if let Some(&(mark, block)) = queue.get().front() {
                source.wait(mark)?;
                source.forget(mark);
                queue.get_mut().pop_front();
                passed(block);
            } else {
                queue.remove();
            }
        }
        Ok(())
    }

    /// Asks no more about any mark.
    pub(super) fn forget(&mut self, source: &dyn Source) {
        let queues = std::mem::take(&mut self.waiting);
        for (mark, _) in queues.into_values().flatten() {
            source.forget(mark);
        }
    }
}
