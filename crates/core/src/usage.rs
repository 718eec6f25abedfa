//! What memory was used for over a stretch of time, and how it was or could be laid out: what explanations and
//! reports are made of.

use std::ops::Range;

use crate::{BufferIndex, Bytes, Plan, PoolIndex, Problem, StepIndex, StreamId, TextIndex};

/// Buffers with their lives, what is known of each, and ways to lay them out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    /// The buffers, when each is alive, and what binds them.
    pub problem: Problem,
    /// What is known of each buffer, in the problem's order.
    pub labels: Vec<Label>,
    /// The texts that labels refer to.
    pub texts: Vec<Box<str>>,
    /// When each event happened, where that is known.
    pub clock: Option<Clock>,
    /// The steps that are closed, in order.
    pub steps: Vec<StepEnd>,
    /// What an allocator held in all from this time on, in order of time; empty where it was not recorded.
    pub reserved: Vec<(i64, Bytes)>,
    /// Ways to lay the buffers out, the most interesting last.
    pub layouts: Vec<Layout>,
}

/// What is known of a buffer beside what binds it: for people, not for the planner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// What it is for: parameter, gradient, activation, …
    pub category: Option<TextIndex>,
    /// Where in the program it was asked for: frames, the innermost first, between `; `.
    pub site: Option<TextIndex>,
    /// The stream it was asked for on.
    pub stream: StreamId,
    /// When the program let go of it, where the device finished with it later than that.
    pub freed: Option<i64>,
}

/// When events happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The event that the first reading belongs to.
    pub first: i64,
    /// How many events lie between two readings: one where each has its own. At least one.
    pub every: u32,
    /// Nanoseconds from the start of the recording, never falling.
    pub readings: Vec<u64>,
}

impl Clock {
    /// The reading at `time`, in proportion between two; the nearest one where it lies outside.
    pub fn at(&self, time: i64) -> u64 {
        let events = u64::try_from(time.saturating_sub(self.first)).unwrap_or(0);
        let every = u64::from(self.every.max(1));
        let place = usize::try_from(events / every).unwrap_or(usize::MAX);
        let Some(&before) = self.readings.get(place) else { return self.readings.last().copied().unwrap_or(0) };
        let after = self.readings.get(place.saturating_add(1)).copied().unwrap_or(before);
        let share = u128::from(after.saturating_sub(before)) * u128::from(events % every) / u128::from(every);
        before + share as u64
    }

    /// The same with about `most` readings.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let step = self.readings.len().div_ceil(most.max(1)).max(1);
        let every = u32::try_from(step).ok().and_then(|step| self.every.checked_mul(step)).unwrap_or(u32::MAX);
        Self { first: self.first, every, readings: self.readings.iter().copied().step_by(step).collect() }
    }
}

/// Where a step ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepEnd {
    /// The step.
    pub step: StepIndex,
    /// The time of its closing event.
    pub at: i64,
}

/// One way to lay the buffers out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Where it comes from.
    pub origin: Origin,
    /// Where each buffer lies.
    pub plan: Plan,
}

/// Where a layout comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The addresses that the program was given.
    Recorded,
    /// Every buffer has bytes of its own.
    Unshared,
    /// Each buffer, in order of its beginning, in the free place that it fills best.
    Greedy,
    /// The planner's.
    Planned,
}

impl Origin {
    /// In a word or two.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "as recorded",
            Self::Unshared => "no reuse",
            Self::Greedy => "greedy",
            Self::Planned => "planned",
        }
    }
}

impl Usage {
    /// `problem` with nothing known beside it.
    pub fn of(problem: Problem) -> Self {
        let labels = vec![Label::default(); problem.buffers.len()];
        Self {
            problem,
            labels,
            texts: Vec::new(),
            clock: None,
            steps: Vec::new(),
            reserved: Vec::new(),
            layouts: Vec::new(),
        }
    }

    /// How one pool is used: its buffers alone. What an allocator reserved is known for all pools together only, and is
    /// left out.
    #[must_use]
    pub fn of_pool(&self, pool: PoolIndex) -> Self {
        let keep: Vec<BufferIndex> =
            self.problem.indices().filter(|&buffer| self.problem.buffer(buffer).pool == pool).collect();
        let layout = |layout: &Layout| {
            let mut plan = layout.plan.clone();
            plan.placements = keep.iter().map(|&buffer| layout.plan.placement(buffer)).collect();
            for (place, height) in plan.heights.iter_mut().enumerate().filter(|&(place, _)| place != pool.get()) {
                *height = if plan.placements.iter().any(|placement| placement.pool.get() == place) {
                    *height
                } else {
                    Bytes::ZERO
                };
            }
            Layout { origin: layout.origin, plan }
        };
        Self {
            problem: self.problem.restricted(&keep),
            labels: keep.iter().map(|&buffer| *self.label(buffer)).collect(),
            texts: self.texts.clone(),
            clock: self.clock.clone(),
            steps: self.steps.clone(),
            reserved: Vec::new(),
            layouts: self.layouts.iter().map(layout).collect(),
        }
    }

    /// Counts times from `start` on.
    pub fn count_from(&mut self, start: i64) {
        let shift = |time: &mut i64| *time = time.saturating_sub(start);
        for buffer in &mut self.problem.buffers {
            let gaps = buffer.gaps.iter_mut().map(|gap| &mut gap.lifetime);
            for life in gaps.chain([&mut buffer.lifetime]) {
                shift(&mut life.lower);
                shift(&mut life.upper);
            }
        }
        self.labels.iter_mut().filter_map(|label| label.freed.as_mut()).for_each(shift);
        self.steps.iter_mut().map(|end| &mut end.at).for_each(shift);
        self.reserved.iter_mut().map(|held| &mut held.0).for_each(shift);
        self.clock.iter_mut().map(|clock| &mut clock.first).for_each(shift);
    }

    /// The text at `index`.
    pub fn text(&self, index: TextIndex) -> &str {
        &self.texts[index.0 as usize]
    }

    /// What is known of `buffer`.
    pub fn label(&self, buffer: BufferIndex) -> &Label {
        &self.labels[buffer.get()]
    }

    /// From the first time at which a buffer begins to the last at which one ends.
    pub fn span(&self) -> Range<i64> {
        let lives = self.problem.buffers.iter().map(|buffer| buffer.lifetime);
        let first = lives.clone().map(|life| life.lower).min().unwrap_or(0);
        let last = lives.map(|life| life.upper).max().unwrap_or(first);
        first..last
    }

    /// The step in which `time` lies, where steps are known.
    pub fn step_at(&self, time: i64) -> Option<StepIndex> {
        let place = self.steps.partition_point(|end| end.at < time);
        self.steps.get(place).map(|end| end.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_clock_tells_times_in_proportion() {
        let clock = Clock { first: 10, every: 1, readings: vec![0, 100, 200, 300, 400, 500, 600] };
        let thin = clock.thinned(3);
        assert_eq!((thin.every, &*thin.readings), (3, &[0, 300, 600][..]));
        for event in 0..30 {
            assert_eq!(thin.at(event), clock.at(event), "event {event}");
        }
        assert_eq!((thin.at(i64::MIN), thin.at(i64::MAX)), (0, 600));
        assert_eq!(Clock { first: 0, every: 1, readings: Vec::new() }.at(5), 0);
    }
}
