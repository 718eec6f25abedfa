//! Plays a recorded run on a pool over a simulated device whose clock is that of the recording.

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::path::PathBuf;

use lowtide_core::{Action, BlockIndex, StreamId, Trace};
use lowtide_formats::Input;
use lowtide_memory::{Lag, Simulated};
use lowtide_pool::{Address, Pool, Request, Stats};

/// A stream that no recording has.
const OTHER_STREAM: StreamId = StreamId(u64::MAX);

/// The recorded runs, where they are.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn recordings() -> Option<PathBuf> {
    let folder = env::var_os("LOWTIDE_DATA").map(|data| PathBuf::from(data).join("gpu-traces"));
    let folder = folder.filter(|folder| folder.is_dir());
    if folder.is_none() {
        eprintln!("SKIPPED: LOWTIDE_DATA names no folder with `gpu-traces`");
    }
    folder
}

/// Reads a recording.
pub fn read(path: PathBuf) -> Trace {
    match Input::read(File::open(path).unwrap()).unwrap() {
        Input::Trace(trace) => trace,
        other => panic!("not a trace but {}", other.what()),
    }
}

/// Plays `trace` on `pool`, which is over `device`, and says what the pool holds at the end.
///
/// Where the recording says that the device was done with a block later than at its free, another stream used it.
pub fn replay(trace: &Trace, device: &Simulated, pool: &dyn Pool) -> Stats {
    let lags = lags(trace);
    let mut addresses: HashMap<BlockIndex, Address> = HashMap::new();
    for event in &trace.events {
        device.set_time(event.time_ns.unwrap_or(0));
        match event.action {
            Action::Alloc { block } => {
                let request = Request { stream: event.stream, ..Request::new(trace.block(block).bytes) };
                addresses.insert(block, pool.alloc(&request).unwrap());
            }
            Action::Free { block } => {
                let address = addresses.remove(&block).unwrap();
                if let Some(&lag) = lags.get(&block) {
                    pool.record(address, OTHER_STREAM).unwrap();
                    device.set_lag(lag);
                }
                pool.free(address).unwrap();
                device.set_lag(Lag::After(0));
            }
            Action::Step { .. } => pool.step(),
            _ => {}
        }
    }
    pool.stats()
}

/// When the device was done with each block of which that is not known from its free.
fn lags(trace: &Trace) -> HashMap<BlockIndex, Lag> {
    let mut lags = HashMap::new();
    if !trace.has_done_rows() {
        return lags;
    }
    let mut last = None;
    for event in &trace.events {
        match event.action {
            Action::Free { block } => _ = lags.insert(block, Lag::Never),
            Action::Done { block } if last == Some(Action::Free { block }) => _ = lags.remove(&block),
            Action::Done { block } => _ = lags.insert(block, event.time_ns.map_or(Lag::After(0), Lag::At)),
            _ => {}
        }
        last = Some(event.action);
    }
    lags
}
