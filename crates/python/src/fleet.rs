//! The process's devices: opened once, for good. Blocks outlive everything else, the interpreter too.

#![expect(unsafe_code, reason = "hears of forks")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lowtide_core::Bytes;
use lowtide_memory::cuda::{self, CudaDevice};
use lowtide_memory::{Simulated, SimulatedOptions, Source};
use lowtide_pool::{Fleet, FleetOptions, Opener};

use crate::steps;

static FLEET: OnceLock<Fleet> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

/// What the devices are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Those of CUDA; whether each lets the others reach its memory.
    Cuda { peers: bool },
    /// Simulated ones with contents, of so many bytes each.
    Simulated { memory: Bytes },
}

/// The devices, where [`open`] was called and this is not a forked child: there the driver cannot be used.
pub(crate) fn fleet() -> Option<&'static Fleet> {
    if FORKED.load(Ordering::Relaxed) { None } else { FLEET.get() }
}

/// Whether the process was forked off one that had devices.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Opens the devices. `false` where they were already.
pub(crate) fn open(kind: Kind, options: FleetOptions) -> bool {
    let mut is_first = false;
    FLEET.get_or_init(|| {
        is_first = true;
        Fleet::new(opener(kind), options)
    });
    if is_first {
        // SAFETY: the handler only sets a flag.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        steps::listen(|| {
            if let Some(fleet) = fleet() {
                fleet.step();
            }
        });
    }
    is_first
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

fn opener(kind: Kind) -> Opener {
    match kind {
        Kind::Cuda { peers } => Box::new(move |device| {
            let peers = if peers { cuda::peers_of(device)? } else { Vec::new() };
            Ok(Arc::new(CudaDevice::new(device, None, &peers)?) as Arc<dyn Source>)
        }),
        Kind::Simulated { memory } => Box::new(move |_| {
            let options = SimulatedOptions { capacity: Some(memory), contents: true, ..SimulatedOptions::default() };
            Ok(Arc::new(Simulated::new(options)?) as Arc<dyn Source>)
        }),
    }
}
