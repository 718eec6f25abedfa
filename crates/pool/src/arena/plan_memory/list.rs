//! The memories of all plans of an arena: the one that is served, those that are being mapped, and those of earlier plans.

use std::collections::VecDeque;
use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::Signature;
use lowtide_memory::{Error as SourceError, Mark, Source};

use super::{Loan, MOST_IDLE, PlanMemory, total};
use crate::arena::accounting::Accounting;
use crate::arena::sized_heaps::SizedHeaps;
use crate::arena::streams::{Freed, Position};

/// As many memories of plans that are not served are kept.
const KEPT: usize = 3;

/// The memory of the plan that is served, and of earlier ones.
#[derive(Debug, Default)]
pub(in crate::arena) struct PlanMemories {
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
    pub(in crate::arena) fn begun(&mut self, loans: &[Loan]) -> Option<PlanMemory> {
        let place = self.place_of(loans)?;
        Some(self.list.remove(place))
    }

    /// Whether some of `loans` are mapped for a plan already.
    pub(in crate::arena) fn has_begun(&self, loans: &[Loan]) -> bool {
        self.place_of(loans).is_some_and(|place| self.list[place].pieces() > 0)
    }

    fn place_of(&self, loans: &[Loan]) -> Option<usize> {
        let begun = self.list.iter().enumerate().filter(|(_, memory)| memory.begins(loans) && memory.is_idle());
        begun.max_by_key(|(_, memory)| memory.pieces.len()).map(|(place, _)| place)
    }

    /// Whether handles are being mapped.
    pub(in crate::arena) fn is_mapping(&self) -> bool {
        self.list.iter().any(PlanMemory::awaits)
    }

    /// Whether a plan is about to be served: its handles are being mapped, or were, and the blocks are not back yet in the place that it was
    /// made around.
    pub(in crate::arena) fn awaits_a_plan(&self) -> bool {
        self.list.iter().any(|memory| memory.awaits() || memory.idle_steps < MOST_IDLE)
    }

    /// Plans other than this one are not waited for any more.
    pub(in crate::arena) fn give_up_others(&mut self, plan: Signature) {
        for memory in self.list.iter_mut().filter(|memory| memory.plan != Some(plan)) {
            memory.give_up();
        }
    }

    /// Maps some of the handles that a plan awaits.
    pub(in crate::arena) fn map_more(&mut self, most: usize, heaps: &SizedHeaps, accounting: &mut Accounting) {
        for memory in &mut self.list {
            if memory.awaits() {
                // What could not be mapped is not awaited any more.
                let _ = memory.map_awaited(most, heaps, accounting);
                return;
            }
            memory.idle_steps = (memory.idle_steps + 1).min(MOST_IDLE);
        }
    }

    /// Maps some of the handles that a plan awaits, between the ends of steps.
    pub(in crate::arena) fn map_ahead(&mut self, most: usize, heaps: &SizedHeaps, accounting: &mut Accounting) {
        if let Some(memory) = self.list.iter_mut().find(|memory| memory.awaits()) {
            // What could not be mapped is not awaited any more.
            let _ = memory.map_awaited(most, heaps, accounting);
        }
    }

    /// Keeps memory that a plan is to have later.
    pub(in crate::arena) fn keep(&mut self, memory: PlanMemory) {
        self.list.push(memory);
    }

    /// Whether so many are kept, because none can be given up yet, that there should be no other.
    pub(in crate::arena) fn is_full(&self) -> bool {
        self.list.len() > 2 * KEPT
    }

    /// How many calls it takes to put `loans` under a plan.
    pub(in crate::arena) fn calls_for(&self, loans: &[Loan]) -> u64 {
        (loans.len() - self.place_of(loans).map_or(0, |place| self.list[place].pieces())) as u64
    }

    /// Addresses for another plan that is to have `loans`, with nothing under them.
    pub(in crate::arena) fn make(
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
    pub(in crate::arena) fn make_apart(
        &mut self,
        source: Arc<dyn Source>,
        bytes: u64,
    ) -> Result<PlanMemory, SourceError> {
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
    pub(in crate::arena) fn begin(&mut self, mut memory: PlanMemory, loans: &[Loan]) {
        memory.begin(loans);
        self.list.push(memory);
    }

    /// Ends the loans of plans that are not served, but for those on which blocks lie, and marks what is queued on their memory. `used`
    /// gives the ranges in use on the memory of a number.
    pub(in crate::arena) fn end_loans(
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
    pub(in crate::arena) fn forget_old(&mut self, most: usize, is_serving: bool, accounting: &mut Accounting) {
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
    pub(in crate::arena) fn is_done_over(&self, loans: &[Loan], is_serving: bool) -> bool {
        let handles = loans.iter().map(Loan::handle).collect();
        let over = self.list[..self.unserved(is_serving)].iter().filter(|memory| memory.has_any(&handles));
        over.into_iter().all(PlanMemory::is_done)
    }

    /// Takes away what is under addresses that no plan has any more. The caller knows that queued work is done. What the source does not take stays, and its last error is returned.
    pub(in crate::arena) fn unmap(&mut self, is_serving: bool, accounting: &mut Accounting) -> Result<(), SourceError> {
        self.unmap_where(is_serving, |_| true, accounting)
    }

    /// The same for plans that have any of `loans` under them.
    pub(in crate::arena) fn unmap_over(
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
    pub(in crate::arena) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn unserved(&self, is_serving: bool) -> usize {
        self.list.len().saturating_sub(usize::from(is_serving))
    }

    /// Notes that `stream` freed a range of addresses.
    pub(in crate::arena) fn freed(&mut self, start: u64, end: u64, stream: StreamId, position: Position) {
        self.freed.insert(start, end, stream, position);
    }

    /// All memory of plans was freed by `stream`.
    pub(in crate::arena) fn belong_to(&mut self, stream: StreamId, position: Position) {
        for memory in &self.list {
            self.freed.insert(memory.base(), memory.base() + memory.end(), stream, position);
        }
    }

    /// Who freed parts of a range, and when.
    pub(in crate::arena) fn owners(&self, start: u64, end: u64) -> Vec<(StreamId, Position)> {
        self.freed.owners(start, end)
    }

    /// The parts of a range that were freed by somebody.
    pub(in crate::arena) fn freed_within(&self, start: u64, end: u64) -> Vec<(u64, u64, StreamId, Position)> {
        self.freed.within(start, end)
    }

    /// A range is in use again.
    pub(in crate::arena) fn take(&mut self, start: u64, end: u64) {
        self.freed.cut(start, end);
    }
}
