//! Finds the slot of each allocation of a lane. As long as a step goes as planned this is a comparison and an increment;
//! where it does not, the place is found again from the sizes that come.

use lowtide_core::{Align, Bytes};

use crate::Lane;
use crate::plan::step_plan::{GRAM, Key, LaneList, StepPlan, gram};

/// A slot so near is taken at once when it is the one asked for.
const NEAR: usize = 3;

/// As far ahead two slots in a row are looked for.
const WINDOW: usize = 64;

/// As long after a jump it can be taken back.
const DOUBT: usize = 8;

/// A place in one lane of a plan.
///
/// A lane that the plan does not know by name, such as one of a plan that another run has made, is taken for one that
/// begins with what is asked for first. No slot is given twice in a step.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// The place of the lane in the plan, out of range before it is known.
    list: usize,
    position: usize,
    /// The first place that may not be given: the end of the lane, or the start of what was given by a jump that was
    /// taken back.
    stop: usize,
    length: usize,
    lane: Lane,
    recovery: Recovery,
}

/// What matters only where allocations are not those expected.
#[derive(Clone, Default, Debug)]
struct Recovery {
    /// The end of what was given from [`Cursor::stop`] on, if anything was.
    given: Option<usize>,
    /// Where the last jump left from, and where it came to.
    jump: Option<(usize, usize)>,
    /// The last allocations that were not found, the latest at the end, and at which position that was.
    missed: [Option<Key>; GRAM - 1],
    missed_at: usize,
}

impl Cursor {
    /// The start of `lane` in `plan`. Use it with this plan alone.
    pub fn new(plan: &StepPlan, lane: Lane) -> Self {
        let list = plan.lanes.iter().position(|list| list.lane == lane).unwrap_or(usize::MAX);
        let length = plan.lanes.get(list).map_or(0, |list| list.entries.len());
        Self { list, position: 0, stop: length, length, lane, recovery: Recovery::default() }
    }

    /// The slot that an allocation is; none where the plan does not have it.
    #[inline]
    pub fn next(&mut self, plan: &StepPlan, bytes: Bytes, align: Align) -> Option<u32> {
        let asked = Key { bytes, align };
        if self.position < self.stop
            && let Some(&(key, slot)) = plan.lanes.get(self.list).and_then(|list| list.entries.get(self.position))
            && key == asked
        {
            self.position += 1;
            return Some(slot);
        }
        self.recover(plan, asked)
    }

    /// Goes back to the start, for a new step.
    pub fn restart(&mut self) {
        self.position = 0;
        self.stop = self.length;
        self.recovery = Recovery::default();
    }

    /// Goes to the start of one of the steps that `plan` is for.
    pub fn restart_in(&mut self, plan: &StepPlan, step: u32) {
        self.restart();
        let (step, steps) = (step as usize, plan.steps.max(1) as usize);
        self.position = self.length * step / steps;
        self.stop = self.length * (step + 1) / steps;
    }

    #[cold]
    fn recover(&mut self, plan: &StepPlan, asked: Key) -> Option<u32> {
        let Some(list) = plan.lanes.get(self.list) else { return self.bind(plan, asked) };
        if self.position == self.stop
            && let Some(resume) = self.recovery.given
        {
            return self.pass_given(list, resume, asked);
        }
        self.find(list, asked)
    }

    /// Takes the lane that begins with `asked`, or the only one there is.
    fn bind(&mut self, plan: &StepPlan, asked: Key) -> Option<u32> {
        let begins = |list: &LaneList| list.entries.first().is_some_and(|entry| entry.0 == asked);
        let mut fitting = (0..plan.lanes.len()).filter(|&place| plan.lanes.len() == 1 || begins(&plan.lanes[place]));
        let first = fitting.clone().next()?;
        self.list = fitting.find(|&place| plan.lanes[place].lane.stream == self.lane.stream).unwrap_or(first);
        self.length = plan.lanes[self.list].entries.len();
        self.restart();
        self.next(plan, asked.bytes, asked.align)
    }

    /// Goes on where slots begin that were given to others: theirs are missed, and what comes after is found.
    fn pass_given(&mut self, list: &LaneList, resume: usize, asked: Key) -> Option<u32> {
        let own = list.entries[self.stop].0 == asked;
        if own {
            self.stop += 1;
            self.position += 1;
        }
        if !own || self.stop == resume {
            self.position = resume;
            self.stop = self.length;
            self.recovery.given = None;
        }
        if own { None } else { self.expected(list, asked).or_else(|| self.find(list, asked)) }
    }

    fn expected(&mut self, list: &LaneList, asked: Key) -> Option<u32> {
        let &(_, slot) = list.entries[..self.stop].get(self.position).filter(|entry| entry.0 == asked)?;
        self.position += 1;
        Some(slot)
    }

    /// Finds `asked` elsewhere than at the position.
    fn find(&mut self, list: &LaneList, asked: Key) -> Option<u32> {
        if let Some(slot) = self.take_back(list, asked) {
            return Some(slot);
        }
        let open = &list.entries[..self.stop];
        let missed = if self.recovery.missed_at == self.position { self.recovery.missed } else { [None; GRAM - 1] };
        let found = near(open, self.position, asked)
            .or_else(|| missed[GRAM - 2].and_then(|before| pair_ahead(open, self.position, [before, asked])))
            .or_else(|| far(list, open, self.position, &missed, asked));
        let Some(place) = found else {
            self.recovery.missed = missed;
            self.recovery.missed.rotate_left(1);
            self.recovery.missed[GRAM - 2] = Some(asked);
            self.recovery.missed_at = self.position;
            return None;
        };
        if self.recovery.given.is_none() {
            self.recovery.jump = Some((self.position, place));
        }
        self.position = place + 1;
        Some(open[place].1)
    }

    /// Goes back to where the last jump left from if `asked` was expected there, or soon after: what jumped was not in
    /// the plan, or stood for another.
    fn take_back(&mut self, list: &LaneList, asked: Key) -> Option<u32> {
        let (from, to) = self.recovery.jump.filter(|_| self.recovery.given.is_none())?;
        self.position.checked_sub(to).filter(|&since| since <= DOUBT)?;
        let skipped = list.entries.get(from..to.min(from + NEAR))?;
        let place = from + skipped.iter().position(|entry| entry.0 == asked)?;
        self.recovery.given = Some(self.position);
        self.recovery.jump = None;
        self.stop = to;
        self.position = place + 1;
        Some(list.entries[place].1)
    }
}

fn near(open: &[(Key, u32)], position: usize, asked: Key) -> Option<usize> {
    (position + 1..=position + NEAR).find(|&place| open.get(place).is_some_and(|entry| entry.0 == asked))
}

/// The place of the second of two allocations in a row.
fn pair_ahead(open: &[(Key, u32)], position: usize, pair: [Key; 2]) -> Option<usize> {
    let ahead = open.get(position..open.len().min(position + WINDOW))?;
    ahead.windows(2).position(|two| [two[0].0, two[1].0] == pair).map(|place| position + place + 1)
}

/// The nearest place ahead at which the last few allocations stand in a row.
fn far(
    list: &LaneList,
    open: &[(Key, u32)],
    position: usize,
    missed: &[Option<Key>; GRAM - 1],
    asked: Key,
) -> Option<usize> {
    let mut row = [asked; GRAM];
    for (key, missed) in row.iter_mut().zip(missed) {
        *key = (*missed)?;
    }
    let hash = gram(row);
    let nearest = list.grams.partition_point(|&entry| entry < (hash, position as u32 + 1));
    let &(_, place) = list.grams.get(nearest).filter(|entry| entry.0 == hash)?;
    open.get(place as usize).filter(|entry| entry.0 == asked).map(|_| place as usize)
}
