//! The memory of a plan: addresses of its own, under which lie handles that the heaps lend for as long as the plan is served. When it
//! is dropped the heaps have their handles back at once, and the addresses stay as they are for a while: whoever takes the same
//! plan up again in the same place needs no call. A source whose handles have one address each gives a plan memory of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::Signature;
use lowtide_memory::{Error as SourceError, Mark, Source, Span};
use rustc_hash::FxHashSet;

use super::accounting::Accounting;
use super::heap::Holder;
use super::sized_heaps::{SizeClass, SizedHeaps};
use super::streams::{Freed, Position};
use crate::addresses;

/// As many memories of plans that are not served are kept.
const KEPT: usize = 3;

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

    /// The same without a plan to wait for.
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

/// The memory of the plan that is served, and of earlier ones.
#[derive(Debug, Default)]
pub(super) struct PlanMemories {
    /// The one that is served, or was last, comes last.
    list: Vec<PlanMemory>,
    /// How many there ever were.
    made: u64,
    /// Who freed which addresses of them.
    freed: Freed,
}

impl PlanMemories {
    /// The memory that has most of `loans` under it, from the first on, and nothing else, and on which no block lies, if there is one: it is the
    /// caller's.
    pub(super) fn begun(&mut self, loans: &[Loan]) -> Option<PlanMemory> {
        let place = self.place_of(loans)?;
        Some(self.list.remove(place))
    }

    /// Whether some of `loans` are mapped for a plan already.
    pub(super) fn has_begun(&self, loans: &[Loan]) -> bool {
        self.place_of(loans).is_some_and(|place| self.list[place].pieces() > 0)
    }

    fn place_of(&self, loans: &[Loan]) -> Option<usize> {
        let begun = self.list.iter().enumerate().filter(|(_, memory)| memory.begins(loans) && memory.is_idle());
        begun.max_by_key(|(_, memory)| memory.pieces.len()).map(|(place, _)| place)
    }

    /// Whether handles are being mapped.
    pub(super) fn is_mapping(&self) -> bool {
        self.list.iter().any(PlanMemory::awaits)
    }

    /// Whether another plan is about to be served: its handles are being mapped, or were, and the blocks are not back yet in the place that
    /// it was made around.
    pub(super) fn awaits_another(&self) -> bool {
        self.list.iter().any(|memory| memory.awaits() || memory.idle_steps < MOST_IDLE)
    }

    /// Plans other than this one are not waited for any more.
    pub(super) fn give_up_others(&mut self, plan: Signature) {
        for memory in self.list.iter_mut().filter(|memory| memory.plan != Some(plan)) {
            memory.give_up();
        }
    }

    /// Maps some of the handles that a plan awaits.
    pub(super) fn map_more(&mut self, most: usize, heaps: &SizedHeaps, accounting: &mut Accounting) {
        for memory in &mut self.list {
            if memory.awaits() {
                // What could not be mapped is not awaited any more.
                let _ = memory.map_awaited(most, heaps, accounting);
                return;
            }
            memory.idle_steps = (memory.idle_steps + 1).min(MOST_IDLE);
        }
    }

    /// Keeps memory that a plan is to have later.
    pub(super) fn keep(&mut self, memory: PlanMemory) {
        self.list.push(memory);
    }

    /// Whether so many are kept, because none can be given up yet, that there should be no other.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() > 2 * KEPT
    }

    /// How many calls it takes to put `loans` under a plan.
    pub(super) fn calls_for(&self, loans: &[Loan]) -> u64 {
        (loans.len() - self.place_of(loans).map_or(0, |place| self.list[place].pieces())) as u64
    }

    /// Addresses for another plan that is to have `loans`, with nothing under them.
    pub(super) fn make(
        &mut self,
        source: Arc<dyn Source>,
        plan: Signature,
        loans: &[Loan],
    ) -> Result<PlanMemory, SourceError> {
        let mut memory = self.make_apart(source, total(loans))?;
        memory.plan = Some(plan);
        Ok(memory)
    }

    /// Addresses for another plan, with nothing under them.
    pub(super) fn make_apart(&mut self, source: Arc<dyn Source>, bytes: u64) -> Result<PlanMemory, SourceError> {
        self.made += 1;
        let span = source.reserve(Bytes::new(bytes))?;
        Ok(PlanMemory {
            source,
            span,
            pieces: Vec::new(),
            end: 0,
            number: self.made,
            plan: None,
            marks: Some(Vec::new()),
            awaited: VecDeque::new(),
            idle_steps: 0,
        })
    }

    /// Keeps the memory of a plan that is served from now on.
    pub(super) fn begin(&mut self, mut memory: PlanMemory, loans: &[Loan]) {
        memory.begin(loans);
        self.list.push(memory);
    }

    /// Ends the loans of plans that are not served, but for those on which blocks lie, and marks what is queued on their memory. `used`
    /// gives the ranges in use on the memory of a number.
    pub(super) fn end_loans(
        &mut self,
        is_serving: bool,
        used: impl Fn(u64) -> Vec<(u64, u64)>,
        mark_all: impl Fn() -> Result<Vec<Mark>, SourceError>,
    ) -> Vec<(u64, Loan)> {
        let unserved = self.unserved(is_serving);
        let mut all = Vec::new();
        for memory in self.list[..unserved].iter_mut().filter(|memory| !memory.is_idle()) {
            let ended = memory.end_loans(&used(memory.number));
            if !ended.is_empty() {
                memory.forget_marks();
                // What cannot be marked is waited for when its addresses are taken away.
                memory.marks = mark_all().ok();
            }
            all.extend(ended);
        }
        all
    }

    /// Gives up the oldest memories that nothing uses any more, where there are too many; `most` handles at once.
    pub(super) fn forget_old(&mut self, most: usize, is_serving: bool, accounting: &mut Accounting) {
        while self.unserved(is_serving) > KEPT {
            let unserved = self.unserved(is_serving);
            let is_over = |memory: &PlanMemory| memory.is_idle() && memory.is_done();
            let Some(place) = self.list[..unserved].iter().position(is_over) else { return };
            if self.list[place].unmap_some(most, accounting).is_err() || !self.list[place].pieces.is_empty() {
                return;
            }
            let memory = self.list.remove(place);
            self.freed.cut(memory.span.start, memory.span.end());
        }
    }

    /// Whether queued work is done on all memories that have any of `loans` under them.
    pub(super) fn is_done_over(&self, loans: &[Loan], is_serving: bool) -> bool {
        let handles = loans.iter().map(Loan::handle).collect();
        let over = self.list[..self.unserved(is_serving)].iter().filter(|memory| memory.has_any(&handles));
        over.into_iter().all(PlanMemory::is_done)
    }

    /// Takes away what is under addresses that no plan has any more. The caller knows that queued work is done. What the source does not take stays, and its last error is returned.
    pub(super) fn unmap(&mut self, is_serving: bool, accounting: &mut Accounting) -> Result<(), SourceError> {
        self.unmap_where(is_serving, |_| true, accounting)
    }

    /// The same for plans that have any of `loans` under them.
    pub(super) fn unmap_over(
        &mut self,
        loans: &[Loan],
        is_serving: bool,
        accounting: &mut Accounting,
    ) -> Result<(), SourceError> {
        let handles = loans.iter().map(Loan::handle).collect();
        self.unmap_where(is_serving, |memory| memory.has_any(&handles), accounting)
    }

    fn unmap_where(
        &mut self,
        is_serving: bool,
        is_meant: impl Fn(&PlanMemory) -> bool,
        accounting: &mut Accounting,
    ) -> Result<(), SourceError> {
        let unserved = self.unserved(is_serving);
        let mut outcome = Ok(());
        for memory in self.list[..unserved].iter_mut().filter(|memory| is_meant(memory)) {
            outcome = memory.unmap(accounting).and(outcome);
        }
        let (mut place, freed) = (0, &mut self.freed);
        self.list.retain(|memory| {
            place += 1;
            let stays = place > unserved || !memory.pieces.is_empty();
            if !stays {
                freed.cut(memory.span.start, memory.span.end());
            }
            stays
        });
        outcome
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn unserved(&self, is_serving: bool) -> usize {
        self.list.len().saturating_sub(usize::from(is_serving))
    }

    /// Notes that `stream` freed a range of addresses.
    pub(super) fn freed(&mut self, start: u64, end: u64, stream: StreamId, position: Position) {
        self.freed.insert(start, end, stream, position);
    }

    /// All memory of plans was freed by `stream`.
    pub(super) fn belong_to(&mut self, stream: StreamId, position: Position) {
        for memory in &self.list {
            self.freed.insert(memory.base(), memory.base() + memory.end(), stream, position);
        }
    }

    /// Who freed parts of a range, and when.
    pub(super) fn owners(&self, start: u64, end: u64) -> Vec<(StreamId, Position)> {
        self.freed.owners(start, end)
    }

    /// The parts of a range that were freed by somebody.
    pub(super) fn freed_within(&self, start: u64, end: u64) -> Vec<(u64, u64, StreamId, Position)> {
        self.freed.within(start, end)
    }

    /// A range is in use again.
    pub(super) fn take(&mut self, start: u64, end: u64) {
        self.freed.cut(start, end);
    }
}

fn total(loans: &[Loan]) -> u64 {
    loans.iter().map(|loan| loan.holder.bytes).sum()
}
