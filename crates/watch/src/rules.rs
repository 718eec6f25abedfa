//! What is called a leak, and which part of a run is judged: the rules that the user can set, and the [`Judge`] that
//! they make of a run over time or of the repetitions of an action.

use std::time::Duration;

use lowtide_core::Bytes;

use crate::{Action, Judge, Judgement, Observed};

/// Growth over the judged part that may be chance: counters of the system are as coarse.
const CHANCE: f64 = 1_048_576.0;
/// The shortest part that is judged where nobody said when it begins, in seconds.
const SHORTEST: f64 = 2.5;
/// The shortest part that is called a leak: a collector or a cache may take as long to come round.
const SHORTEST_LEAK: f64 = 14.5;
/// The shortest time in which repetitions are called a leak where nobody said when to begin, in seconds.
pub(crate) const SHORTEST_REPEATED: f64 = 5.0;

/// What is called a leak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Growth in a minute that is no leak yet.
    pub leak_rate: Bytes,
    /// What comes after so long is judged, and called a leak after any time; without it, the second half of the run is,
    /// and is called a leak from about 30 seconds on.
    pub warm_up: Option<Duration>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { leak_rate: Bytes::new(1 << 20), warm_up: None }
    }
}

impl Rules {
    /// Bytes in a second that are no leak yet.
    pub(crate) fn rate(&self) -> f64 {
        self.leak_rate.get() as f64 / 60.0
    }

    /// Judges what was seen over time.
    pub fn judge_time(&self, observed: &Observed) -> Judgement {
        let points = observed.series.own();
        let end = points.last().map_or(0.0, |point| point.at);
        // What comes before the first mark sets up what is repeated.
        let begin = observed.actions.marks().first().map_or(0.0, |mark| mark.at);
        self.over_time(begin, end).judge(&points)
    }

    /// The judge of a run that was set up at `begin` and took until `end`.
    pub(crate) fn over_time(&self, begin: f64, end: f64) -> Judge {
        let rate = self.rate();
        if let Some(warm_up) = self.warm_up {
            let from = warm_up.as_secs_f64();
            return Judge { rate, growth: CHANCE, from, settled: from, shortest: 0.0, shortest_leak: 0.0 };
        }
        let (from, settled) = ((end / 2.0).max(begin), (end / 4.0).max(begin));
        Judge { rate, growth: CHANCE, from, settled, shortest: SHORTEST, shortest_leak: SHORTEST_LEAK }
    }

    /// Judges the repetitions of an action.
    pub fn judge_action(&self, action: &Action) -> Judgement {
        let shortest = if self.warm_up.is_some() { 0.0 } else { SHORTEST_REPEATED };
        action.judge(self.rate(), CHANCE, shortest)
    }
}
