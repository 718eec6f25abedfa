//! Plays a run that was traced rather than recorded: what each allocator would reserve for it, and whether it fits.

use std::ops::ControlFlow;
use std::time::Duration;

use lowtide_core::{Bytes, Trace};
use lowtide_formats::Input;
use lowtide_learn::LearnerOptions;
use lowtide_pool::ArenaOptions;
use lowtide_replay::{ReplayError, ReplayOptions, Strategy, TorchOptions, replay};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

/// What each allocator makes of a trace.
#[derive(Serialize)]
struct Simulation {
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Played>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expandable: Option<Played>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lowtide: Option<Played>,
}

/// What one allocator makes of a trace. Where it does not fit, the peak is that of the part that was played.
#[derive(Serialize)]
struct Played {
    peak_reserved: Bytes,
    fits: bool,
}

/// Plays a trace in CSV, plain or gzip, on each allocator or on the `only` one that is named, over a device of `capacity`
/// bytes or one without a limit, and returns the peaks as JSON.
#[pyfunction]
#[pyo3(signature = (trace, capacity = None, only = None))]
pub(crate) fn simulate(
    python: Python<'_>,
    trace: &[u8],
    capacity: Option<u64>,
    only: Option<&str>,
) -> PyResult<String> {
    if let Some(name) = only.filter(|name| !["native", "expandable", "lowtide"].contains(name)) {
        return Err(PyValueError::new_err(format!("no allocator is called {name:?}")));
    }
    python.detach(|| {
        let trace = read(trace)?;
        let options = ReplayOptions { device_memory: capacity.map(Bytes::new), ..ReplayOptions::default() };
        let played = |name: &str, strategy: Strategy| {
            let is_asked = only.is_none_or(|only| only == name);
            is_asked.then(|| play(&trace, &strategy, &options)).transpose()
        };
        let simulation = Simulation {
            version: 1,
            native: played("native", Strategy::Caching(TorchOptions::default()))?,
            expandable: played("expandable", Strategy::Expandable(TorchOptions::default()))?,
            lowtide: played("lowtide", planned())?,
        };
        serde_json::to_string(&simulation).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    })
}

/// The arena with its learner, with a second to plan: a search plays many traces.
fn planned() -> Strategy {
    let learner = LearnerOptions { time_limit: Duration::from_secs(1), background: false, ..LearnerOptions::default() };
    Strategy::Planned(ArenaOptions { learner: Some(learner), ..ArenaOptions::default() })
}

fn read(bytes: &[u8]) -> PyResult<Trace> {
    match Input::read(bytes) {
        Ok(Input::Trace(trace)) => Ok(trace),
        Ok(other) => Err(PyValueError::new_err(format!("this is {}, not a trace", other.what()))),
        Err(error) => {
            let row = error.row.map(|row| format!("row {row}: ")).unwrap_or_default();
            Err(PyValueError::new_err(format!("{row}{error}")))
        }
    }
}

/// Plays `trace` on one allocator; Ctrl-C ends it with Python's own exception.
fn play(trace: &Trace, strategy: &Strategy, options: &ReplayOptions) -> PyResult<Played> {
    let mut interrupt = None;
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself is for one lifetime only")]
    let mut watch = |_| match Python::attach(|python| python.check_signals()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            interrupt = Some(error);
            ControlFlow::Break(())
        }
    };
    match (replay(trace, strategy, options, &mut watch), interrupt) {
        (_, Some(interrupt)) => Err(interrupt),
        (Ok(replay), None) => Ok(Played { peak_reserved: replay.peak_reserved, fits: replay.out_of_memory.is_none() }),
        (Err(error @ ReplayError::NotAlive { .. }), None) => Err(PyValueError::new_err(error.to_string())),
        (Err(error), None) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}
