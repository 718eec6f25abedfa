//! What is watched: a process, or it and every process that comes from it, found anew at each sample.

use std::collections::BTreeMap;
use std::io;

use lowtide_memory::process;

use crate::{Error, Faults, Sample};

/// Processes that are watched.
#[derive(Debug)]
pub struct Processes {
    root: i32,
    is_tree: bool,
    since: Since,
    members: BTreeMap<i32, Member>,
    /// Faults of those that have ended.
    gone: Faults,
    /// Whether a peak was ever refused to be reset.
    refused: bool,
}

/// A process as it was at the last sample.
#[derive(Debug)]
struct Member {
    started: u64,
    faults: Faults,
    /// A peak that is no higher was reached before.
    old_peak: u64,
}

/// From where on peaks and faults count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    /// From its start: it is started to be watched.
    Start,
    /// From now on: it was there before.
    Now,
}

impl Processes {
    /// The process `root`, with all that come from it where `is_tree`; `None` where there is no such process.
    pub fn of(root: i32, is_tree: bool, since: Since) -> Result<Option<Self>, Error> {
        let reading = process::read(root).map_err(|source| Error::Unreadable { pid: root, source })?;
        let Some(reading) = reading else { return Ok(None) };
        let old_peak = if since == Since::Now { reading.peak } else { 0 };
        let first = Member { started: reading.started, faults: Faults::default(), old_peak };
        let members = BTreeMap::from([(root, first)]);
        let mut processes = Self { root, is_tree, since, members, gone: Faults::default(), refused: false };
        if since == Since::Now {
            processes.find(true);
        }
        Ok(Some(processes))
    }

    /// From where on peaks and faults count.
    pub fn since(&self) -> Since {
        self.since
    }

    /// What they have now; `None` once the first one has ended.
    pub fn sample(&mut self) -> Option<Sample> {
        self.find(false);
        let mut sample = Sample::default();
        let (mut is_alive, mut ended) = (false, Vec::new());
        for (&pid, member) in &mut self.members {
            match process::read(pid) {
                Ok(Some(reading)) if reading.started == member.started => {
                    is_alive |= pid == self.root;
                    sample.add(&reading, member.old_peak);
                    member.faults = Faults { minor: reading.minor, major: reading.major };
                    sample.faults.add(member.faults);
                }
                _ => ended.push(pid),
            }
        }
        for pid in ended.into_iter().filter_map(|pid| self.members.remove(&pid)) {
            self.gone.add(pid.faults);
        }
        sample.faults.add(self.gone);
        sample.peak = sample.peak.max(sample.total());
        sample.ceiling = sample.ceiling.max(sample.peak);
        is_alive.then_some(sample)
    }

    /// Peaks are counted anew from here on. An error where the system refuses that: then a peak counts only if it is
    /// higher than every one before.
    pub fn reset_peaks(&mut self) -> io::Result<()> {
        let mut refused = None;
        for (&pid, member) in &mut self.members {
            match process::reset_peak(pid) {
                Ok(()) => member.old_peak = 0,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    member.old_peak = process::read(pid).ok().flatten().map_or(member.old_peak, |reading| reading.peak);
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

    /// Finds those that come from the members, down to the last.
    fn find(&mut self, is_old: bool) {
        if !self.is_tree {
            return;
        }
        // One whose parent has ended is another's child by now, and still a member.
        let mut open: Vec<i32> = self.members.keys().copied().collect();
        while let Some(parent) = open.pop() {
            for child in process::children(parent).unwrap_or_default() {
                if self.members.contains_key(&child) {
                    continue;
                }
                let Ok(Some(reading)) = process::read(child) else { continue };
                let old_peak = if is_old { reading.peak } else { 0 };
                let member = Member { started: reading.started, faults: Faults::default(), old_peak };
                self.members.insert(child, member);
                open.push(child);
            }
        }
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
        let mut tree = Processes::of(root, true, Since::Start).unwrap().unwrap();
        let mut alone = Processes::of(root, false, Since::Start).unwrap().unwrap();
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
        let mut processes = Processes::of(pid, false, Since::Start).unwrap().unwrap();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let before = processes.sample().unwrap();
        assert!(before.peak >= 64 << 20);
        if processes.reset_peaks().is_err() {
            return lowtide_testing::skip("the system refuses to reset peaks");
        }
        assert!(processes.sample().unwrap().peak < before.peak);
    }
}
