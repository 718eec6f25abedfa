//! What this process and its children used, as the system counts it.

use lowtide_core::Bytes;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Whose use is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// This process.
    Own,
    /// Children that have ended.
    Children,
}

impl Who {
    /// Processor seconds so far, in user mode and in the kernel; `None` where the system does not tell.
    pub fn cpu_seconds(self) -> Option<f64> {
        let usage = self.usage()?;
        Some(seconds(usage.user_time()) + seconds(usage.system_time()))
    }

    /// Page faults so far that were served without reading a disk; `None` where the system does not tell.
    pub fn minor_faults(self) -> Option<u64> {
        u64::try_from(self.usage()?.minor_page_faults()).ok()
    }

    fn usage(self) -> Option<Usage> {
        getrusage(match self {
            Self::Own => UsageWho::RUSAGE_SELF,
            Self::Children => UsageWho::RUSAGE_CHILDREN,
        })
        .ok()
    }
}

/// The most memory that this process has had at once, so far.
pub(crate) fn peak_memory() -> Option<Bytes> {
    let count = u64::try_from(Who::Own.usage()?.max_rss()).ok()?;
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Some(Bytes::new(count * unit))
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// What `work` returns, and the processor seconds that `who` used meanwhile.
pub(crate) fn measured<T>(who: Who, work: impl FnOnce() -> T) -> (T, Option<f64>) {
    let before = who.cpu_seconds();
    let result = work();
    let used = before.zip(who.cpu_seconds()).map(|(before, after)| after - before);
    (result, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_memory() {
        let (sum, used) = measured(Who::Own, || (0..20_000_000_u64).map(std::hint::black_box).sum::<u64>());
        assert!(sum > 0 && used.unwrap() > 0.0);
        assert!(Who::Own.minor_faults().unwrap() > 0);
        assert!(peak_memory().unwrap() > Bytes::new(1 << 20));
    }
}
