//! The run of addresses that the plan has: no free run, whether a block is there or not.

use std::mem;
use std::ops::Range;

/// How many steps lie between two times that a plan is laid elsewhere: all of it is touched anew.
const REST: u64 = 32;

/// The addresses of the plan that is served, and what is known of those before it.
#[derive(Debug, Default)]
pub(super) struct PlanRange {
    range: Range<u64>,
    /// The blocks that lay there when the plan was taken up.
    in_the_way: Vec<u64>,
    /// Where the last plan began.
    last: Option<u64>,
    /// In which step a plan was last laid on other memory than before.
    moved: Option<u64>,
    /// How many plans there were.
    count: u64,
}

impl PlanRange {
    /// How many bytes the plan has.
    pub(super) fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether an address is the plan's.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.range.contains(&address)
    }

    /// The offset of an address that is the plan's.
    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        self.contains(address).then(|| address - self.range.start)
    }

    /// Where the last plan began, if there was one.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Whether a plan may be laid on other memory than before in `step`; it is then taken to be.
    pub(super) fn try_move(&mut self, step: u64) -> bool {
        let may_move = self.moved.is_none_or(|moved| step >= moved + REST);
        if may_move {
            self.moved = Some(step);
        }
        may_move
    }

    /// A plan has `range`, on which the blocks at `in_the_way` lie. The number tells it from the plans before it.
    pub(super) fn set(&mut self, range: Range<u64>, in_the_way: Vec<u64>) -> u64 {
        self.count += 1;
        self.last = Some(range.start);
        (self.range, self.in_the_way) = (range, in_the_way);
        self.count
    }

    /// The plan has no addresses any more: which they were, and which blocks lay there from the start.
    pub(super) fn clear(&mut self) -> (Range<u64>, Vec<u64>) {
        (mem::take(&mut self.range), mem::take(&mut self.in_the_way))
    }

    /// In a forked child: its steps are counted anew.
    pub(super) fn start_anew(&mut self) {
        self.moved = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_laid_elsewhere_only_now_and_then() {
        let mut range = PlanRange::default();
        let moved: Vec<u64> = (1..=100).filter(|&step| range.try_move(step)).collect();
        assert_eq!(moved, [1, 33, 65, 97]);
    }

    #[test]
    fn addresses_are_the_plans_until_it_is_dropped() {
        let mut range = PlanRange::default();
        assert_eq!((range.bytes(), range.last()), (0, None));
        assert_eq!(range.set(100..200, vec![150]), 1);
        assert_eq!((range.offset(150), range.offset(200)), (Some(50), None));
        assert_eq!(range.clear(), (100..200, vec![150]));
        assert_eq!((range.contains(150), range.last()), (false, Some(100)));
        assert_eq!(range.set(300..301, Vec::new()), 2);
    }
}
