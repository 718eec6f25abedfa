//! What processes have at a moment: amounts by kind of page, and faults. Amounts of several processes are sums; a page
//! that several have is counted for each.

use lowtide_memory::process::Reading;

/// Page faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Served without reading a disk.
    pub minor: u64,
    /// For which a disk was read.
    pub major: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, other: Self) {
        self.minor += other.minor;
        self.major += other.major;
    }

    /// Those since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { minor: self.minor.saturating_sub(earlier.minor), major: self.major.saturating_sub(earlier.major) }
    }
}

/// What all of them have at a moment, in bytes; faults since they were started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Resident pages of any kind but explicit huge ones.
    pub resident: u64,
    /// Resident pages that belong to no file.
    pub anonymous: u64,
    /// Resident pages of files.
    pub file: u64,
    /// Resident pages of shared memory.
    pub shared: u64,
    /// What was swapped out.
    pub swapped: u64,
    /// Explicit huge pages, which the system leaves out of what is resident.
    pub huge: u64,
    /// The most that is known to have been resident at once since peaks were reset.
    pub peak: u64,
    /// The most that it can have been: the processes' peaks may have come at different times.
    pub ceiling: u64,
    /// Page faults so far.
    pub faults: Faults,
    /// How many processes there are.
    pub processes: usize,
}

impl Sample {
    /// What only these processes can give back: the system drops pages of files when it likes.
    pub fn own(&self) -> u64 {
        self.anonymous + self.shared + self.swapped + self.huge
    }

    /// What they have of the machine's memory: resident pages with explicit huge ones.
    pub fn total(&self) -> u64 {
        self.resident + self.huge
    }

    /// Adds one process. Its peak counts where it is above `old_peak`, which it had reached before.
    pub(crate) fn add(&mut self, reading: &Reading, old_peak: u64) {
        self.resident += reading.resident;
        self.anonymous += reading.anonymous;
        self.file += reading.file;
        self.shared += reading.shared;
        self.swapped += reading.swapped;
        self.huge += reading.huge;
        self.processes += 1;
        let peak = if reading.peak > old_peak { reading.peak } else { reading.resident };
        self.peak = self.peak.max(peak);
        self.ceiling += peak + reading.huge;
    }
}
