//! What driver calls may cost of a program's time. A call takes tens of microseconds, and far more while copies are under way, so that
//! their number alone says little.

use std::time::Duration;

use lowtide_memory::Source;

/// What a call is taken to cost before any was measured.
const USUAL_COST_NS: f64 = 30_000.0;

/// How many times the usual part the first steps may take.
const START: f64 = 5.0;

/// A program that closes no steps and is through with thousands of blocks in less time has better use for it.
const LEAST_STRETCH: Duration = Duration::from_secs(1);

/// What a step was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepKind {
    /// One of the first that the program has closed: its calls are not counted.
    First,
    /// A later one.
    Late,
    /// A stretch of a program that closes none.
    Unmarked {
        /// Whether it is one of the first.
        is_start: bool,
    },
}

/// What calls have cost so far, at some time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reading {
    calls: u64,
    spent: Duration,
    /// The time of the source.
    at: Duration,
}

impl Reading {
    pub(super) fn new(source: &dyn Source) -> Self {
        let (calls, at) = (source.calls(), source.now());
        Self { calls: calls.handles(), spent: Duration::from_nanos(calls.nanoseconds), at }
    }

    /// How many calls were made since another.
    pub(super) fn calls_since(&self, earlier: Self) -> u64 {
        self.calls - earlier.calls
    }

    /// Some time without a call.
    #[cfg(test)]
    pub(super) fn at(at: Duration) -> Self {
        Self { at, ..Self::default() }
    }
}

/// The time that calls may still take: a part of all that has passed, less what they have taken.
#[derive(Debug)]
pub(super) struct CallTime {
    /// The part of its time that a program gives to calls.
    part: f64,
    /// No more than this many calls are ever saved up, and none are owed beyond so many.
    most_saved: f64,
    credit_ns: f64,
    cost_ns: f64,
    last: Reading,
    /// How long the last step was.
    step: Duration,
}

impl CallTime {
    /// A part of the time that passes from `last` on.
    pub(super) fn new(part: f64, most_saved: u64, last: Reading) -> Self {
        let most_saved = most_saved as f64;
        Self { part, most_saved, credit_ns: 0.0, cost_ns: USUAL_COST_NS, last, step: Duration::ZERO }
    }

    /// A step is over.
    pub(super) fn close(&mut self, now: Reading, kind: StepKind) {
        let (calls, spent) = (now.calls - self.last.calls, now.spent.saturating_sub(self.last.spent));
        self.step = now.at.saturating_sub(self.last.at);
        self.last = now;
        if calls > 0 {
            // What one has cost lately: a single call says little.
            let weight = calls as f64 / (calls as f64 + 16.0);
            self.cost_ns += weight * (spent.as_nanos() as f64 / calls as f64 - self.cost_ns);
        }
        let part = match kind {
            StepKind::Unmarked { .. } if self.step < LEAST_STRETCH => 0.0,
            StepKind::First | StepKind::Unmarked { is_start: true } => START * self.part,
            StepKind::Late | StepKind::Unmarked { .. } => self.part,
        };
        let counted = if kind == StepKind::First { 0.0 } else { spent.as_nanos() as f64 };
        let most = self.most_saved * self.cost_ns;
        self.credit_ns = (self.credit_ns + part * self.step.as_nanos() as f64 - counted).clamp(-most, most);
    }

    /// What was done from `begun` to `ended` is not counted.
    pub(super) fn leave_out(&mut self, begun: Reading, ended: Reading) {
        self.last.calls += ended.calls_since(begun);
        self.last.spent += ended.spent.saturating_sub(begun.spent);
    }

    /// How many calls may be made now.
    pub(super) fn calls(&self) -> u64 {
        (self.credit_ns / self.cost_ns).max(0.0) as u64
    }

    /// How many may be made at the end of a step, where the program waits, for a plan that is to be served: half of what the steps may cost.
    pub(super) fn calls_for_a_plan(&self) -> u64 {
        (self.part / 2.0 * self.step.as_nanos() as f64 / self.cost_ns) as u64
    }

    /// How long ago the last step ended.
    pub(super) fn since_step(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of `step` milliseconds, each with so many calls that take so many microseconds.
    fn after(time: &mut CallTime, steps: u64, step: u64, calls: u64, cost: u64, kind: StepKind) {
        let begun = time.last;
        for number in 1..=steps {
            let reading = Reading {
                calls: begun.calls + number * calls,
                spent: begun.spent + Duration::from_micros(number * calls * cost),
                at: begun.at + Duration::from_millis(number * step),
            };
            time.close(reading, kind);
        }
    }

    #[test]
    fn calls_may_take_their_part_of_the_time_and_no_more() {
        let mut time = CallTime::new(0.01, 2000, Reading::default());
        after(&mut time, 10, 200, 0, 0, StepKind::Late);
        // A hundredth of two seconds, at the usual cost.
        assert_eq!((time.calls(), time.calls_for_a_plan()), (666, 33));
        after(&mut time, 10, 200, 200, 50, StepKind::Late);
        assert_eq!(time.calls(), 0, "a hundred milliseconds were spent in two seconds");
        after(&mut time, 50, 200, 0, 0, StepKind::Late);
        // A hundred milliseconds more, less the sixty that were owed.
        assert!((780..=860).contains(&time.calls()), "{}", time.calls());
    }

    #[test]
    fn what_nobody_waits_for_is_not_counted() {
        let reading =
            |calls, millis| Reading { calls, spent: Duration::from_millis(millis), at: Duration::from_secs(1) };
        let mut time = CallTime::new(0.01, 2000, Reading::default());
        time.leave_out(reading(0, 0), reading(400, 400));
        time.close(reading(400, 400), StepKind::Late);
        assert_eq!(time.calls(), 333);
    }

    #[test]
    fn slow_calls_are_fewer() {
        let mut time = CallTime::new(0.01, 2000, Reading::default());
        after(&mut time, 20, 500, 100, 600, StepKind::First);
        // Half a second, at six hundred microseconds each.
        assert!((780..=880).contains(&time.calls()), "{}", time.calls());
    }

    #[test]
    fn where_nobody_closes_steps_only_long_stretches_count() {
        let mut time = CallTime::new(0.01, 2000, Reading::default());
        after(&mut time, 100, 900, 0, 0, StepKind::Unmarked { is_start: true });
        assert_eq!(time.calls(), 0);
        after(&mut time, 1, 1000, 0, 0, StepKind::Unmarked { is_start: false });
        assert_eq!(time.calls(), 333);
        after(&mut time, 1, 1000, 0, 0, StepKind::Unmarked { is_start: true });
        assert_eq!(time.calls(), 2000);
    }

    #[test]
    fn what_is_saved_and_owed_has_a_limit() {
        let mut time = CallTime::new(0.01, 2000, Reading::default());
        after(&mut time, 100, 10_000, 0, 0, StepKind::Late);
        assert_eq!(time.calls(), 2000);
        after(&mut time, 1, 10, 100_000, 30, StepKind::Late);
        after(&mut time, 1, 5_000, 0, 0, StepKind::Late);
        assert_eq!(time.calls(), 0);
        after(&mut time, 1, 2_000, 0, 0, StepKind::Late);
        assert!(time.calls() > 0);
    }
}
