//! The memory of a plan that is served: addresses of its own, under which lie handles that the heaps lend, so that a plan can
//! use what is free around blocks that stay, and behind them handles that are new.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error as SourceError, Source, Span};

use super::accounting::Accounting;
use super::heap::Holder;
use super::sized_heaps::SizeClass;
use super::streams::{Freed, Position};
use crate::addresses;

/// A handle at an address of a plan.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// Whose it is, where it is lent.
    pub(super) lender: Option<(SizeClass, Holder)>,
}

/// The memory of one plan.
#[derive(Debug)]
pub(super) struct PlanMemory {
    source: Arc<dyn Source>,
    span: Span,
    pieces: Vec<Piece>,
    end: u64,
    number: u64,
}

impl PlanMemory {
    /// Addresses for up to `bytes`, with nothing under them.
    pub(super) fn new(source: Arc<dyn Source>, bytes: u64, number: u64) -> Result<Self, SourceError> {
        let span = source.reserve(Bytes::new(bytes))?;
        Ok(Self { source, span, pieces: Vec::new(), end: 0, number })
    }

    /// What tells it from others that had its addresses before or will have them.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether a piece of it is under none of the ranges `used`.
    pub(super) fn has_idle(&self, used: &[(u64, u64)]) -> bool {
        let busy = |piece: &Piece| used.iter().any(|&(start, end)| start < piece.at + piece.bytes && piece.at < end);
        !self.pieces.iter().all(busy)
    }

    /// The first address.
    pub(super) fn base(&self) -> u64 {
        self.span.start
    }

    /// Up to where there is memory.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Puts a handle that lies at `address` of a heap at the end as well.
    pub(super) fn borrow(
        &mut self,
        address: u64,
        size: SizeClass,
        holder: Holder,
        accounting: &mut Accounting,
    ) -> Result<u64, SourceError> {
        let (at, bytes) = (self.end, holder.bytes);
        self.room(bytes)?;
        self.source.alias(Span::new(address, Bytes::new(bytes)), self.span.start + at)?;
        accounting.mapped();
        self.pieces.push(Piece { at, bytes, lender: Some((size, holder)) });
        self.end += bytes;
        Ok(at)
    }

    /// Adds new memory at the end, up to `end`, in handles of `grain`.
    pub(super) fn extend(&mut self, end: u64, grain: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        while self.end < end {
            let bytes = grain.min(end - self.end);
            self.room(bytes)?;
            self.source.commit(Span::new(self.span.start + self.end, Bytes::new(bytes)))?;
            accounting.created(bytes);
            self.pieces.push(Piece { at: self.end, bytes, lender: None });
            self.end += bytes;
        }
        Ok(())
    }

    /// Gives up every piece on which no range of `used` lies, new ones to the source, lent ones to the caller. The caller
    /// knows that queued work is done. Pieces that the source does not take stay, and its last error is
    /// returned.
    pub(super) fn dismantle(
        &mut self,
        used: &[(u64, u64)],
        accounting: &mut Accounting,
    ) -> (Vec<Piece>, Result<(), SourceError>) {
        let (mut given_up, mut outcome) = (Vec::new(), Ok(()));
        for piece in std::mem::take(&mut self.pieces) {
            let busy = used.iter().any(|&(start, end)| start < piece.at + piece.bytes && piece.at < end);
            let span = Span::new(self.span.start + piece.at, Bytes::new(piece.bytes));
            if busy {
                self.pieces.push(piece);
            } else if let Err(error) = self.source.decommit(span) {
                outcome = Err(error);
                self.pieces.push(piece);
            } else if piece.lender.is_some() {
                accounting.unmapped();
                given_up.push(piece);
            } else {
                accounting.destroyed(piece.bytes);
            }
        }
        (given_up, outcome)
    }

    /// Whether nothing is left under it.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn room(&self, bytes: u64) -> Result<(), SourceError> {
        if self.end + bytes > self.span.bytes.get() {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        Ok(())
    }
}

impl Drop for PlanMemory {
    fn drop(&mut self) {
        addresses::release(&*self.source, self.span);
    }
}

/// The memory of the plan that is served, and of earlier ones on which blocks still lie.
#[derive(Debug, Default)]
pub(super) struct PlanMemories {
    /// The one that is served comes last.
    list: Vec<PlanMemory>,
    /// How many there ever were.
    made: u64,
    /// Who freed which addresses of them.
    freed: Freed,
}

impl PlanMemories {
    /// Addresses for another plan, with nothing under them.
    pub(super) fn make(&mut self, source: Arc<dyn Source>, bytes: u64) -> Result<PlanMemory, SourceError> {
        self.made += 1;
        PlanMemory::new(source, bytes, self.made)
    }

    /// Keeps the memory of a plan, which is the last from now on.
    pub(super) fn push(&mut self, memory: PlanMemory) {
        self.list.push(memory);
    }

    /// The one that was added last.
    pub(super) fn last_mut(&mut self) -> Option<&mut PlanMemory> {
        self.list.last_mut()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Notes that `stream` freed a range of addresses.
    pub(super) fn freed(&mut self, start: u64, end: u64, stream: StreamId, position: Position) {
        self.freed.insert(start, end, stream, position);
    }

    /// All that is free was freed by `stream`.
    pub(super) fn belong_to(&mut self, stream: StreamId, position: Position) {
        for memory in &self.list {
            self.freed.insert(memory.base(), memory.base() + memory.end(), stream, position);
        }
    }

    /// Who freed parts of a range, and when.
    pub(super) fn owners(&self, start: u64, end: u64) -> Vec<(StreamId, Position)> {
        self.freed.owners(start, end)
    }

    /// A range is in use again.
    pub(super) fn take(&mut self, start: u64, end: u64) {
        self.freed.cut(start, end);
    }

    /// Whether any that is not served has memory on which no block lies. `used` gives the ranges in use on the one of a number.
    pub(super) fn has_idle(&self, is_serving: bool, used: impl Fn(u64) -> Vec<(u64, u64)>) -> bool {
        self.unserved(is_serving).iter().any(|memory| memory.has_idle(&used(memory.number())))
    }

    /// Gives up what is not in use of those that are not served: new memory to the source, lent pieces to the caller. The
    /// caller knows that queued work is done. What the source does not take stays, and its last error is returned.
    pub(super) fn dismantle(
        &mut self,
        is_serving: bool,
        used: impl Fn(u64) -> Vec<(u64, u64)>,
        accounting: &mut Accounting,
    ) -> (Vec<Piece>, Result<(), SourceError>) {
        let (mut returned, mut outcome) = (Vec::new(), Ok(()));
        let unserved = self.unserved(is_serving).len();
        for memory in &mut self.list[..unserved] {
            let (pieces, result) = memory.dismantle(&used(memory.number()), accounting);
            returned.extend(pieces);
            outcome = outcome.and(result);
        }
        let mut place = 0;
        self.list.retain(|memory| {
            place += 1;
            place > unserved || !memory.is_empty()
        });
        (returned, outcome)
    }

    fn unserved(&self, is_serving: bool) -> &[PlanMemory] {
        &self.list[..self.list.len().saturating_sub(usize::from(is_serving))]
    }
}
