//! How memory goes back to the system: at once when asked, after a while when nothing uses it, and early where free memory
//! lies beside other memory that is touched in its place.

use std::ops::Range;

use lowtide_core::Bytes;
use lowtide_core::ranges::FreeRuns;
use lowtide_memory::Span;

use super::{HUGE, HostPages};

/// What is resident may be this part more than what is needed.
const SLACK: u64 = 16;

/// Each of so many first steps lets this part of what was ever alive go back early. It is soon touched again: a program
/// whose blocks never settle pays for no more.
const STEPS: u64 = 16;
const A_STEP: u64 = 4;

/// How many of the longest free runs are searched for memory to give back early.
const SEARCHED: usize = 32;

/// What has gone back early.
#[derive(Debug, Default)]
pub(super) struct EarlyPurge {
    bytes: u64,
    /// Whether a step was served whole: what went back until then no longer counts.
    has_settled: bool,
    /// Up to which resident memory there was nothing to give back.
    content: u64,
}

/// What blocks and plans need of the memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Need {
    /// The most that was alive at once.
    pub(in crate::host) peak: u64,
    /// What blocks and the plan have now.
    pub(in crate::host) now: u64,
    /// How many steps were closed.
    pub(in crate::host) steps: u64,
}

impl HostPages {
    /// A step came from its plan to the last block.
    pub(in crate::host) fn settle(&mut self) {
        if !std::mem::replace(&mut self.early.has_settled, true) {
            self.early.bytes = 0;
        }
    }

    /// Gives all `free` memory back.
    pub(in crate::host) fn trim(&mut self, free: &FreeRuns) -> u64 {
        let given = self.purge(free, u32::MAX);
        // A huge page is there as a whole when a part of it was touched, whether that is noted or not.
        if self.is_transparent {
            let (page, until) = (self.expanse.page().get(), self.residency.end());
            for run in free.iter().take_while(|run| run.start < until) {
                let (start, end) = (run.start.next_multiple_of(page), run.end.min(until) / page * page);
                if start < end {
                    self.discard(start..end);
                }
            }
        }
        given
    }

    /// Gives `free` memory back that was not in use since `since`, unless pages are to be there before they are touched.
    pub(in crate::host) fn purge_idle(&mut self, free: &FreeRuns, since: u32) {
        if !self.is_prefaulted {
            self.purge(free, since);
        }
    }

    /// Gives back whole pages of a range that was freed just now, unless pages are to be there before they are touched.
    pub(in crate::host) fn purge_freed(&mut self, range: Range<u64>) {
        if !self.is_prefaulted {
            self.purge_range(range, u32::MAX);
        }
    }

    /// Gives `free` memory back that was not in use since `since`.
    pub(in crate::host) fn purge(&mut self, free: &FreeRuns, since: u32) -> u64 {
        free.iter().map(|run| self.purge_range(run, since)).sum()
    }

    /// Gives back whole pages of a free range that were not in use since `since`.
    pub(in crate::host) fn purge_range(&mut self, range: Range<u64>, since: u32) -> u64 {
        let page = self.expanse.page().get();
        let (least, most) = (range.start.next_multiple_of(page), range.end / page * page);
        let mut given = 0;
        for part in self.residency.idle(range, since) {
            let bytes = part.end - part.start;
            // What came with it in a huge page goes with it, unless that is in use.
            let wide = (part.start / HUGE * HUGE).max(least)..part.end.next_multiple_of(HUGE).min(most);
            let is_idle =
                self.is_transparent && self.residency.idle(wide.clone(), since) == self.residency.dirty(wide.clone());
            if self.discard(if is_idle { wide } else { part }) > 0 {
                given += bytes;
            }
        }
        given
    }

    /// Gives back whole pages that are free, and says how many bytes they have. What the system does not take stays.
    fn discard(&mut self, part: Range<u64>) -> u64 {
        let bytes = part.end - part.start;
        if self.expanse.discard(Span::new(part.start, Bytes::new(bytes))).is_err() {
            return 0;
        }
        self.residency.clear(part);
        bytes
    }

    /// Gives `free` memory back where more is resident than blocks and the plan ever needed at once. While the steps of a
    /// program are not planned yet, holes between its blocks are touched one after the other: this keeps them from adding up.
    pub(in crate::host) fn purge_excess(&mut self, free: &FreeRuns, need: Need) {
        let resident = self.residency.resident();
        let needed = need.peak.max(need.now);
        let allowed = needed + needed / SLACK + HUGE;
        let earned = need.steps.min(STEPS) * need.peak / A_STEP;
        if resident <= allowed.max(self.early.content) || self.early.bytes >= earned || self.is_prefaulted {
            return;
        }
        // A little more, so that the next block does not ask again; and huge pages whole, so that they come back as such.
        let mut excess = (resident - allowed + HUGE).next_multiple_of(HUGE);
        for run in free.longest().take(SEARCHED) {
            let (start, mut end) = (run.start, run.end.min(self.residency.end()) / HUGE * HUGE);
            while excess > 0 && start.next_multiple_of(HUGE) + HUGE <= end {
                end -= HUGE;
                if self.residency.is_dirty(end..end + HUGE) {
                    excess -= HUGE;
                    self.early.bytes += self.discard(end..end + HUGE);
                }
            }
        }
        self.early.content = if excess > 0 { self.residency.resident() } else { 0 };
    }
}
