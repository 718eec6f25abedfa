//! What any process has and has done, from `/proc/PID/status` and `/proc/PID/stat`.

use std::fs;
use std::io::{self, Write};

/// What a process has and has done, in bytes and faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// When it was started, as the system counts: a later process with the same number has another.
    pub started: u64,
    /// `VmRSS`.
    pub resident: u64,
    /// `VmHWM`: the most that was resident since the start, or since that was reset.
    pub peak: u64,
    /// `RssAnon`.
    pub anonymous: u64,
    /// `RssFile`.
    pub file: u64,
    /// `RssShmem`.
    pub shared: u64,
    /// `VmSwap`.
    pub swapped: u64,
    /// `HugetlbPages`: explicit huge pages, which are in none of the others.
    pub huge: u64,
    /// Faults that were served without reading a disk.
    pub minor: u64,
    /// Faults for which a disk was read.
    pub major: u64,
}

/// Reads the process with this number; `None` where it has ended, though nobody may have waited for it.
pub fn read(pid: i32) -> io::Result<Option<Reading>> {
    let Some(stat) = there(fs::read(format!("/proc/{pid}/stat")))? else { return Ok(None) };
    let Some(status) = there(fs::read(format!("/proc/{pid}/status")))? else { return Ok(None) };
    Ok(parsed(&String::from_utf8_lossy(&stat), &String::from_utf8_lossy(&status)))
}

/// The children of a process, of all of its threads. `None` where it has ended.
pub fn children(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(text) = fs::read_to_string(thread.path().join("children")) else { continue };
        children.extend(text.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(children)
}

/// Whether this system lists children at all.
pub fn lists_children() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Takes what is resident now for the peak of a process.
pub fn reset_peak(pid: i32) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/clear_refs"))?.write_all(b"5")
}

/// A process that ended while it was read is no trouble.
fn there<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    /// `ESRCH`: the file was opened before the process ended, and read after.
    const GONE: i32 = 3;
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(GONE) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parsed(stat: &str, status: &str) -> Option<Reading> {
    // The name may hold anything, also brackets and spaces; the fields are behind the last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
    if matches!(*fields.first()?, "Z" | "X" | "x") {
        return None;
    }
    let mut reading = Reading { minor: number(7)?, major: number(9)?, started: number(19)?, ..Reading::default() };
    let mut is_known = false;
    for line in status.lines() {
        let Some((name, amount)) = line.split_once(':') else { continue };
        let place = match name {
            "VmRSS" => &mut reading.resident,
            "VmHWM" => &mut reading.peak,
            "RssAnon" => &mut reading.anonymous,
            "RssFile" => &mut reading.file,
            "RssShmem" => &mut reading.shared,
            "VmSwap" => &mut reading.swapped,
            "HugetlbPages" => &mut reading.huge,
            _ => continue,
        };
        *place = amount.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
        is_known = true;
    }
    // One that is ending has given up its memory already.
    is_known.then_some(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (a) b (c) S 1 2 3 4 5 6 700 8 9 10 11 12 13 14 15 16 17 18 12345 20 21";

    #[test]
    fn fields_are_found_whatever_the_name_holds() {
        let status = "Name:\ta) b (c\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n\
                      RssFile:\t     500 kB\nRssShmem:\t      12 kB\nVmSwap:\t       4 kB\nHugetlbPages:\t    4096 kB\nThreads:\t1\n";
        let reading = parsed(STAT, status).unwrap();
        assert_eq!((reading.minor, reading.major, reading.started), (700, 9, 12345));
        assert_eq!((reading.resident, reading.peak, reading.huge), (1 << 20, 2 << 20, 4 << 20));
        assert_eq!(
            (reading.anonymous, reading.file, reading.shared, reading.swapped),
            (512 << 10, 500 << 10, 12 << 10, 4 << 10)
        );
    }

    #[test]
    fn what_has_ended_or_is_about_to_has_no_memory() {
        assert_eq!(parsed(&STAT.replace(" S ", " Z "), "Name:\tx\n"), None);
        assert_eq!(parsed(STAT, "Name:\tx\nThreads:\t1\n"), None);
        assert_eq!(parsed("", ""), None);
        assert_eq!(parsed(STAT, "VmRSS:\t lots kB\n"), None);
        assert!(read(i32::MAX).unwrap().is_none());
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let reading = read(pid).unwrap().unwrap();
        assert!(reading.resident > 0 && reading.peak >= reading.resident && reading.minor > 0);
        assert!(children(pid).is_some());
    }
}
