//! The process's devices: opened once, for good. Blocks outlive everything else, the interpreter too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lowtide_core::Bytes;
use lowtide_memory::cuda::{self, CudaDevice};
use lowtide_memory::{FailPlan, FailWhen, Failing, Failure, Simulated, SimulatedOptions, Source};
use lowtide_pool::{Fleet, FleetOptions, Opener};
use lowtide_replay::TorchOptions;

use crate::guard::DEVICES;
use crate::{steps, threads};

static FLEET: OnceLock<Fleet> = OnceLock::new();

/// How many forks away the process was that first used a device.
static USED_AT: AtomicU64 = AtomicU64::new(UNUSED);
const UNUSED: u64 = u64::MAX;

/// What the devices are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Those of CUDA; whether each lets the others reach its memory.
    Cuda { peers: bool },
    /// Simulated ones with contents.
    Simulated {
        /// Their memory.
        memory: Bytes,
        /// The call of each that panics.
        panic_at: Option<u64>,
    },
}

/// The devices, where [`open`] was called. A child of a process that had used one cannot use the driver: it has none.
pub(crate) fn fleet() -> Option<&'static Fleet> {
    if is_lost() { None } else { FLEET.get() }
}

/// Whether devices were used by a process that this one was forked off.
pub(crate) fn is_lost() -> bool {
    let used_at = USED_AT.load(Ordering::Relaxed);
    used_at != UNUSED && used_at != threads::forks()
}

/// Opens the devices. `false` where they were already.
pub(crate) fn open(kind: Kind, options: FleetOptions) -> bool {
    let mut is_first = false;
    FLEET.get_or_init(|| {
        is_first = true;
        let open = opener(kind);
        let noted = move |device| {
            USED_AT.store(threads::forks(), Ordering::Relaxed);
            open(device)
        };
        // What PyTorch itself does with the memory of a graph.
        Fleet::new(Box::new(noted), |source| TorchOptions::default().pool(source), options)
    });
    if is_first {
        threads::watch_forks();
        steps::listen(|| {
            if let Some(fleet) = fleet() {
                DEVICES.call(|| fleet.step());
            }
        });
    }
    is_first
}

fn opener(kind: Kind) -> Opener {
    match kind {
        Kind::Cuda { peers } => Box::new(move |device| {
            let peers = if peers { cuda::peers_of(device)? } else { Vec::new() };
            Ok(Arc::new(CudaDevice::new(device, None, &peers)?) as Arc<dyn Source>)
        }),
        Kind::Simulated { memory, panic_at } => Box::new(move |_| {
            let options = SimulatedOptions {
                capacity: Some(memory),
                contents: true,
                real_time: true,
                ..SimulatedOptions::default()
            };
            let device = Simulated::new(options)?;
            Ok(match panic_at {
                Some(call) => Arc::new(Failing::new(device, FailPlan::new(FailWhen::Nth(call)).with(Failure::Panic)))
                    as Arc<dyn Source>,
                None => Arc::new(device),
            })
        }),
    }
}
