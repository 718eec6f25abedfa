//! The curve of waste against driver calls: the same runs on arenas that may make fewer or more of them.

use lowtide_pool::ArenaOptions;
use lowtide_replay::{ReplayOptions, Strategy};
use serde::Serialize;

use super::Run;
use crate::Failure;
use crate::verbs::replay;

/// Driver calls that a step after the second may make; the last is as many as there is use for.
pub(super) const RATIONS: [u64; 8] = [0, 30, 60, 120, 240, 480, 1000, u64::MAX];

/// One run over all rations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub trace: String,
    pub points: Vec<Point>,
}

/// What one ration comes to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Point {
    /// Absent where there is no limit.
    pub ration: Option<u64>,
    pub waste: f64,
    /// The most driver calls of a step after the second.
    pub calls: Option<u64>,
}

/// Plays every run with every ration; ends early after Ctrl-C.
pub(super) fn measure(runs: &[Run]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for run in runs {
        let mut points = Vec::new();
        for ration in RATIONS {
            let strategy = Strategy::Arena(ArenaOptions { ration, ..ArenaOptions::default() });
            let played = replay::play(&run.trace, &strategy, &ReplayOptions::default(), &run.label)?;
            let Some(replay) = played else { return Ok(rows) };
            points.push(Point {
                ration: Some(ration).filter(|&ration| ration < u64::MAX),
                waste: replay.fragmentation(),
                calls: replay.warm.map(|warm| warm.most_driver_calls),
            });
        }
        rows.push(Row { trace: run.label.clone(), points });
    }
    Ok(rows)
}
