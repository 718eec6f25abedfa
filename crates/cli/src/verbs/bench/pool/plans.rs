//! Recorded runs with a plan and without: what the plan adds to memory, to driver calls and to the time inside the allocator, the
//! making of plans included; as they were recorded, and as if the program marked no steps.

use std::num::NonZeroU64;

use lowtide_core::Bytes;
use lowtide_replay::{Replay, ReplayOptions, Strategy};
use serde::Serialize;

use super::Run;
use crate::Failure;
use crate::verbs::replay;

/// How often the steps of a run are played.
const ROUNDS: NonZeroU64 = NonZeroU64::new(3).unwrap();

/// One run on the arena and on the arena that learns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub trace: String,
    /// Whether the allocator hears where steps end.
    pub marked: bool,
    pub arena: Cost,
    pub planned: Cost,
    /// Whether the plan adds at most 0.2% of memory and 5% of driver calls.
    pub met: bool,
}

/// What a run cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Cost {
    pub reserved: Bytes,
    pub driver_calls: u64,
    /// Inside the allocator, driver calls apart, planning included.
    pub milliseconds: f64,
}

impl Cost {
    fn of(replay: &Replay) -> Self {
        Self {
            reserved: replay.peak_reserved,
            driver_calls: replay.driver_calls_per_step.iter().sum(),
            milliseconds: (replay.nanoseconds + replay.closing_ns) as f64 / 1e6,
        }
    }

    fn is_no_more_than(&self, other: &Self) -> bool {
        self.reserved.get() <= other.reserved.get() + other.reserved.get() / 500
            && self.driver_calls <= other.driver_calls + other.driver_calls / 20
    }
}

/// Plays every run in both ways; ends early after Ctrl-C.
pub(super) fn measure(runs: &[Run]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for run in runs {
        for marked in [true, false] {
            let Some(row) = row(run, marked)? else { return Ok(rows) };
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(run: &Run, marked: bool) -> Result<Option<Row>, Failure> {
    let has_steps = run.trace.steps().next().is_some();
    let repeat = if has_steps { ROUNDS } else { NonZeroU64::MIN };
    let options = ReplayOptions { repeat, unmarked: !marked, ..ReplayOptions::default() };
    let play = |strategy: &Strategy| replay::play(&run.trace, strategy, &options, &run.label);
    let Some(arena) = play(&Strategy::arena())? else { return Ok(None) };
    let Some(planned) = play(&Strategy::planned())? else { return Ok(None) };
    let (arena, planned) = (Cost::of(&arena), Cost::of(&planned));
    let met = planned.is_no_more_than(&arena);
    Ok(Some(Row { trace: run.label.clone(), marked, arena, planned, met }))
}
