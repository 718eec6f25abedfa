//! What is watched: a process, or it and every process that comes from it. Amounts are sums; a page that several have is
//! counted for each.

use std::collections::BTreeMap;
use std::io;

use super::process::{self, Reading};

/// Processes that are watched.
pub(super) struct Subject {
    root: i32,
    is_tree: bool,
    known: BTreeMap<i32, Known>,
    /// Faults of those that have ended.
    gone: Faults,
    /// Whether a peak was ever refused to be reset.
    refused: bool,
}

/// A process as it was last seen.
struct Known {
    started: u64,
    faults: Faults,
    /// A peak that is no higher was reached before.
    old_peak: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Faults {
    pub minor: u64,
    pub major: u64,
}

impl Faults {
    fn add(&mut self, other: Self) {
        self.minor += other.minor;
        self.major += other.major;
    }
}

/// What all of them have at a moment, in bytes; faults since they were started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sample {
    pub resident: u64,
    pub anonymous: u64,
    pub file: u64,
    pub shared: u64,
    pub swapped: u64,
    /// Explicit huge pages, which the system leaves out of what is resident.
    pub huge: u64,
    /// The most that is known to have been held at once since peaks were reset.
    pub peak: u64,
    /// The most that it can have been: their peaks may have come at different times.
    pub ceiling: u64,
    pub faults: Faults,
    pub processes: usize,
}

impl Sample {
    /// What only these processes can give back: the system drops pages of files when it likes.
    pub fn own(&self) -> u64 {
        self.anonymous + self.shared + self.swapped + self.huge
    }

    /// What they hold of the machine's memory.
    pub fn held(&self) -> u64 {
        self.resident + self.huge
    }
}

/// Whose peaks count from where on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Since {
    /// From its start: it is started to be watched.
    Start,
    /// From now on: it was there before.
    Now,
}

impl Subject {
    /// The process `root`; an error where it may not be read, `None` where there is none.
    pub fn new(root: i32, is_tree: bool, since: Since) -> io::Result<Option<Self>> {
        let mut subject = Self { root, is_tree, known: BTreeMap::new(), gone: Faults::default(), refused: false };
        let Some(reading) = process::read(root)? else { return Ok(None) };
        let old_peak = if since == Since::Now { reading.peak } else { 0 };
        subject.known.insert(root, Known { started: reading.started, faults: Faults::default(), old_peak });
        if since == Since::Now {
            subject.meet(subject.root, true);
        }
        Ok(Some(subject))
    }

    /// What they have now; `None` once the first one has ended.
    pub fn sample(&mut self) -> Option<Sample> {
        self.meet(self.root, false);
        let mut sample = Sample::default();
        let (mut is_alive, mut ended) = (false, Vec::new());
        for (&pid, known) in &mut self.known {
            match process::read(pid) {
                Ok(Some(reading)) if reading.started == known.started => {
                    is_alive |= pid == self.root;
                    sample.add(&reading, known.old_peak);
                    known.faults = Faults { minor: reading.minor, major: reading.major };
                    sample.faults.add(known.faults);
                }
                _ => ended.push(pid),
            }
        }
        for pid in ended.into_iter().filter_map(|pid| self.known.remove(&pid)) {
            self.gone.add(pid.faults);
        }
        sample.faults.add(self.gone);
        sample.peak = sample.peak.max(sample.held());
        sample.ceiling = sample.ceiling.max(sample.peak);
        is_alive.then_some(sample)
    }

    /// Peaks are counted anew from here on. An error where the system refuses that: then a peak counts only if it is
    /// higher than every one before.
    pub fn reset_peaks(&mut self) -> Result<(), io::Error> {
        let mut refused = None;
        for (&pid, known) in &mut self.known {
            match process::reset_peak(pid) {
                Ok(()) => known.old_peak = 0,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    known.old_peak = process::read(pid).ok().flatten().map_or(known.old_peak, |reading| reading.peak);
                    refused = Some(error);
                }
            }
        }
        self.refused |= refused.is_some();
        refused.map_or(Ok(()), Err)
    }

    /// Whether the system ever refused to reset a peak.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Finds those that come from `pid`, down to the last.
    fn meet(&mut self, pid: i32, is_old: bool) {
        if !self.is_tree {
            return;
        }
        // One whose parent has ended is another's child by now, and still known.
        let mut open: Vec<i32> = self.known.keys().copied().chain([pid]).collect();
        while let Some(parent) = open.pop() {
            for child in process::children(parent).unwrap_or_default() {
                if self.known.contains_key(&child) {
                    continue;
                }
                let Ok(Some(reading)) = process::read(child) else { continue };
                let old_peak = if is_old { reading.peak } else { 0 };
                let known = Known { started: reading.started, faults: Faults::default(), old_peak };
                self.known.insert(child, known);
                open.push(child);
            }
        }
    }
}

impl Sample {
    fn add(&mut self, reading: &Reading, old_peak: u64) {
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_tree_is_the_sum_of_its_processes() {
        let mut shell =
            Command::new("sh").args(["-c", "sleep 5 & sleep 5 & wait"]).stdout(Stdio::null()).spawn().unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let mut tree = Subject::new(root, true, Since::Start).unwrap().unwrap();
        let mut alone = Subject::new(root, false, Since::Start).unwrap().unwrap();
        let (mut one, mut seen) = (Sample::default(), Sample::default());
        for _ in 0..100 {
            (one, seen) = (alone.sample().unwrap(), tree.sample().unwrap());
            // A child that has just begun has touched nothing yet.
            if seen.processes == 3 && seen.resident > one.resident && seen.faults.minor > one.faults.minor {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!((seen.processes, one.processes), (3, 1));
        assert!(seen.resident > one.resident && seen.faults.minor > one.faults.minor);
        for pid in process::children(root).unwrap() {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
        shell.wait().unwrap();
        assert!(tree.sample().is_none() && alone.sample().is_none());
    }

    #[test]
    fn a_peak_is_counted_anew_after_a_reset() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut subject = Subject::new(pid, false, Since::Start).unwrap().unwrap();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let before = subject.sample().unwrap();
        assert!(before.peak >= 64 << 20);
        if subject.reset_peaks().is_ok() {
            assert!(subject.sample().unwrap().peak < before.peak);
        }
    }
}
