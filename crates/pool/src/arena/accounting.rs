//! What all parts of an arena count together: how much is in use, how much is reserved, and how many driver calls the
//! step has left.

use lowtide_core::Bytes;

use super::ArenaOptions;
use super::call_budget::CallBudget;
use super::call_time::Reading;
use super::recent_peak::RecentPeak;
use crate::pool::Stats;
use crate::serving::StepCost;

/// The counts of an arena.
#[derive(Debug)]
pub(super) struct Accounting {
    live: u64,
    peak_live: u64,
    /// The same of the last steps.
    recent: RecentPeak,
    reserved: u64,
    peak_reserved: u64,
    /// What is set aside for the plan that is served: it counts as in use.
    planned: u64,
    /// The most that was reserved in the step that is open, and the calls in it.
    step_reserved: u64,
    step_calls: u64,
    /// The most that was seen in use, blocks of the plan included.
    peak_seen: Bytes,
    slack: f64,
    budget: CallBudget,
}

impl Accounting {
    pub(super) fn new(options: &ArenaOptions, reading: Reading) -> Self {
        let &ArenaOptions { slack, start, ration, .. } = options;
        Self {
            live: 0,
            peak_live: 0,
            recent: RecentPeak::default(),
            reserved: 0,
            peak_reserved: 0,
            planned: 0,
            step_reserved: 0,
            step_calls: 0,
            peak_seen: Bytes::ZERO,
            slack,
            budget: CallBudget::new(start, ration, reading),
        }
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.live += bytes;
        self.peak_live = self.peak_live.max(self.live);
        self.recent.take(self.live);
    }

    pub(super) fn give(&mut self, bytes: u64) {
        self.live -= bytes;
    }

    pub(super) fn created(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.step_reserved = self.step_reserved.max(self.reserved);
        self.count_calls(2);
    }

    pub(super) fn destroyed(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.count_calls(2);
    }

    pub(super) fn mapped(&mut self) {
        self.count_calls(1);
    }

    pub(super) fn unmapped(&mut self) {
        self.count_calls(1);
    }

    /// What may be reserved while `asked` more is about to be used: a little above the most that was in use lately.
    pub(super) fn allowance(&self, asked: u64) -> u64 {
        let peak = self.recent.most().max(self.live + self.planned + asked);
        peak + (peak as f64 * self.budget.slack(self.slack)) as u64
    }

    /// Whether what is in use and a plan of `height` together come near the most that was ever in use: then the plan needs no other
    /// memory beside it.
    pub(super) fn covers(&self, height: u64) -> bool {
        self.live + height >= self.peak_seen.get() / 10 * 9
    }

    /// Whether more would be reserved than ever was, with `asked` more, and than is about the most that was in use or would be where
    /// `live` bytes are.
    pub(super) fn would_exceed(&self, live: u64, asked: u64) -> bool {
        let most = self.peak_seen.get().max(live + asked);
        self.reserved + asked > self.peak_reserved.max(most + most / 1000)
    }

    /// Whether clearly more is reserved than may be.
    fn reserves_too_much(&self) -> bool {
        let allowance = self.allowance(0);
        self.reserved > allowance + allowance / 256
    }

    fn count_calls(&mut self, calls: u64) {
        self.step_calls += calls;
        self.budget.count(calls);
    }

    /// The driver calls.
    pub(super) fn budget(&self) -> &CallBudget {
        &self.budget
    }

    pub(super) fn budget_mut(&mut self) -> &mut CallBudget {
        &mut self.budget
    }

    /// What was asked of the source since there were `before` calls, from `begun` to `ended`, was for a plan and while the device was at work.
    /// Nobody waited for it: it counts neither for the step nor for what steps may cost.
    pub(super) fn made_ahead(&mut self, before: u64, begun: Reading, ended: Reading) {
        self.step_calls = self.step_calls.saturating_sub(self.budget.calls() - before);
        self.budget.made_ahead(before, begun, ended);
    }

    /// What comes is the cost of another step.
    pub(super) fn begin_cost(&mut self) {
        (self.step_reserved, self.step_calls) = (self.reserved, 0);
    }

    /// What the step that is open has cost so far.
    pub(super) fn cost(&self) -> StepCost {
        StepCost { reserved: self.step_reserved, most_in_use: self.peak_seen.get(), calls: self.step_calls }
    }

    /// How many more calls this step may make.
    pub(super) fn left(&self) -> u64 {
        self.budget.left()
    }

    /// Whether free memory is defragmented after this step, where that takes so many calls.
    pub(super) fn is_defragmented(&self, calls: impl FnOnce() -> u64) -> bool {
        self.budget.is_defragmented(self.reserves_too_much(), calls)
    }

    /// Closes a step; `reading` is what calls have cost so far.
    pub(super) fn close(&mut self, reading: Reading) {
        // Blocks of a plan come and go without a count: a step that has one uses about as much as the plan has.
        self.recent.take(self.planned);
        self.recent.close(self.live);
        self.budget.close(reading);
    }

    /// How much is reserved.
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The most that was reserved.
    pub(super) fn peak_reserved(&self) -> u64 {
        self.peak_reserved
    }

    /// Sets aside `bytes` for the plan that is served.
    pub(super) fn set_planned(&mut self, bytes: u64) {
        self.planned = bytes;
    }

    /// What is in use and reserved, where blocks of the plan have `planned` bytes. Those come and go without a count: the most
    /// in use is what was seen whenever somebody asked.
    pub(super) fn stats(&mut self, planned: u64) -> Stats {
        let live = Bytes::new(self.live + planned);
        self.peak_seen = self.peak_seen.max(live).max(Bytes::new(self.peak_live));
        Stats {
            live,
            peak_live: self.peak_seen,
            reserved: Bytes::new(self.reserved),
            peak_reserved: Bytes::new(self.peak_reserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn steps_that_a_plan_serves_use_what_it_has() {
        let reading = || Reading::at(Duration::ZERO);
        let mut accounting = Accounting::new(&ArenaOptions::default(), reading());
        accounting.set_planned(1 << 30);
        for _ in 0..100 {
            accounting.take(1 << 20);
            accounting.give(1 << 20);
            accounting.close(reading());
        }
        accounting.set_planned(0);
        assert!(accounting.allowance(0) >= 1 << 30, "free memory of the plan is not given back at once");
    }
}
