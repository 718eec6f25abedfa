//! What all parts of an arena count together: how much is in use, how much is reserved, and how many driver calls the
//! step has left.

use lowtide_core::Bytes;

use super::ArenaOptions;
use crate::pool::Stats;
use crate::serving::StepCost;

/// The counts of an arena.
#[derive(Debug)]
pub(super) struct Accounting {
    live: u64,
    peak_live: u64,
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
    warm_slack: f64,
    warm_handles: u64,
    ration: u64,
    record_ration: u64,
    warm_up: u64,
    used: u64,
    step: u64,
    /// All calls, and those of them that were made for plans.
    calls: u64,
    plan_calls: u64,
    /// The most that was in use before the step that is open.
    record: u64,
}

impl Accounting {
    pub(super) fn new(options: &ArenaOptions) -> Self {
        let &ArenaOptions { slack, warm_slack, warm_handles, ration, record_ration, warm_up, .. } = options;
        Self {
            live: 0,
            peak_live: 0,
            reserved: 0,
            peak_reserved: 0,
            planned: 0,
            step_reserved: 0,
            step_calls: 0,
            peak_seen: Bytes::ZERO,
            slack,
            warm_slack,
            warm_handles,
            ration,
            record_ration,
            warm_up,
            used: 0,
            step: 0,
            calls: 0,
            plan_calls: 0,
            record: 0,
        }
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.live += bytes;
        self.peak_live = self.peak_live.max(self.live);
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

    /// What may be reserved while `asked` more is about to be used: a little above the most that was ever in use.
    pub(super) fn allowance(&self, asked: u64) -> u64 {
        let peak = self.peak_live.max(self.live + self.planned + asked);
        let slack = if self.warming_up() { self.warm_slack } else { self.slack };
        peak + (peak as f64 * slack) as u64
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

    fn count_calls(&mut self, calls: u64) {
        self.used += calls;
        self.step_calls += calls;
        self.calls += calls;
    }

    /// Whether so many calls may be made for a plan: a small part of those that were made without it. Free memory is put in order
    /// while calls are not rationed yet, and a plan does that too.
    pub(super) fn may_spend(&self, calls: u64) -> bool {
        const PART: u64 = 25;
        const CALLS_OF_A_STEP: u64 = 4;
        let others = self.calls - self.plan_calls;
        self.warming_up() || self.plan_calls + calls <= others / PART + CALLS_OF_A_STEP * self.step
    }

    /// How many calls were made in all.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// What was asked of the source since there were `before` calls was for a plan.
    pub(super) fn spent_on_plan(&mut self, before: u64) {
        self.plan_calls += self.calls - before;
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
        if self.warming_up() {
            return u64::MAX;
        }
        let ration = if self.most_in_use() > self.record { self.ration.max(self.record_ration) } else { self.ration };
        ration.saturating_sub(self.used)
    }

    /// Whether calls are not rationed yet.
    pub(super) fn warming_up(&self) -> bool {
        self.step < self.warm_up
    }

    /// Into how many handles memory is divided for the next step, where calls are not rationed in that one either.
    pub(super) fn warm_handles(&self) -> Option<u64> {
        (self.step + 1 < self.warm_up).then_some(self.warm_handles)
    }

    fn most_in_use(&self) -> u64 {
        self.peak_live.max(self.live + self.planned)
    }

    /// Closes a step.
    pub(super) fn close(&mut self) {
        self.used = 0;
        self.record = self.most_in_use();
        self.step += 1;
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
