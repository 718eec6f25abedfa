//! What differs between the arenas that serve plans, and how long one waits after plans that failed.

use lowtide_learn::Served;

/// How an arena weighs a plan against having none.
#[derive(Clone, Debug)]
pub(crate) struct ServingPolicy {
    /// How many allocations a step must miss before it can be called astray,
    pub(crate) tolerated_misses: u64,
    /// and how many hits must not make up for one of them.
    pub(crate) hits_per_miss: u64,
    /// For how many steps a plan that could not be laid out is not tried again.
    pub(crate) rest: u64,
    /// Whether a plan that was dropped within a step is judged by that step too.
    pub(crate) judges_dropped: bool,
    /// Whether a plan is proposed again right after a step that did not follow it.
    pub(crate) insists: bool,
    /// How many steps in a row may be astray before plans are tried ever less often; any number, where there is none.
    pub(crate) patience: Option<u32>,
    /// How many steps are remembered to see whether one recurs.
    pub(crate) remembered_steps: usize,
    /// Whether what is freed between allocations tells steps apart as well: for memory that is freed in the program's order.
    pub(crate) counts_frees: bool,
    /// Where nobody marks steps, a plan must cover this part of the most that was in use: one that covers less gives nothing.
    pub(crate) least_part: Option<u64>,
    /// How many sizes of each thread are kept to find the period of steps; the finder's own number, where there is none.
    pub(crate) sizes_kept: Option<u64>,
}

impl ServingPolicy {
    /// Device memory: to take a plan up costs driver calls, and the framework marks steps.
    pub(crate) const DEVICE: Self = Self {
        tolerated_misses: 64,
        hits_per_miss: 1,
        rest: 32,
        judges_dropped: true,
        insists: true,
        patience: Some(2),
        remembered_steps: 4,
        counts_frees: false,
        least_part: Some(16),
        sizes_kept: None,
    };

    /// Host memory: a plan costs little to take up, and programs go round in several kinds of step, one after the other.
    pub(crate) const HOST: Self = Self {
        tolerated_misses: 8,
        hits_per_miss: 4,
        rest: 0,
        judges_dropped: false,
        insists: false,
        patience: Some(4),
        remembered_steps: 64,
        counts_frees: true,
        least_part: None,
        sizes_kept: Some(1 << 16),
    };

    /// Whether a step does not follow the plan that is served.
    pub(crate) fn is_astray(&self, served: Served) -> bool {
        served.misses > self.tolerated_misses && served.misses * self.hits_per_miss > served.hits
    }
}

/// What a step has cost, however its blocks were placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepCost {
    /// The most that was reserved in it.
    pub(crate) reserved: u64,
    /// The most that was ever in use.
    pub(crate) most_in_use: u64,
    /// What was asked of the source in it.
    pub(crate) calls: u64,
}

impl StepCost {
    /// A plan may reserve this much more than was reserved without it, as a part of what is in use,
    const BYTES: f64 = 0.002;
    /// and ask the source so much more often, as a part and in all.
    const CALLS: (u64, u64) = (20, 16);

    /// Whether it is more than the same step would have cost as `online`.
    pub(crate) fn is_above(&self, online: &Self) -> bool {
        let over = |cost: &Self| cost.reserved as f64 / cost.most_in_use.max(1) as f64;
        let (part, few) = Self::CALLS;
        over(self) > over(online) + Self::BYTES || self.calls > online.calls + online.calls / part + few
    }
}

/// Whether plans are worth trying: a program may repeat itself for a while, and then not as its plans say.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// How many steps in a row have not followed their plan.
    astray: u32,
    /// How often a plan has cost more than none.
    lost: u32,
    /// From which step on a plan is served again.
    again_at: u64,
}

impl Backoff {
    /// The longest time without a plan is two to this power of steps.
    const LONGEST: u32 = 20;

    /// A plan has cost more than none: it is tried again after twice the time, or never.
    pub(super) fn lose(&mut self, step: u64, tries_again: bool) {
        self.lost += 1;
        self.again_at = if tries_again { step + (1 << self.lost.min(Self::LONGEST)) } else { u64::MAX };
    }

    /// A plan has cost no more than none.
    pub(super) fn win(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }

    /// Notes how a plan did in a step: beyond the policy's patience, each one that is astray doubles the time without a plan.
    pub(super) fn judge(&mut self, served: Served, step: u64, policy: &ServingPolicy) {
        if policy.is_astray(served) {
            self.astray += 1;
            if policy.patience.is_some_and(|patience| self.astray >= patience) {
                self.again_at = step + (1 << self.astray.min(Self::LONGEST));
            }
        } else if served.hits > 0 {
            self.astray = 0;
        }
    }

    /// Whether a plan may be served from `step` on.
    pub(super) fn allows(&self, step: u64) -> bool {
        step >= self.again_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_keep_failing_are_tried_ever_less_often_until_one_is_followed() {
        let (policy, astray) = (ServingPolicy::HOST, Served { hits: 3, misses: 20 });
        let mut backoff = Backoff::default();
        let mut waits = Vec::new();
        for step in 1..=6 {
            backoff.judge(astray, step, &policy);
            waits.push((step..1000).take_while(|&later| !backoff.allows(later)).count());
        }
        assert_eq!(waits, [0, 0, 0, 16, 32, 64]);
        backoff.judge(Served { hits: 50, misses: 0 }, 100, &policy);
        backoff.judge(astray, 101, &policy);
        assert!(backoff.allows(101));
    }

    #[test]
    fn a_plan_that_costs_more_is_tried_after_ever_longer_times_or_never() {
        let mut backoff = Backoff::default();
        let wait = |backoff: &Backoff, from: u64| (from..1000).take_while(|&step| !backoff.allows(step)).count();
        let waits: Vec<usize> = (1..=4)
            .map(|_| {
                backoff.lose(10, true);
                wait(&backoff, 10)
            })
            .collect();
        assert_eq!(waits, [2, 4, 8, 16]);
        backoff.win();
        backoff.lose(10, true);
        assert_eq!(wait(&backoff, 10), 16);
        backoff.lose(10, false);
        assert!(!backoff.allows(u64::MAX - 1));
    }

    #[test]
    fn a_step_costs_more_by_bytes_or_by_calls() {
        let online = StepCost { reserved: 1010, most_in_use: 1000, calls: 100 };
        let cost = |reserved, calls| StepCost { reserved, calls, ..online };
        assert!(!online.is_above(&online) && !cost(1011, 100).is_above(&online) && !cost(900, 121).is_above(&online));
        assert!(cost(1013, 0).is_above(&online) && cost(900, 122).is_above(&online));
    }

    #[test]
    fn a_few_misses_or_many_hits_are_no_reason_to_drop_a_plan() {
        for policy in [ServingPolicy::DEVICE, ServingPolicy::HOST] {
            let misses = policy.tolerated_misses;
            assert!(!policy.is_astray(Served { hits: 0, misses }));
            assert!(policy.is_astray(Served { hits: 0, misses: misses + 1 }));
            assert!(!policy.is_astray(Served { hits: policy.hits_per_miss * 1000, misses: 1000 }));
        }
    }
}
