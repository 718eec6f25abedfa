//! Whatever program the bytes are, every strategy keeps what pools promise: on a device with contents and a capacity, and
//! on one some of whose calls fail.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use lowtide_core::Bytes;
use lowtide_memory::{FailPlan, FailWhen, Failing, Failure, Simulated, SimulatedOptions, Source};
use lowtide_pool::program::{Program, Subject, Watching, run};
use lowtide_learn::LearnerOptions;
use lowtide_pool::{Arena, ArenaOptions, Error, Pool};
use lowtide_replay::{Caching, Expandable, TorchOptions};

type Make = fn(Arc<dyn Source>) -> Result<Box<dyn Pool>, Error>;

const STRATEGIES: [(&str, Make); 4] = [
    ("caching", |source| Ok(Box::new(Caching::new(source, TorchOptions::default())))),
    ("expandable", |source| Ok(Box::new(Expandable::new(source, TorchOptions::default())))),
    ("arena", |source| Ok(Box::new(Arena::new(source, ArenaOptions::default())?))),
    ("planned", |source| Ok(Box::new(Arena::new(source, planned())?))),
];

/// Plans while a step is closed, so that every plan is served; it need not be the best.
fn planned() -> ArenaOptions {
    let learner =
        LearnerOptions { background: false, time_limit: Duration::from_millis(10), ..LearnerOptions::default() };
    ArenaOptions { learner: Some(learner), ..ArenaOptions::default() }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&settings, bytes)) = bytes.split_first() else { return };
    let program = Program::from_bytes(bytes);
    for (name, make) in STRATEGIES {
        play(name, make, settings, &program);
    }
});

/// Plays a program on a new device, whose capacity and failures are the settings.
fn play(name: &str, make: Make, settings: u8, program: &Program) {
    let mebibytes = [96, 128, 256, 1024][usize::from(settings % 4)];
    let contents = settings & 4 == 0;
    let options = SimulatedOptions {
        capacity: Some(Bytes::new(mebibytes << 20)),
        lag_ns: 1000,
        contents,
        ..SimulatedOptions::default()
    };
    let probability = if settings & 8 == 0 { 0.0 } else { f64::from(settings >> 5) / 50.0 };
    let failure = if settings & 16 == 0 { Failure::OutOfMemory } else { Failure::Refused };
    let plan = FailPlan::new(FailWhen::Randomly { probability, seed: u64::from(settings) }).with(failure);
    let device = Arc::new(Failing::new(Simulated::new(options).expect("memory for a device"), plan));
    let source = Arc::new(Watching::new(device.clone()));
    let Ok(pool) = make(source.clone()) else {
        assert!(probability > 0.0, "{name} was not made");
        return;
    };
    let subject = Subject {
        pool: &*pool,
        source: &source,
        device: Some(device.source()),
        gives_all_back: true,
        source_fails: probability > 0.0,
    };
    if let Err(violation) = run(program, &subject) {
        panic!("{name}: {violation}\n{program:#?}");
    }
    drop(pool);
    let calls = device.calls();
    assert!(probability > 0.0 || calls.reserved == calls.released, "{name} lost something: {calls:?}");
}
