//! How many driver calls the steps of a program may make.

use super::call_time::{CallTime, Reading, StepKind};

/// How the first steps weigh memory against driver calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Memory first: in so many steps, from the first, handles are made, mapped, unmapped and given back freely.
    Tight {
        /// How many.
        steps: u64,
    },
    /// Time first: the first step takes memory as a caching allocator does, in large handles with one address each. What that leaves
    /// unused is given back after some of the first steps, which may make more calls than later ones.
    Fast,
}

/// In how many steps a fast start ends.
const FAST_STEPS: u64 = 10;

/// How many calls those steps may make beyond what every step may.
const FAST_CALLS: u64 = 4000;

/// So many calls that steps have left over are kept for others.
const MOST_SAVED: u64 = 2000;

/// The part of the program's time that calls may take after a fast start.
const CALL_TIME: f64 = 0.01;

/// The slack of the first steps.
const FAST_SLACK: f64 = 0.002;

/// How many calls plans may cost after a fast start beyond their part of all others: their handles are mapped once.
const FIRST_PLAN: u64 = 2048;

/// Into how many handles memory is divided, about, in a tight start, in the first step of a fast one and in the others.
const TIGHT_HANDLES: u64 = 16_384;
const FIRST_HANDLES: u64 = 1024;
const FAST_HANDLES: u64 = 256;

/// The calls of an arena, and those that the step that is open may still make.
#[derive(Debug)]
pub(super) struct CallBudget {
    start: Start,
    ration: u64,
    /// How many steps were closed.
    step: u64,
    /// The calls of the step that is open.
    used: u64,
    /// What earlier steps have left over.
    saved: u64,
    /// All calls, and those of them that were made for plans.
    calls: u64,
    plan_calls: u64,
    /// The time that they may take after a fast start.
    time: Option<CallTime>,
    /// Whether the program closes its steps itself.
    is_marked: bool,
}

impl CallBudget {
    /// A budget of `ration` calls a step; `reading` is what calls have cost before the first.
    pub(super) fn new(start: Start, ration: u64, reading: Reading) -> Self {
        let (saved, time) = match start {
            Start::Tight { .. } => (0, None),
            Start::Fast => (FAST_CALLS, Some(CallTime::new(CALL_TIME, MOST_SAVED, reading))),
        };
        Self { start, ration, step: 0, used: 0, saved, calls: 0, plan_calls: 0, time, is_marked: false }
    }

    pub(super) fn count(&mut self, calls: u64) {
        self.used += calls;
        self.calls += calls;
    }

    /// How many calls were made in all.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// How many more calls this step may make.
    pub(super) fn left(&self) -> u64 {
        let most = match self.start {
            Start::Tight { steps } if self.step < steps => return u64::MAX,
            Start::Fast if self.step == 0 => 0,
            _ if self.is_starting() => self.ration + self.saved,
            // One step is not to wait for all that others have left over.
            _ => self.ration + self.saved.min(self.ration),
        };
        self.limit().min(most).saturating_sub(self.used)
    }

    /// How many calls there is time for. The first steps of a program that closes them itself are not limited.
    fn limit(&self) -> u64 {
        let time = self.time.as_ref().filter(|_| !(self.is_starting() && self.is_marked));
        time.map_or(u64::MAX, CallTime::calls)
    }

    /// The time that calls may take, where it is counted.
    pub(super) fn time(&self) -> Option<&CallTime> {
        self.time.as_ref()
    }

    /// Whether the program closes its steps itself.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// The program closes its steps itself.
    pub(super) fn mark(&mut self) {
        self.is_marked = true;
    }

    /// Whether this is one of the first steps.
    pub(super) fn is_starting(&self) -> bool {
        match self.start {
            Start::Tight { steps } => self.step < steps,
            Start::Fast => self.step < FAST_STEPS,
        }
    }

    /// The slack of the step, of which `usual` is that of later ones.
    pub(super) fn slack(&self, usual: f64) -> f64 {
        if self.start == Start::Fast && self.is_starting() { usual.min(FAST_SLACK) } else { usual }
    }

    /// Into how many handles memory is divided that is made in this step, where their number does not depend on the calls that are left.
    pub(super) fn handles(&self) -> Option<u64> {
        let handles = match self.start {
            Start::Tight { .. } => TIGHT_HANDLES,
            Start::Fast if self.step == 0 => FIRST_HANDLES,
            Start::Fast => FAST_HANDLES,
        };
        self.is_starting().then_some(handles)
    }

    /// Whether free memory is defragmented after this step, in which too much was reserved or not. Where nobody closes steps, that is
    /// whenever there is time for as many calls as it takes.
    pub(super) fn is_defragmented(&self, too_much: bool, calls: impl FnOnce() -> u64) -> bool {
        match self.start {
            Start::Tight { steps } => self.step < steps,
            Start::Fast if !self.is_marked => too_much && (1..=self.limit()).contains(&calls()),
            Start::Fast => self.step == 0 || too_much && (self.step + 1).is_power_of_two(),
        }
    }

    /// A run of free memory that has this part of all there is stays as it is when free memory is defragmented.
    pub(super) fn long_run(&self) -> f64 {
        match self.start {
            Start::Tight { .. } => f64::INFINITY,
            Start::Fast => 0.25,
        }
    }

    /// Whether so many calls may be made for a plan: a small part of those that were made without it. A tight start defragments free
    /// memory in any case, and a plan does that too.
    pub(super) fn may_spend(&self, calls: u64) -> bool {
        const PART: u64 = 25;
        const CALLS_OF_A_STEP: u64 = 4;
        let others = self.calls - self.plan_calls;
        let usual = others / PART + CALLS_OF_A_STEP * self.step;
        let most = match self.start {
            Start::Tight { steps } if self.step < steps => u64::MAX,
            Start::Tight { .. } => usual,
            Start::Fast => usual + FIRST_PLAN,
        };
        calls == 0 || self.plan_calls.saturating_add(calls) <= most
    }

    /// What was asked of the source since there were `before` calls was for a plan.
    pub(super) fn spent_on_plan(&mut self, before: u64) {
        self.plan_calls += self.calls - before;
    }

    /// What was asked of the source since there were `before` calls is not the step's.
    pub(super) fn spent_between_steps(&mut self, before: u64) {
        self.used = self.used.saturating_sub(self.calls - before);
    }

    /// What was asked of the source since there were `before` calls, from `begun` to `ended`, was for a plan, and nobody waited for it.
    pub(super) fn made_ahead(&mut self, before: u64, begun: Reading, ended: Reading) {
        self.spent_on_plan(before);
        self.spent_between_steps(before);
        if let Some(time) = &mut self.time {
            time.leave_out(begun, ended);
        }
    }

    /// Closes a step; `reading` is what calls have cost so far.
    pub(super) fn close(&mut self, reading: Reading) {
        let kind = match (self.is_marked, self.is_starting()) {
            (true, true) => StepKind::First,
            (true, false) => StepKind::Late,
            (false, is_start) => StepKind::Unmarked { is_start },
        };
        if let Some(time) = &mut self.time {
            time.close(reading, kind);
        }
        if self.start == Start::Fast && self.step > 0 {
            self.saved = self.saved.saturating_sub(self.used.saturating_sub(self.ration));
            let left = self.ration.saturating_sub(self.used);
            self.saved = self.saved.max((self.saved + left).min(MOST_SAVED));
        }
        self.used = 0;
        self.step += 1;
        if !self.is_starting() {
            self.saved = self.saved.min(MOST_SAVED);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn marked_and_fast() -> CallBudget {
        let mut budget = CallBudget::new(Start::Fast, 100, Reading::default());
        budget.mark();
        budget
    }

    /// A step with so many calls of no time, long enough for any number of calls.
    fn step(budget: &mut CallBudget, calls: u64) {
        budget.count(calls);
        budget.close(Reading::at(Duration::from_mins(budget.step + 1)));
    }

    #[test]
    fn a_tight_start_makes_calls_freely() {
        let mut budget = CallBudget::new(Start::Tight { steps: 2 }, 100, Reading::default());
        assert_eq!(budget.left(), u64::MAX);
        step(&mut budget, 5000);
        assert!(budget.is_defragmented(false, || 0));
        step(&mut budget, 5000);
        assert_eq!((budget.left(), budget.is_defragmented(true, || 0)), (100, false));
    }

    #[test]
    fn a_fast_start_makes_none_that_it_need_not_and_then_some() {
        let mut budget = marked_and_fast();
        assert_eq!(budget.left(), 0);
        step(&mut budget, 3000);
        assert_eq!(budget.left(), 100 + FAST_CALLS, "what the first step needs is not counted");
        step(&mut budget, 1100);
        assert_eq!(budget.left(), 100 + FAST_CALLS - 1000);
        while budget.is_starting() {
            step(&mut budget, 0);
        }
        assert_eq!(budget.left(), 200, "a late step makes no more than two rations");
    }

    #[test]
    fn what_steps_leave_over_is_saved_for_others() {
        let mut budget = marked_and_fast();
        (0..FAST_STEPS).for_each(|_| step(&mut budget, 100 + FAST_CALLS));
        assert_eq!(budget.left(), 100);
        (0..5).for_each(|_| step(&mut budget, 40));
        assert_eq!(budget.left(), 200);
        (0..500).for_each(|_| step(&mut budget, 0));
        assert_eq!(budget.left(), 200, "a late step makes no more than two rations");
    }

    #[test]
    fn after_a_fast_start_free_memory_is_defragmented_ever_less_often() {
        let mut budget = marked_and_fast();
        let mut defragmented = Vec::new();
        for number in 1..=40 {
            assert!(number == 1 || !budget.is_defragmented(false, || 0));
            if budget.is_defragmented(true, || 0) {
                defragmented.push(number);
            }
            step(&mut budget, 0);
        }
        assert_eq!(defragmented, [1, 2, 4, 8, 16, 32]);
    }
}
