//! The most that was in use lately. What only the first steps needed, such as the workspaces that libraries try out, is not worth keeping,
//! nor is what no step of a long run has needed for long.

use std::collections::VecDeque;

/// So many of the first steps are forgotten once there are twice as many others.
const FIRST: usize = 3;

/// No more steps than this are remembered.
const MOST: usize = 64;

/// The most that was in use in each of the last steps.
#[derive(Debug, Default)]
pub(super) struct RecentPeak {
    /// Of the step that is open.
    open: u64,
    /// Of those before it, the latest last.
    steps: VecDeque<u64>,
    closed: usize,
    /// Of all of them.
    most: u64,
}

impl RecentPeak {
    /// So much is in use.
    pub(super) fn take(&mut self, live: u64) {
        self.open = self.open.max(live);
        self.most = self.most.max(live);
    }

    /// A step is over, and so much is in use when the next one begins.
    pub(super) fn close(&mut self, live: u64) {
        self.closed += 1;
        self.steps.push_back(self.open);
        while self.steps.len() > self.window() {
            self.steps.pop_front();
        }
        self.open = live;
        self.most = self.steps.iter().copied().fold(live, u64::max);
    }

    /// How many steps are remembered.
    fn window(&self) -> usize {
        (self.closed - FIRST.min(self.closed / 3)).min(MOST)
    }

    /// The most that was in use in the step that is open and in those that are remembered.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps with these peaks, after each of which nothing is in use.
    fn after(peak: &mut RecentPeak, steps: impl IntoIterator<Item = u64>) {
        for step in steps {
            peak.take(step);
            peak.close(0);
        }
    }

    #[test]
    fn the_first_steps_are_forgotten_soon_and_others_after_many() {
        let mut peak = RecentPeak::default();
        after(&mut peak, [9, 5, 6, 7]);
        assert_eq!(peak.most(), 7, "the first of four");
        after(&mut peak, [5; 40]);
        assert_eq!(peak.most(), 7);
        after(&mut peak, [5; 23]);
        assert_eq!(peak.most(), 7, "64 are remembered");
        after(&mut peak, [5]);
        assert_eq!(peak.most(), 5);
    }

    #[test]
    fn what_is_in_use_now_counts() {
        let mut peak = RecentPeak::default();
        peak.take(3);
        peak.close(2);
        peak.take(4);
        assert_eq!(peak.most(), 4);
        after(&mut peak, [0; 6]);
        peak.close(1);
        assert_eq!(peak.most(), 1);
    }
}
