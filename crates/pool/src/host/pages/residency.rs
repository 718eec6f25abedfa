//! Which pages of a range may be resident, and when memory was last in use.

use std::ops::Range;

/// Times are kept for pieces of this many bytes.
const PIECE: u64 = 64 << 10;

/// The pages of a range of addresses, and the times of its pieces.
#[derive(Debug)]
pub(super) struct Residency {
    start: u64,
    page: u64,
    /// A bit for each page that may hold something; pages behind the last word hold nothing.
    dirty: Vec<u64>,
    count: u64,
    /// When each piece was last seen in use.
    stamps: Vec<u32>,
}

impl Residency {
    /// A range from `start` on, of which nothing is resident.
    pub(super) fn new(start: u64, page: u64) -> Self {
        Self { start, page, dirty: Vec::new(), count: 0, stamps: Vec::new() }
    }

    /// How many bytes may be resident.
    pub(super) fn resident(&self) -> u64 {
        self.count * self.page
    }

    /// The pages that `range` shares anything with may hold something from now on.
    pub(super) fn touch(&mut self, range: Range<u64>) {
        let pages = (range.start - self.start) / self.page..(range.end - self.start).div_ceil(self.page);
        self.set(pages, true);
    }

    /// The pages of `range`, which begins and ends with one, hold nothing.
    pub(super) fn clear(&mut self, range: Range<u64>) {
        let pages = (range.start - self.start) / self.page..(range.end - self.start) / self.page;
        self.set(pages, false);
    }

    /// Where pages end of which any was ever in use.
    pub(super) fn end(&self) -> u64 {
        self.start + self.dirty.len() as u64 * 64 * self.page
    }

    /// Whether any page of `range`, which begins and ends with one, may hold something.
    pub(super) fn is_dirty(&self, range: Range<u64>) -> bool {
        let (first, last) = ((range.start - self.start) / self.page, (range.end - self.start) / self.page);
        let word = |index: u64| self.dirty.get(index as usize).copied().unwrap_or(0);
        (first / 64..last.div_ceil(64)).any(|index| {
            let low = u64::MAX << (first.max(index * 64) - index * 64);
            let high = (index + 1) * 64;
            let high = if last >= high { u64::MAX } else { (1 << (last - index * 64)) - 1 };
            word(index) & low & high != 0
        })
    }

    /// Memory was in use until `now`.
    pub(super) fn stamp(&mut self, range: Range<u64>, now: u32) {
        let first = ((range.start - self.start) / PIECE) as usize;
        let last = (range.end - self.start).div_ceil(PIECE) as usize;
        if self.stamps.len() < last {
            self.stamps.resize(last, 0);
        }
        self.stamps[first..last].fill(now);
    }

    /// The parts of `range` that may hold something.
    pub(super) fn dirty(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let pages = (range.start - self.start) / self.page..(range.end - self.start).div_ceil(self.page);
        let clip = |at: u64| (self.start + at * self.page).clamp(range.start, range.end);
        self.runs(pages, |_| true).into_iter().map(|run| clip(run.start)..clip(run.end)).collect()
    }

    /// Whole pages of `range` that may hold something and were not in use since `since`.
    pub(super) fn idle(&self, range: Range<u64>, since: u32) -> Vec<Range<u64>> {
        let pages = (range.start - self.start).div_ceil(self.page)..(range.end - self.start) / self.page;
        let is_idle = |page: u64| {
            let pieces = (page * self.page / PIECE) as usize..((page + 1) * self.page).div_ceil(PIECE) as usize;
            pieces.into_iter().all(|piece| self.stamps.get(piece).is_none_or(|&stamp| stamp < since))
        };
        let at = |page: u64| self.start + page * self.page;
        self.runs(pages, is_idle).into_iter().map(|run| at(run.start)..at(run.end)).collect()
    }

    /// Pages that may hold something and are `wanted`, as runs.
    fn runs(&self, pages: Range<u64>, wanted: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut page = pages.start;
        while page < pages.end {
            let Some(&word) = self.dirty.get((page / 64) as usize) else { break };
            let rest = word >> (page % 64);
            if rest == 0 {
                page = (page / 64 + 1) * 64;
                continue;
            }
            page += u64::from(rest.trailing_zeros());
            if page >= pages.end {
                break;
            }
            if wanted(page) {
                match runs.last_mut() {
                    Some(run) if run.end == page => run.end += 1,
                    _ => runs.push(page..page + 1),
                }
            }
            page += 1;
        }
        runs
    }

    fn set(&mut self, pages: Range<u64>, dirty: bool) {
        if pages.is_empty() {
            return;
        }
        let words = pages.end.div_ceil(64) as usize;
        if self.dirty.len() < words {
            if !dirty && self.dirty.len() as u64 * 64 <= pages.start {
                return;
            }
            self.dirty.resize(words, 0);
        }
        for index in pages.start / 64..=(pages.end - 1) / 64 {
            let from = pages.start.max(index * 64) - index * 64;
            let to = pages.end.min((index + 1) * 64) - index * 64;
            let mask = (u64::MAX >> (64 - (to - from))) << from;
            let word = &mut self.dirty[index as usize];
            self.count -= u64::from((*word & mask).count_ones());
            if dirty {
                *word |= mask;
                self.count += to - from;
            } else {
                *word &= !mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 4096;
    const START: u64 = 1 << 30;

    #[test]
    fn memory_that_was_in_use_lately_is_not_idle() {
        let mut residency = Residency::new(START, PAGE);
        residency.touch(START..START + 64 * PAGE);
        residency.stamp(START..START + 16 * PAGE, 5);
        let (all, rest) = (START..START + 64 * PAGE, START + 16 * PAGE..START + 64 * PAGE);
        assert_eq!(residency.idle(all.clone(), 5), [rest]);
        assert_eq!(residency.idle(all.clone(), 6), [all]);
        assert_eq!(residency.idle(START + 1..START + 2 * PAGE - 1, 6), []);
    }

    proptest! {
        #[test]
        fn pages_are_dirty_as_a_plain_list_says(
            calls in prop::collection::vec((0..500_u64, 1..200_u64, any::<bool>()), 1..40),
        ) {
            let mut residency = Residency::new(START, PAGE);
            let mut model = vec![false; 800];
            for (first, count, touch) in calls {
                let range = START + first * PAGE..START + (first + count) * PAGE;
                if touch { residency.touch(range) } else { residency.clear(range) }
                model[first as usize..(first + count) as usize].fill(touch);
            }
            prop_assert_eq!(residency.resident(), PAGE * model.iter().filter(|&&dirty| dirty).count() as u64);
            let mut seen = vec![false; 800];
            for run in residency.dirty(START..START + 800 * PAGE) {
                seen[((run.start - START) / PAGE) as usize..((run.end - START) / PAGE) as usize].fill(true);
            }
            prop_assert_eq!(seen, model);
        }
    }
}
