//! The counts of one device during a replay: what is asked for and alive, what is reserved, and what each step took.

use lowtide_core::Bytes;
use lowtide_memory::Calls;

/// What one step took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct StepCounts {
    pub(super) driver_calls: u64,
    pub(super) reserved: u64,
    pub(super) requested: u64,
}

/// The counts of one device.
#[derive(Debug, Default)]
pub(super) struct DeviceCounts {
    /// What is asked for and alive; the sum of all that a hostile trace asks for does not fit 64 bits.
    live: u128,
    peak_live: u128,
    step_live: u128,
    step_reserved: u64,
    /// All calls until the step began.
    before: Calls,
    calls: Calls,
    pub(super) steps: Vec<StepCounts>,
}

impl DeviceCounts {
    pub(super) fn begin(&mut self, bytes: Bytes) {
        self.live += u128::from(bytes.get());
        self.peak_live = self.peak_live.max(self.live);
        self.step_live = self.step_live.max(self.live);
    }

    pub(super) fn end(&mut self, bytes: Bytes) {
        self.live = self.live.saturating_sub(u128::from(bytes.get()));
    }

    /// Takes note of what the device says after a call.
    pub(super) fn see(&mut self, calls: Calls) {
        let most =
            if calls.peak_committed > self.calls.peak_committed { calls.peak_committed } else { calls.committed };
        self.step_reserved = self.step_reserved.max(most.get());
        self.calls = calls;
    }

    /// What was taken since the last step was closed.
    pub(super) fn open_step(&self) -> StepCounts {
        StepCounts {
            driver_calls: self.calls.handles() - self.before.handles(),
            reserved: self.step_reserved,
            requested: clamped(self.step_live).get(),
        }
    }

    pub(super) fn close_step(&mut self) {
        self.steps.push(self.open_step());
        self.step_live = self.live;
        self.step_reserved = self.calls.committed.get();
        self.before = self.calls;
    }

    pub(super) fn live(&self) -> Bytes {
        clamped(self.live)
    }

    pub(super) fn peak_live(&self) -> Bytes {
        clamped(self.peak_live)
    }

    pub(super) fn calls(&self) -> Calls {
        self.calls
    }
}

fn clamped(bytes: u128) -> Bytes {
    Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(committed: u64, peak: u64, created: u64) -> Calls {
        let (committed, peak_committed) = (Bytes::new(committed), Bytes::new(peak));
        Calls { committed, peak_committed, created, ..Calls::default() }
    }

    #[test]
    fn a_step_begins_with_what_the_one_before_left() {
        let mut counts = DeviceCounts::default();
        counts.begin(Bytes::new(5));
        counts.see(calls(8, 8, 1));
        counts.begin(Bytes::new(2));
        counts.end(Bytes::new(2));
        counts.close_step();
        counts.see(calls(8, 8, 1));
        counts.close_step();
        let step = |driver_calls, requested| StepCounts { driver_calls, reserved: 8, requested };
        assert_eq!(counts.steps, [step(1, 7), step(0, 5)]);
        assert_eq!((counts.live(), counts.peak_live()), (Bytes::new(5), Bytes::new(7)));
    }

    #[test]
    fn a_peak_inside_a_call_counts_where_it_happened() {
        let mut counts = DeviceCounts::default();
        counts.see(calls(4, 10, 1));
        counts.close_step();
        counts.see(calls(6, 10, 2));
        counts.close_step();
        assert_eq!(counts.steps.iter().map(|step| step.reserved).collect::<Vec<_>>(), [10, 6]);
    }

    #[test]
    fn sums_that_do_not_fit_are_the_most_there_is() {
        let mut counts = DeviceCounts::default();
        counts.begin(Bytes::new(u64::MAX));
        counts.begin(Bytes::new(u64::MAX));
        assert_eq!(counts.peak_live(), Bytes::new(u64::MAX));
        counts.end(Bytes::new(u64::MAX));
        counts.end(Bytes::new(u64::MAX - 1));
        assert_eq!(counts.live(), Bytes::new(1));
    }
}
