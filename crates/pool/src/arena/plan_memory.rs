//! The memory of a plan: addresses of its own, under which lie handles that the heaps lend for as long as the plan is served. When it
//! is dropped the heaps have their handles back at once, and the addresses stay as they are for a while: whoever takes the same
//! plan up again in the same place needs no call. A source whose handles have one address each gives a plan memory of its own.

mod list;

use std::collections::VecDeque;
use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::Signature;
use lowtide_memory::{Error as SourceError, Mark, Source, Span};
use rustc_hash::FxHashSet;

use super::accounting::Accounting;
use super::heap::Holder;
use super::sized_heaps::{SizeClass, SizedHeaps};
use crate::addresses;

pub(super) use list::PlanMemories;

/// For so many steps memory waits for the plan that it was made for, before another plan gets memory.
const MOST_IDLE: u32 = 32;

/// A handle that is lent, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    pub(super) size: SizeClass,
    pub(super) holder: Holder,
}

impl Loan {
    /// What tells its handle from all others.
    pub(super) fn handle(&self) -> (SizeClass, u64) {
        (self.size, self.holder.serial)
    }
}

/// A handle at an address of a plan.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u64,
    bytes: u64,
    /// Whose it is; none where it is the plan's own.
    loan: Option<Loan>,
    /// Whether the plan has it now.
    is_held: bool,
}

impl Piece {
    fn is_under(&self, used: &[(u64, u64)]) -> bool {
        let first = used.partition_point(|&(_, end)| end <= self.at);
        used.get(first).is_some_and(|&(start, _)| start < self.at + self.bytes)
    }
}

/// The memory of one plan.
#[derive(Debug)]
pub(super) struct PlanMemory {
    source: Arc<dyn Source>,
    span: Span,
    pieces: Vec<Piece>,
    end: u64,
    number: u64,
    /// The plan that it was made for, where handles are lent to it.
    plan: Option<Signature>,
    /// What was queued when a handle was last taken back; none where that is not known.
    marks: Option<Vec<Mark>>,
    /// The handles that are still to be mapped, the next one first.
    awaited: VecDeque<Loan>,
    /// For how many steps it has waited for its plan with all handles mapped; [`MOST_IDLE`] where it does not wait for one.
    idle_steps: u32,
}

impl PlanMemory {
    /// What tells it from the others.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The first address.
    pub(super) fn base(&self) -> u64 {
        self.span.start
    }

    /// Up to where there is memory.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// These handles are to be mapped next.
    pub(super) fn await_loans(&mut self, loans: &[Loan]) {
        self.awaited = loans.iter().copied().collect();
        self.idle_steps = 0;
    }

    /// Waits for its plan no longer.
    fn give_up(&mut self) {
        self.awaited.clear();
        self.idle_steps = MOST_IDLE;
    }

    /// It, waiting for no plan.
    pub(super) fn given_up(mut self) -> Self {
        self.give_up();
        self
    }

    /// Whether there are any to be mapped.
    pub(super) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Maps `most` of them. Where that fails, or one is no longer there, none is to be mapped any more.
    pub(super) fn map_awaited(
        &mut self,
        most: usize,
        heaps: &SizedHeaps,
        accounting: &mut Accounting,
    ) -> Result<(), SourceError> {
        for _ in 0..most {
            let Some(loan) = self.awaited.pop_front() else { break };
            let Some(address) = heaps.of(loan.size).heap.first_address(&loan.holder) else {
                self.give_up();
                break;
            };
            if let Err(error) = self.borrow(address, loan, accounting) {
                self.give_up();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Puts a handle that lies at `address` of a heap at the end as well.
    fn borrow(&mut self, address: u64, loan: Loan, accounting: &mut Accounting) -> Result<(), SourceError> {
        let (at, bytes) = (self.end, loan.holder.bytes);
        if at + bytes > self.span.bytes.get() {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        self.source.alias(Span::new(address, Bytes::new(bytes)), self.span.start + at)?;
        accounting.mapped();
        self.pieces.push(Piece { at, bytes, loan: Some(loan), is_held: false });
        self.end += bytes;
        Ok(())
    }

    /// Adds memory of its own at the end.
    pub(super) fn extend(&mut self, bytes: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let at = self.end;
        self.source.commit(Span::new(self.span.start + at, Bytes::new(bytes)))?;
        accounting.created(bytes);
        self.pieces.push(Piece { at, bytes, loan: None, is_held: true });
        self.end += bytes;
        Ok(())
    }

    /// How many handles lie under it.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether the first of these handles, or all, lie under it, side by side from its first address on, and there are addresses for the others.
    fn begins(&self, loans: &[Loan]) -> bool {
        let mut at = 0;
        let is_there = |(piece, loan): (&Piece, &Loan)| {
            let is_next = piece.at == at;
            at += piece.bytes;
            is_next && piece.loan.is_some_and(|own| own.handle() == loan.handle())
        };
        self.pieces.len() <= loans.len()
            && self.pieces.iter().zip(loans).all(is_there)
            && self.end == at
            && total(loans) <= self.span.bytes.get()
    }

    /// The heaps lend `loans` from now on.
    fn begin(&mut self, loans: &[Loan]) {
        self.forget_marks();
        self.idle_steps = MOST_IDLE;
        for (piece, &loan) in self.pieces.iter_mut().zip(loans) {
            (piece.loan, piece.is_held) = (Some(loan), true);
        }
    }

    /// The loans that end because nothing of `used` lies on them, and where they lay.
    fn end_loans(&mut self, used: &[(u64, u64)]) -> Vec<(u64, Loan)> {
        let base = self.span.start;
        let ending = self.pieces.iter_mut().filter(|piece| piece.is_held && !piece.is_under(used));
        ending
            .filter_map(|piece| {
                piece.is_held = false;
                Some((base + piece.at, piece.loan?))
            })
            .collect()
    }

    /// Takes away what is under addresses that the plan does not have any more. The caller knows that queued work is done. What the
    /// source does not take stays, and its last error is returned.
    fn unmap(&mut self, accounting: &mut Accounting) -> Result<(), SourceError> {
        self.unmap_some(usize::MAX, accounting)
    }

    /// The same for at most so many handles.
    fn unmap_some(&mut self, mut most: usize, accounting: &mut Accounting) -> Result<(), SourceError> {
        self.give_up();
        let (source, base, mut outcome) = (&self.source, self.span.start, Ok(()));
        self.pieces.retain(|piece| {
            if piece.is_held || most == 0 {
                return true;
            }
            most -= 1;
            if let Err(error) = source.decommit(Span::new(base + piece.at, Bytes::new(piece.bytes))) {
                outcome = Err(error);
                return true;
            }
            match piece.loan {
                Some(_) => accounting.unmapped(),
                None => accounting.destroyed(piece.bytes),
            }
            false
        });
        outcome
    }

    /// Whether one of `handles` lies under it and is not lent to it.
    fn has_any(&self, handles: &FxHashSet<(SizeClass, u64)>) -> bool {
        let is_any = |loan: &Loan| handles.contains(&loan.handle());
        self.pieces.iter().any(|piece| !piece.is_held && piece.loan.as_ref().is_some_and(is_any))
    }

    fn is_idle(&self) -> bool {
        self.pieces.iter().all(|piece| !piece.is_held)
    }

    /// Whether queued work is done with what was taken back of it.
    fn is_done(&self) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.iter().all(|&mark| self.source.passed(mark)))
    }

    fn forget_marks(&mut self) {
        for mark in self.marks.take().into_iter().flatten() {
            self.source.forget(mark);
        }
    }
}

impl Drop for PlanMemory {
    fn drop(&mut self) {
        self.forget_marks();
        addresses::release(&*self.source, self.span);
    }
}

fn total(loans: &[Loan]) -> u64 {
    loans.iter().map(|loan| loan.holder.bytes).sum()
}
