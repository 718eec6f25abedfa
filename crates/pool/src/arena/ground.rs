//! The memory under a stage: addresses of its own, under which lie handles that the heaps lend, so that a plan can use
//! what is free around blocks that stay, and behind them handles that are new.

use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_memory::{Error as SourceError, Source, Span};

use super::books::Books;
use super::heap::Holder;

/// A handle at an address of the ground.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// Whose it is, where it is lent: the large heap's or the small one's.
    pub(super) lender: Option<(bool, Holder)>,
}

#[derive(Debug)]
pub(super) struct Ground {
    source: Arc<dyn Source>,
    span: Span,
    pieces: Vec<Piece>,
    end: u64,
    number: u64,
}

impl Ground {
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
        large: bool,
        holder: Holder,
        books: &mut Books,
    ) -> Result<u64, SourceError> {
        let (at, bytes) = (self.end, holder.bytes);
        self.room(bytes)?;
        self.source.alias(Span::new(address, Bytes::new(bytes)), self.span.start + at)?;
        books.mapped();
        self.pieces.push(Piece { at, bytes, lender: Some((large, holder)) });
        self.end += bytes;
        Ok(at)
    }

    /// Adds new memory at the end, up to `end`, in handles of `grain`.
    pub(super) fn extend(&mut self, end: u64, grain: u64, books: &mut Books) -> Result<(), SourceError> {
        while self.end < end {
            let bytes = grain.min(end - self.end);
            self.room(bytes)?;
            self.source.commit(Span::new(self.span.start + self.end, Bytes::new(bytes)))?;
            books.created(bytes);
            self.pieces.push(Piece { at: self.end, bytes, lender: None });
            self.end += bytes;
        }
        Ok(())
    }

    /// Gives up every piece on which no range of `used` lies, new ones to the source, lent ones to the caller. The caller
    /// knows that queued work is done. Pieces that the source does not take stay, and its last error is told.
    pub(super) fn dismantle(
        &mut self,
        used: &[(u64, u64)],
        books: &mut Books,
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
                books.unmapped();
                given_up.push(piece);
            } else {
                books.destroyed(piece.bytes);
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

impl Drop for Ground {
    fn drop(&mut self) {
        // A source that fails twice keeps the range until it is dropped itself.
        let _ = self.source.release(self.span).or_else(|_| self.source.release(self.span));
    }
}
