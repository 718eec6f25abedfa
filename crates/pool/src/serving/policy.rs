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
        patience: None,
        remembered_steps: 4,
        counts_frees: false,
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
        sizes_kept: Some(1 << 16),
    };

    /// Whether a step does not follow the plan that is served.
    pub(crate) fn is_astray(&self, served: Served) -> bool {
        served.misses > self.tolerated_misses && served.misses * self.hits_per_miss > served.hits
    }
}

/// Whether plans are worth trying: a program may repeat itself for a while, and then not as its plans say.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// How many steps in a row have not followed their plan.
    astray: u32,
    /// From which step on a plan is served again.
    again_at: u64,
}

impl Backoff {
    /// The longest time without a plan is two to this power of steps.
    const LONGEST: u32 = 20;

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
    fn a_few_misses_or_many_hits_are_no_reason_to_drop_a_plan() {
        for policy in [ServingPolicy::DEVICE, ServingPolicy::HOST] {
            let misses = policy.tolerated_misses;
            assert!(!policy.is_astray(Served { hits: 0, misses }));
            assert!(policy.is_astray(Served { hits: 0, misses: misses + 1 }));
            assert!(!policy.is_astray(Served { hits: policy.hits_per_miss * 1000, misses: 1000 }));
        }
    }
}
