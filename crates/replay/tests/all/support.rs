//! What the tests have in common: traces written by hand, and the strategies that they are played on.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lowtide_core::{Bytes, Trace};
use lowtide_formats::Input;
use lowtide_replay::{Replay, ReplayError, ReplayOptions, Strategy, TorchOptions, replay};

pub const MIB: u64 = 1 << 20;

/// Rows `event,id,bytes,stream` behind the header.
pub fn trace(rows: &str) -> Trace {
    trace_with("event,id,bytes,stream", rows)
}

/// Rows in the columns of `header`; blanks around rows are left out.
pub fn trace_with(header: &str, rows: &str) -> Trace {
    let rows: Vec<&str> = rows.split_whitespace().collect();
    match Input::read(format!("{header}\n{}\n", rows.join("\n")).as_bytes()).unwrap() {
        Input::Trace(trace) => trace,
        other => panic!("not a trace but {}", other.what()),
    }
}

pub fn caching() -> Strategy {
    Strategy::Caching(TorchOptions::default())
}

pub fn expandable() -> Strategy {
    Strategy::Expandable(TorchOptions::default())
}

/// Plays without a look at how far it is.
pub fn play_with(trace: &Trace, strategy: &Strategy, options: &ReplayOptions) -> Result<Replay, ReplayError> {
    replay(trace, strategy, options, &mut |_| ControlFlow::Continue(()))
}

/// Plays on a device without a limit.
pub fn play(trace: &Trace, strategy: &Strategy) -> Replay {
    play_with(trace, strategy, &ReplayOptions::default()).unwrap()
}

/// A device with so much memory.
pub fn limited(bytes: u64) -> ReplayOptions {
    ReplayOptions { device_memory: Some(Bytes::new(bytes)), ..ReplayOptions::default() }
}

/// The folder of the recorded runs; a skip where it is not there.
pub fn recordings() -> Option<PathBuf> {
    lowtide_testing::data("gpu-traces")
}

/// Reads the recording called `name`.
pub fn recording(folder: &Path, name: &str) -> Trace {
    match Input::read(File::open(folder.join(format!("{name}.csv.gz"))).unwrap()).unwrap() {
        Input::Trace(trace) => trace,
        other => panic!("not a trace but {}", other.what()),
    }
}
