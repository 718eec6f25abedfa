//! Time as far as an arena needs it: nobody asks for it but whoever lets it pass.

use std::time::Duration;

/// The time as far as ticks have told it, in quarters of a second since the first.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// What the first tick said.
    began: Option<Duration>,
    now: u32,
    /// When the last step was closed, and how long steps take.
    step_closed: u32,
    longest_step: u32,
    /// When the plan was last seen to serve, and how many allocations it had served by then.
    plan_seen: u32,
    plan_served: u64,
    /// When memory was last given back.
    purged: u32,
}

/// A duration in the clock's units.
fn quarters(duration: Duration) -> u32 {
    (duration.as_millis() / 250).try_into().unwrap_or(u32::MAX)
}

impl Clock {
    /// Time goes on.
    pub(super) fn set(&mut self, now: Duration) {
        let since = now.saturating_sub(*self.began.get_or_insert(now));
        self.now = quarters(since).min(u32::MAX - 1);
    }

    /// The time of the last tick.
    pub(super) fn now(&self) -> u32 {
        self.now
    }

    /// A step was closed. A first step has the set-up before it. A pause is no step: what takes ever longer is forgotten again.
    pub(super) fn close_step(&mut self, is_first: bool) {
        let took = if is_first { 0 } else { self.now - self.step_closed.min(self.now) };
        self.step_closed = self.now;
        self.longest_step = took.max(self.longest_step.saturating_sub(self.longest_step / 8));
    }

    /// A plan begins to serve.
    pub(super) fn begin_plan(&mut self) {
        (self.plan_seen, self.plan_served) = (self.now, 0);
    }

    /// The plan has `served` so many allocations by now.
    pub(super) fn see_plan(&mut self, served: u64) {
        if served != self.plan_served {
            (self.plan_seen, self.plan_served) = (self.now, served);
        }
    }

    /// Whether the plan was not [seen](Self::see_plan) to serve for `interval`.
    pub(super) fn is_plan_idle(&self, interval: u32) -> bool {
        self.now.saturating_sub(self.plan_seen) > interval
    }

    /// For how long memory is kept that nothing uses: a step that takes long may use its memory but once.
    pub(super) fn kept(&self, decay: Duration) -> u32 {
        quarters(decay).max(self.longest_step.saturating_mul(3))
    }

    /// Since when memory must not have been used to be given back now; none where that is not due yet.
    pub(super) fn purge_before(&mut self, decay: Duration) -> Option<u32> {
        let is_due = self.now.saturating_sub(self.purged) >= (quarters(decay) / 8).max(1);
        let since = self.now.checked_sub(self.kept(decay)).filter(|&since| is_due && since > 0)?;
        self.purged = self.now;
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: &mut Clock, seconds: u64) {
        clock.set(Duration::from_secs(100 + seconds));
    }

    #[test]
    fn memory_is_kept_for_three_of_the_longest_steps() {
        let (mut clock, decay) = (Clock::default(), Duration::from_secs(2));
        at(&mut clock, 0);
        clock.close_step(true);
        at(&mut clock, 10);
        clock.close_step(false);
        assert_eq!(clock.kept(decay), 3 * 40);
        at(&mut clock, 29);
        assert_eq!(clock.purge_before(decay), None);
        at(&mut clock, 31);
        assert_eq!(clock.purge_before(decay), Some(4));
        assert_eq!(clock.purge_before(decay), None);
    }

    #[test]
    fn a_plan_is_idle_when_it_has_served_nothing_for_a_while() {
        let mut clock = Clock::default();
        at(&mut clock, 0);
        clock.begin_plan();
        for (second, is_idle) in [(5, false), (7, false), (8, true)] {
            at(&mut clock, second);
            clock.see_plan(7);
            assert_eq!(clock.is_plan_idle(8), is_idle, "after {second} s");
        }
    }
}
