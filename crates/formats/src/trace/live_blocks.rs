//! Which blocks of a trace are alive under which name, while it is read. A name may be used again once it is
//! freed, even before the device is done with the block that had it.

use lowtide_core::{BlockIndex, TextIndex};

/// The state of every name.
#[derive(Default)]
pub(crate) struct LiveBlocks {
    names: Vec<Name>,
    /// Per block, the next one freed under its name that the device is not done with.
    next_freed: Vec<Option<BlockIndex>>,
}

#[derive(Clone, Copy, Default)]
struct Name {
    live: Option<BlockIndex>,
    first_freed: Option<BlockIndex>,
    last_freed: Option<BlockIndex>,
    was_used: bool,
}

/// Why a row does not fit those before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    NotAllocated,
    AllocatedTwice,
    FreedTwice,
    DoneBeforeFree,
}

impl LiveBlocks {
    /// A new block begins under `name`; blocks are numbered in the order of these calls.
    pub(crate) fn alloc(&mut self, name: TextIndex) -> Result<BlockIndex, Misfit> {
        let block = BlockIndex(self.next_freed.len() as u32);
        let state = self.name(name);
        if state.live.is_some() {
            return Err(Misfit::AllocatedTwice);
        }
        state.live = Some(block);
        state.was_used = true;
        self.next_freed.push(None);
        Ok(block)
    }

    /// The block that is alive under `name`.
    pub(crate) fn live(&mut self, name: TextIndex) -> Result<BlockIndex, Misfit> {
        self.name(name).live.ok_or(Misfit::NotAllocated)
    }

    /// Ends the block that is alive under `name`.
    pub(crate) fn free(&mut self, name: TextIndex) -> Result<BlockIndex, Misfit> {
        let state = self.name(name);
        let Some(block) = state.live.take() else {
            return Err(if state.was_used { Misfit::FreedTwice } else { Misfit::NotAllocated });
        };
        match state.last_freed.replace(block) {
            Some(last) => self.next_freed[last.0 as usize] = Some(block),
            None => state.first_freed = Some(block),
        }
        Ok(block)
    }

    /// The device is done with the block that was freed first under `name` among those it is not done with.
    pub(crate) fn done(&mut self, name: TextIndex) -> Result<BlockIndex, Misfit> {
        let state = *self.name(name);
        let Some(block) = state.first_freed else {
            return Err(if state.live.is_some() { Misfit::DoneBeforeFree } else { Misfit::NotAllocated });
        };
        let next = self.next_freed[block.0 as usize];
        let state = self.name(name);
        state.first_freed = next;
        if next.is_none() {
            state.last_freed = None;
        }
        Ok(block)
    }

    fn name(&mut self, name: TextIndex) -> &mut Name {
        let place = name.0 as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, Name::default());
        }
        &mut self.names[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TextIndex = TextIndex(0);
    const B: TextIndex = TextIndex(5);

    #[test]
    fn a_freed_name_serves_again_and_done_rows_find_the_oldest_block() {
        let mut live_blocks = LiveBlocks::default();
        assert_eq!(live_blocks.alloc(A), Ok(BlockIndex(0)));
        assert_eq!(live_blocks.free(A), Ok(BlockIndex(0)));
        assert_eq!(live_blocks.alloc(A), Ok(BlockIndex(1)));
        assert_eq!(live_blocks.free(A), Ok(BlockIndex(1)));
        assert_eq!(live_blocks.alloc(A), Ok(BlockIndex(2)));
        assert_eq!(live_blocks.done(A), Ok(BlockIndex(0)));
        assert_eq!(live_blocks.done(A), Ok(BlockIndex(1)));
        assert_eq!(live_blocks.done(A), Err(Misfit::DoneBeforeFree));
        assert_eq!(live_blocks.free(A), Ok(BlockIndex(2)));
        assert_eq!(live_blocks.done(A), Ok(BlockIndex(2)));
        assert_eq!(live_blocks.done(A), Err(Misfit::NotAllocated));
    }

    #[test]
    fn rows_that_do_not_fit_are_told_apart() {
        let mut live_blocks = LiveBlocks::default();
        assert_eq!(live_blocks.free(B), Err(Misfit::NotAllocated));
        assert_eq!(live_blocks.live(B), Err(Misfit::NotAllocated));
        live_blocks.alloc(B).unwrap();
        assert_eq!(live_blocks.alloc(B), Err(Misfit::AllocatedTwice));
        live_blocks.free(B).unwrap();
        assert_eq!(live_blocks.free(B), Err(Misfit::FreedTwice));
        assert_eq!(live_blocks.live(B), Err(Misfit::NotAllocated));
    }
}
