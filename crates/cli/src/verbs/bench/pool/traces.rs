//! Recorded runs on all allocators, with what is to be reached beside.

use lowtide_core::{Action, StreamId, Trace};
use lowtide_replay::{Replay, ReplayOptions, Strategy, TorchOptions, Warm, is_repeating};
use serde::Serialize;

use super::Run;
use crate::Failure;
use crate::verbs::replay;

/// One run on all allocators. Parts are of one; `calls` are the most driver calls of a step after the second.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub trace: String,
    pub streams: usize,
    /// Whether every step after the first asks for the same blocks in the same order.
    pub repeating: bool,
    pub caching_waste: f64,
    pub expandable_waste: f64,
    pub arena_waste: f64,
    pub arena_calls: Option<u64>,
    pub planned_waste: f64,
    /// Where steps repeat: from the third on, what is reserved beyond the most that is alive, as a part of that.
    pub planned_above_bound: Option<f64>,
    pub planned_calls: Option<u64>,
    pub plan_hits: Option<u64>,
    pub plan_misses: Option<u64>,
    pub target: Target,
    pub met: bool,
}

/// What is to be reached.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Target {
    pub arena_waste: f64,
    /// Absent where streams share memory: there waste alone counts.
    pub arena_calls: Option<u64>,
    pub planned_above_bound: Option<f64>,
    pub planned_calls: Option<u64>,
}

impl Target {
    fn of(is_repeating: bool, streams: usize) -> Self {
        let is_single = streams <= 1;
        let is_plannable = is_repeating && is_single;
        Self {
            arena_waste: if is_single { 0.01 } else { 0.02 },
            arena_calls: is_single.then_some(250),
            planned_above_bound: is_plannable.then_some(0.001),
            planned_calls: is_plannable.then_some(0),
        }
    }

    fn is_met(&self, row: &Row) -> bool {
        let below = |reached: Option<f64>, target: Option<f64>| match (reached, target) {
            (Some(reached), Some(target)) => reached <= target,
            _ => true,
        };
        let fewer = |reached: Option<u64>, target: Option<u64>| match (reached, target) {
            (Some(reached), Some(target)) => reached <= target,
            _ => true,
        };
        row.arena_waste <= self.arena_waste
            && fewer(row.arena_calls, self.arena_calls)
            && below(row.planned_above_bound, self.planned_above_bound)
            && fewer(row.planned_calls, self.planned_calls)
    }
}

/// Plays every run on every allocator; ends early after Ctrl-C.
pub(super) fn measure(runs: &[Run]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for run in runs {
        let Some(row) = row(run)? else { break };
        rows.push(row);
    }
    Ok(rows)
}

fn row(run: &Run) -> Result<Option<Row>, Failure> {
    let play = |strategy: &Strategy| replay::play(&run.trace, strategy, &ReplayOptions::default(), &run.label);
    let Some(caching) = play(&Strategy::Caching(TorchOptions::default()))? else { return Ok(None) };
    let Some(expandable) = play(&Strategy::Expandable(TorchOptions::default()))? else { return Ok(None) };
    let Some(arena) = play(&Strategy::arena())? else { return Ok(None) };
    let Some(planned) = play(&Strategy::planned())? else { return Ok(None) };
    let (streams, repeating) = (streams(&run.trace), is_repeating(&run.trace));
    let calls = |replay: &Replay| replay.warm.map(|warm| warm.most_driver_calls);
    let mut row = Row {
        trace: run.label.clone(),
        streams,
        repeating,
        caching_waste: caching.fragmentation(),
        expandable_waste: expandable.fragmentation(),
        arena_waste: arena.fragmentation(),
        arena_calls: calls(&arena),
        planned_waste: planned.fragmentation(),
        planned_above_bound: planned.warm.filter(|_| repeating).map(above_bound),
        planned_calls: calls(&planned),
        plan_hits: planned.plan.map(|plan| plan.hits),
        plan_misses: planned.plan.map(|plan| plan.misses),
        target: Target::of(repeating, streams),
        met: false,
    };
    row.met = row.target.is_met(&row);
    Ok(Some(row))
}

fn above_bound(warm: Warm) -> f64 {
    warm.peak_reserved.ratio(warm.peak_requested) - 1.0
}

/// How many streams ask for blocks.
fn streams(trace: &Trace) -> usize {
    let asked = trace.events.iter().filter(|event| matches!(event.action, Action::Alloc { .. }));
    let mut streams: Vec<StreamId> = asked.map(|event| event.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    streams.len()
}
