//! What a replay came to.

use lowtide_core::{Bytes, StepIndex, TextIndex};
use lowtide_memory::Calls;

/// What a strategy did with a run. With several devices amounts and counts are sums over them.
#[derive(Clone, PartialEq, Debug)]
pub struct Replay {
    /// The most that was asked for and alive at once; in a trace with `done` rows, that was not yet done.
    pub peak_requested: Bytes,
    /// The most memory that was taken from the device at once.
    pub peak_reserved: Bytes,
    /// The most that is alive at once in the whole run, as it was asked for: no strategy goes below it.
    pub bound: Bytes,
    /// Steps that were closed.
    pub steps: usize,
    /// For each closed step the handles that were created, mapped, unmapped or given back; the set-up counts into the
    /// first. One more where there were any behind the last closed step.
    pub driver_calls_per_step: Vec<u64>,
    /// The same behind the last closed step.
    pub driver_calls_behind: u64,
    /// The most that was reserved in each of them.
    pub reserved_per_step: Vec<Bytes>,
    /// The most that was asked for in each of them.
    pub requested_per_step: Vec<Bytes>,
    /// What was seen from the third step on; none where there is none.
    pub warm: Option<Warm>,
    /// All that was asked of the device.
    pub calls: Calls,
    /// Blocks that were asked for or freed.
    pub operations: u64,
    /// The time that these calls took on this machine, in nanoseconds.
    pub nanoseconds: u64,
    /// The time that closing steps took on this machine, planning included where that is done while the program waits.
    pub closing_ns: u64,
    /// How often a plan was kept to, where the strategy has one.
    pub plan: Option<PlanUse>,
    /// The first block that did not fit; the replay ended there.
    pub out_of_memory: Option<Refusal>,
    /// Each device, in order of their numbers.
    pub devices: Vec<DeviceReplay>,
}

impl Replay {
    /// The part of what was reserved that the run did not ask for; zero where nothing was reserved.
    pub fn fragmentation(&self) -> f64 {
        wasted(self.peak_requested, self.peak_reserved)
    }

    /// What asking for a block or freeing one took on average on this machine.
    pub fn ns_per_operation(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.nanoseconds as f64 / self.operations as f64 }
    }
}

/// What was seen from the third step on, when a strategy that learns may have learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Warm {
    /// The most that was asked for and alive at once.
    pub peak_requested: Bytes,
    /// The most memory that was taken from the device at once.
    pub peak_reserved: Bytes,
    /// The most driver calls of any step.
    pub most_driver_calls: u64,
}

impl Warm {
    /// The part of what was reserved that the run did not ask for.
    pub fn fragmentation(&self) -> f64 {
        wasted(self.peak_requested, self.peak_reserved)
    }
}

/// How often blocks lay where a plan had them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlanUse {
    /// Blocks that were served at their planned place.
    pub hits: u64,
    /// Blocks that were placed online although there was a plan.
    pub misses: u64,
}

/// A block that did not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The place in the trace's events.
    pub event: usize,
    /// The block's name.
    pub block: TextIndex,
    /// The bytes asked for.
    pub bytes: Bytes,
    /// The step it belongs to, as the trace numbers them; none behind the last closed one.
    pub step: Option<StepIndex>,
    /// Which round of the repetition it is, from one on.
    pub round: u64,
    /// What was asked for and alive, without it.
    pub requested: Bytes,
    /// What was reserved.
    pub reserved: Bytes,
    /// The device, where the trace names devices.
    pub device: Option<u32>,
    /// What the strategy said.
    pub error: lowtide_pool::Error,
}

/// What was seen of one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceReplay {
    /// Its number, where the trace names devices.
    pub device: Option<u32>,
    /// The most that was asked for and alive at once.
    pub peak_requested: Bytes,
    /// The most memory that was taken at once.
    pub peak_reserved: Bytes,
    /// All that was asked of it.
    pub calls: Calls,
}

fn wasted(requested: Bytes, reserved: Bytes) -> f64 {
    if reserved == Bytes::ZERO { 0.0 } else { 1.0 - requested.get() as f64 / reserved.get() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_is_the_part_of_what_is_reserved() {
        assert!((wasted(Bytes::new(3), Bytes::new(4)) - 0.25).abs() < 1e-12);
        assert!(wasted(Bytes::ZERO, Bytes::ZERO).abs() < 1e-12);
    }
}
