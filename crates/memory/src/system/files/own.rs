//! This process: what it has resident, and its threads.

use std::fs;
use std::ops::Range;
use std::os::linux::fs::MetadataExt;

use lowtide_core::Bytes;

use super::kilobytes;

/// What this process has resident. What the system does not say is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Resident now.
    pub resident: Bytes,
    /// The most that was.
    pub peak: Bytes,
    /// Explicit huge pages, which are in neither of the others.
    pub explicit_huge: Bytes,
}

/// What this process has resident.
pub fn memory() -> Memory {
    memory_of(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn memory_of(status: &str) -> Memory {
    let field = |name| Bytes::new(kilobytes(status, name).unwrap_or(0));
    Memory { resident: field("VmRSS"), peak: field("VmHWM"), explicit_huge: field("HugetlbPages") }
}

/// What of a range of addresses is resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resident {
    /// All of it.
    pub bytes: Bytes,
    /// What of it is in huge pages.
    pub huge: Bytes,
}

/// What of the mappings that begin in a range of addresses is resident.
pub fn resident_in(range: &Range<u64>) -> Resident {
    sum_of_mappings(&fs::read_to_string("/proc/self/smaps").unwrap_or_default(), range)
}

fn sum_of_mappings(smaps: &str, range: &Range<u64>) -> Resident {
    let (mut resident, mut huge, mut counts) = (0, 0, false);
    for line in smaps.lines() {
        if let Some(start) = start_of_mapping(line) {
            counts = range.contains(&start);
        } else if counts {
            let value = |name| kilobytes(line, name).unwrap_or(0);
            let explicit = value("Private_Hugetlb");
            resident += value("Rss") + explicit;
            huge += value("AnonHugePages") + explicit;
        }
    }
    Resident { bytes: Bytes::new(resident), huge: Bytes::new(huge) }
}

/// Where a mapping begins, if the line is the first of one.
fn start_of_mapping(line: &str) -> Option<u64> {
    let (addresses, _) = line.split_once(' ')?;
    let (start, _) = addresses.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// How many threads this process has. A link leads to the folder of each, besides the folder's own two.
pub fn threads() -> Option<u64> {
    fs::metadata("/proc/self/task").ok()?.st_nlink().checked_sub(2)
}

/// Whether the first thread has ended, and at most one other is left.
pub fn is_down_to_one_thread() -> bool {
    fs::read_to_string("/proc/self/stat").is_ok_and(|stat| has_ended_but_for_one(&stat).unwrap_or(false))
}

/// Behind the name, which may hold anything but ends in the last parenthesis: the state, and 17 fields on, the threads.
fn has_ended_but_for_one(stat: &str) -> Option<bool> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let ended = fields.next()? == "Z";
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    Some(ended && threads <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_status_are_found_and_missing_ones_are_zero() {
        let memory = memory_of("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t1\n");
        let expected = Memory { resident: Bytes::new(1 << 20), peak: Bytes::new(2 << 20), explicit_huge: Bytes::ZERO };
        assert_eq!(memory, expected);
        assert_eq!(memory_of(""), Memory::default());
    }

    #[test]
    fn mappings_outside_the_range_do_not_count() {
        let smaps = "1000-2000 rw-p 00000000 00:00 0 \nRss:  4 kB\nAnonHugePages: 0 kB\n\
                     8000-9000 rw-p 00000000 00:00 0 [heap]\nRss:  16 kB\nAnonHugePages: 8 kB\nPrivate_Hugetlb: 2 kB\n\
                     f000-ff00 rw-p 00000000 00:00 0 \nRss:  64 kB\n";
        let resident = sum_of_mappings(smaps, &(0x8000..0xf000));
        assert_eq!(resident, Resident { bytes: Bytes::new(18 << 10), huge: Bytes::new(10 << 10) });
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_known_whatever_its_name_holds() {
        let stat = |state: &str, threads: u32| {
            format!("7 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 {threads} 0 5")
        };
        assert_eq!(has_ended_but_for_one(&stat("Z", 2)), Some(true));
        assert_eq!(has_ended_but_for_one(&stat("Z", 3)), Some(false));
        assert_eq!(has_ended_but_for_one(&stat("S", 2)), Some(false));
        assert_eq!(has_ended_but_for_one("7 (a"), None);
    }

    #[test]
    fn this_process_has_memory_and_threads() {
        let memory = memory();
        assert!(memory.resident > Bytes::ZERO && memory.peak >= memory.resident, "{memory:?}");
        assert!(resident_in(&(0..u64::MAX)).bytes > Bytes::ZERO);
        assert!(threads().is_some_and(|count| count >= 1));
        assert!(!is_down_to_one_thread());
    }
}
