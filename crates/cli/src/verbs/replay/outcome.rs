//! A replay in numbers: the flat object that `--format json` prints for an allocator.

use lowtide_core::Bytes;
use lowtide_replay::{Refusal, Replay, Strategy};
use serde::Serialize;

use crate::input::recorded::Recorded;

/// What an allocator did with a run. Amounts are bytes; fields are added, never removed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Numbers {
    pub version: u64,
    pub strategy: &'static str,
    /// PyTorch's settings, for its allocators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alloc_conf: Option<String>,
    pub peak_requested: Bytes,
    pub peak_reserved: Bytes,
    pub fragmentation: f64,
    /// What no allocator goes below.
    pub bound: Bytes,
    pub steps: usize,
    pub driver_calls_per_step: Vec<u64>,
    pub driver_calls_behind: u64,
    pub reserved_per_step: Vec<Bytes>,
    pub requested_per_step: Vec<Bytes>,
    pub peak_requested_after_warmup: Option<Bytes>,
    pub peak_reserved_after_warmup: Option<Bytes>,
    pub fragmentation_after_warmup: Option<f64>,
    pub driver_calls_after_warmup: Option<u64>,
    pub driver_calls: u64,
    pub driver_ns: u64,
    pub waits: u64,
    pub waited_ns: u64,
    pub holds: u64,
    pub operations: u64,
    pub ns_per_op: f64,
    pub plan_hits: Option<u64>,
    pub plan_misses: Option<u64>,
    pub out_of_memory: Option<OutOfMemory>,
    /// Where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceNumbers>,
}

/// The first block that did not fit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct OutOfMemory {
    /// In the input's table, the header being row 1.
    pub row: Option<u64>,
    /// From zero on.
    pub event: usize,
    pub block: String,
    pub bytes: Bytes,
    pub step: Option<u64>,
    pub round: u64,
    pub requested: Bytes,
    pub reserved: Bytes,
    pub device: Option<u32>,
    pub message: String,
}

/// What one device of several was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct DeviceNumbers {
    pub device: Option<u32>,
    pub peak_requested: Bytes,
    pub peak_reserved: Bytes,
    pub driver_calls: u64,
}

impl Numbers {
    pub fn new(strategy: &Strategy, replay: &Replay, run: &Recorded) -> Self {
        let warm = replay.warm;
        let devices = replay.devices.iter().filter(|_| replay.devices.len() > 1);
        Self {
            version: 1,
            strategy: strategy.name(),
            alloc_conf: match strategy {
                Strategy::Caching(options) | Strategy::Expandable(options) => Some(options.to_string()),
                Strategy::Arena(_) | Strategy::Planned(_) => None,
            },
            peak_requested: replay.peak_requested,
            peak_reserved: replay.peak_reserved,
            fragmentation: replay.fragmentation(),
            bound: replay.bound,
            steps: replay.steps,
            driver_calls_per_step: replay.driver_calls_per_step.clone(),
            driver_calls_behind: replay.driver_calls_behind,
            reserved_per_step: replay.reserved_per_step.clone(),
            requested_per_step: replay.requested_per_step.clone(),
            peak_requested_after_warmup: warm.map(|warm| warm.peak_requested),
            peak_reserved_after_warmup: warm.map(|warm| warm.peak_reserved),
            fragmentation_after_warmup: warm.map(|warm| warm.fragmentation()),
            driver_calls_after_warmup: warm.map(|warm| warm.most_driver_calls),
            driver_calls: replay.calls.handles(),
            driver_ns: replay.calls.nanoseconds,
            waits: replay.calls.waits,
            waited_ns: replay.calls.waited_ns,
            holds: replay.calls.holds,
            operations: replay.operations,
            ns_per_op: replay.ns_per_operation(),
            plan_hits: replay.plan.map(|plan| plan.hits),
            plan_misses: replay.plan.map(|plan| plan.misses),
            out_of_memory: replay.out_of_memory.as_ref().map(|refusal| OutOfMemory::new(refusal, run)),
            devices: devices
                .map(|device| DeviceNumbers {
                    device: device.device,
                    peak_requested: device.peak_requested,
                    peak_reserved: device.peak_reserved,
                    driver_calls: device.calls.handles(),
                })
                .collect(),
        }
    }

    pub fn fits(&self) -> bool {
        self.out_of_memory.is_none()
    }

    /// What allocators are chosen by, the least first: that it fits, what is reserved, what the driver costs.
    pub fn rank(&self) -> impl Ord + use<> {
        (!self.fits(), self.peak_reserved, self.driver_ns)
    }
}

impl OutOfMemory {
    fn new(refusal: &Refusal, run: &Recorded) -> Self {
        Self {
            row: run.row(refusal.event),
            event: refusal.event,
            block: run.trace.text(refusal.block).to_owned(),
            bytes: refusal.bytes,
            step: refusal.step.map(|step| step.0),
            round: refusal.round,
            requested: refusal.requested,
            reserved: refusal.reserved,
            device: refusal.device,
            message: refusal.error.to_string(),
        }
    }
}
