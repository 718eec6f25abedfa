//! The pages of a host arena: which addresses are open, which pages may be resident and since when nothing used them, and how
//! they go back to the system.

mod purge;
mod residency;

use std::ops::Range;

use lowtide_core::Bytes;
use lowtide_core::ranges::FreeRuns;
use lowtide_memory::{Error as MemoryError, Expanse, HostOptions, Pages, Span};

use purge::EarlyPurge;
pub(super) use purge::Need;
use residency::Residency;

/// How much is opened at least when more is needed.
const OPENING: u64 = 32 << 20;

/// The huge page of the system, which openings are multiples of.
pub(super) const HUGE: u64 = 2 << 20;

/// The pages of a host arena.
#[derive(Debug)]
pub(super) struct HostPages {
    expanse: Expanse,
    /// Whether small pages become huge ones where a part of them is touched.
    is_transparent: bool,
    /// Whether pages are there before they are touched.
    is_prefaulted: bool,
    /// Up to where addresses are open.
    opened: u64,
    residency: Residency,
    early: EarlyPurge,
}

impl HostPages {
    /// Addresses, none of which is open.
    pub(super) fn new(range: Bytes, options: &HostOptions) -> Result<Self, MemoryError> {
        let expanse = Expanse::new(range, options)?;
        let (span, page) = (expanse.span(), expanse.page().get());
        Ok(Self {
            expanse,
            is_transparent: options.pages == Pages::Transparent,
            is_prefaulted: options.prefault || options.locked,
            opened: span.start,
            residency: Residency::new(span.start, page),
            early: EarlyPurge::default(),
        })
    }

    /// All addresses, open or not.
    pub(super) fn span(&self) -> Span {
        self.expanse.span()
    }

    /// Up to where addresses are open.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// What the system did not grant, a sentence each.
    pub(super) fn fallbacks(&self) -> Vec<String> {
        self.expanse.fallbacks()
    }

    /// How many bytes may be resident.
    pub(super) fn resident(&self) -> u64 {
        self.residency.resident()
    }

    /// Opens as many addresses as a block needs behind what is `free` at the end, and says where it fits.
    pub(super) fn open_for(&mut self, size: u64, align: u64, free: &mut FreeRuns) -> Option<u64> {
        let start = free.ending_at(self.opened).map_or(self.opened, |run| run.start);
        let at = start.next_multiple_of(align);
        let end = self.expanse.span().end();
        let needed = (at.checked_add(size)?).checked_next_multiple_of(HUGE)?;
        let page = self.expanse.page().get().max(HUGE);
        [needed.max(self.opened + OPENING), needed].into_iter().find_map(|until| {
            let until = until.checked_next_multiple_of(page).filter(|&until| until <= end)?;
            let bytes = until - self.opened;
            let part = Span::new(self.opened, Bytes::new(bytes));
            self.expanse.open(part).ok()?;
            free.insert(part.start..part.end());
            self.opened = part.end();
            if self.is_prefaulted {
                self.residency.touch(part.start..part.end());
            }
            Some(at)
        })
    }

    /// A range is about to be touched.
    pub(super) fn touch(&mut self, range: Range<u64>) {
        self.residency.touch(range);
    }

    /// A range was in use until `now`.
    pub(super) fn stamp(&mut self, range: Range<u64>, now: u32) {
        self.residency.stamp(range, now);
    }

    /// The parts of a range that may hold something.
    pub(super) fn dirty(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.residency.dirty(range)
    }

    /// Lets the system take the pages of a `range` that was freed just now, when it needs memory. Huge pages are offered whole: in parts they would be
    /// split.
    pub(super) fn offer(&mut self, free: &FreeRuns, range: Range<u64>) {
        if self.is_prefaulted {
            return;
        }
        let page = if self.is_transparent { HUGE } else { self.expanse.page().get() };
        let Some(run) = free.containing(range.start) else { return };
        let start = (range.start / page * page).max(run.start).next_multiple_of(page);
        let end = range.end.next_multiple_of(page).min(run.end) / page * page;
        if start < end {
            // Where the system does not know how, the pages stay.
            let _ = self.expanse.offer(Span::new(start, Bytes::new(end - start)));
        }
    }

    /// Gives the addresses back that are `free`: those at the end to anybody, the others without access to nobody.
    pub(super) fn close(&mut self, free: &mut FreeRuns, announce: impl FnOnce(Range<u64>)) {
        let page = self.expanse.page().get();
        if let Some(run) = free.ending_at(self.opened) {
            let before = std::mem::replace(&mut self.opened, run.start.next_multiple_of(page));
            self.residency.clear(self.opened..before);
        }
        self.shrink(announce);
        let runs: Vec<Range<u64>> = free.iter().collect();
        for run in runs {
            free.remove(run.clone());
            let (start, end) = (run.start.next_multiple_of(page), run.end.min(self.opened) / page * page);
            if start < end && self.expanse.close(Span::new(start, Bytes::new(end - start))).is_ok() {
                self.residency.clear(start..end);
            }
        }
    }

    /// Gives all addresses back that are not open. `announce` gets the range that is left before they are anybody else's.
    pub(super) fn shrink(&mut self, announce: impl FnOnce(Range<u64>)) {
        announce(self.expanse.span().start..self.opened);
        // Where the system does not take them, they are lost.
        let _ = self.expanse.cut(self.opened);
    }
}
