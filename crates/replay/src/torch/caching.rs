//! PyTorch's native caching allocator: memory is taken from the source a segment at a time, cut into blocks, and kept
//! when they are free. A segment goes back whole, when memory runs out, when it was not used for long, or on demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use lowtide_memory::{Source, Span};
use lowtide_pool::Error;

use super::blocks::{Block, Class, Index, State};
use super::model::{Backing, Growth, Model, Want};
use super::options::TorchOptions;

/// What PyTorch's native caching allocator would do with the same requests.
///
/// Blocks are multiples of 512 bytes, and so aligned; a request for a larger alignment, which PyTorch does not know, is
/// served with a block that is larger by it. A block belongs to its stream for good, and one of 1 MiB or less to
/// other segments than larger ones. Whether [expandable segments](TorchOptions::expandable_segments) are wished is not
/// looked at: choose between this and [`Expandable`](super::Expandable).
#[derive(Debug)]
pub struct Caching {
    pub(super) model: Model<Segments>,
}

impl Caching {
    /// An empty pool over `source`.
    pub fn new(source: Arc<dyn Source>, options: TorchOptions) -> Self {
        Self { model: Model::new(source, options, Segments::default()) }
    }
}

pool_of_model!(Caching);

/// The segments there are, by their address.
#[derive(Debug, Default)]
pub(super) struct Segments {
    spans: BTreeMap<u64, Span>,
}

impl Segments {
    /// Gives back the segment that a free block is.
    fn release(&mut self, backing: &mut Backing, index: Index) -> Result<(), Error> {
        let Block { address, bytes, stream, .. } = backing.blocks[index];
        let Some(&span) = self.spans.get(&address).filter(|_| backing.blocks[index].is_whole()) else { return Ok(()) };
        backing.supply.wait_for(stream)?;
        backing.supply.decommit(span)?;
        backing.supply.discount(bytes);
        backing.blocks.unshelve(index);
        backing.blocks.remove(index);
        self.spans.remove(&address);
        backing.supply.release(span)
    }

    fn release_whole(&mut self, backing: &mut Backing, class: Class) -> Result<(), Error> {
        let whole: Vec<Index> =
            backing.blocks.all_free(class).filter(|&index| backing.blocks[index].is_whole()).collect();
        whole.into_iter().try_for_each(|index| self.release(backing, index))
    }
}

impl Growth for Segments {
    fn find(&self, backing: &Backing, want: &Want) -> Option<Index> {
        let best = backing.blocks.fitting(want.class, want.stream, want.bytes).next();
        best.filter(|&index| backing.options.may_serve(backing.blocks[index].bytes, want.bytes))
    }

    fn splits(&self, backing: &Backing, block: &Block, want: &Want) -> bool {
        backing.options.splits(want.class, block.bytes, want.bytes)
    }

    fn grow(&mut self, backing: &mut Backing, want: &Want) -> Result<Option<Index>, Error> {
        let bytes = backing.options.segment(want.bytes);
        if !backing.supply.allows(bytes) {
            return Ok(None);
        }
        let Some(span) = backing.supply.reserve(backing.supply.grains(bytes))? else { return Ok(None) };
        match backing.supply.commit(span) {
            Ok(true) => {}
            Ok(false) => return backing.supply.release(span).map(|()| None),
            Err(error) => {
                // The first failure is the one to tell; what is owed is tried again.
                _ = backing.supply.release(span);
                return Err(error);
            }
        }
        backing.supply.count(bytes);
        self.spans.insert(span.start, span);
        Ok(Some(backing.blocks.add_segment(span, bytes, (want.stream, want.class), State::Free)))
    }

    fn collect_garbage(&mut self, backing: &mut Backing) -> Result<(), Error> {
        let (Some(threshold), Some(allowed)) = (backing.options.garbage_threshold, backing.supply.allowed()) else {
            return Ok(());
        };
        let target = backing.supply.reserved.saturating_sub((threshold * allowed as f64) as u64);
        let mut reclaimed = 0;
        let blocks = &backing.blocks;
        let whole = blocks.all_free(Class::Large).filter(|&index| blocks[index].is_whole());
        let mut aged: Vec<(Index, u64)> = whole.map(|index| (index, blocks.age(index))).collect();
        // Round by round all blocks go that are not younger than the average, however much that is.
        while reclaimed < target && !aged.is_empty() {
            let average = aged.iter().map(|&(_, age)| age).sum::<u64>() as f64 / aged.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) = aged.into_iter().partition(|&(_, age)| age as f64 >= average);
            aged = if old.is_empty() { Vec::new() } else { young };
            for (index, _) in old {
                reclaimed += backing.blocks[index].bytes;
                self.release(backing, index)?;
            }
        }
        Ok(())
    }

    fn release_oversize(&mut self, backing: &mut Backing, want: &Want) -> Result<bool, Error> {
        let Some(max_split) = backing.options.max_split else { return Ok(false) };
        let needed = want.bytes.max(max_split);
        let one = backing.blocks.fitting(want.class, want.stream, needed).next();
        if let Some(index) = one {
            return self.release(backing, index).map(|()| true);
        }
        let smaller = backing.blocks.below(want.class, want.stream, needed);
        let oversize = smaller.take_while(|&index| backing.blocks[index].bytes >= max_split);
        let oversize: Vec<Index> = oversize.collect();
        let mut released = 0;
        for index in oversize {
            if released >= needed {
                break;
            }
            released += backing.blocks[index].bytes;
            self.release(backing, index)?;
        }
        Ok(released >= needed)
    }

    fn release_free(&mut self, backing: &mut Backing) -> Result<(), Error> {
        self.release_whole(backing, Class::Large)?;
        self.release_whole(backing, Class::Small)
    }

    fn close(&mut self, backing: &mut Backing) {
        backing.supply.close(self.spans.values().copied());
    }
}
