//! Whether memory is short: for the control group that the process is in, or for the machine. It is when what a group
//! cannot drop (all it has, less file pages) reaches 95% of its limit, or when, averaged over 10 seconds, some of its tasks
//! waited for memory 10% of the time.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of a limit that counts as pressure, in percent.
const FULL: u64 = 95;

/// The share of time that tasks wait for memory that counts as pressure, in percent.
const WAITING: f64 = 10.0;

/// Where to look.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// The process's group and those around it, as far as they are to be seen.
    groups: Vec<PathBuf>,
}

impl Pressure {
    /// Finds the group of this process.
    pub(crate) fn new() -> Self {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let path = own_group(&text).unwrap_or("/").trim_start_matches('/');
        let root = Path::new("/sys/fs/cgroup");
        let own = root.join(path);
        let groups = own.ancestors().take_while(|folder| folder.starts_with(root));
        Self { groups: groups.filter(|folder| folder.join("memory.current").exists()).map(Path::to_owned).collect() }
    }

    /// Whether a group reaches its limit.
    pub(crate) fn is_full(&self) -> bool {
        self.groups.iter().any(|group| is_full(group))
    }

    /// Whether tasks wait for memory.
    pub(crate) fn is_waiting(&self) -> bool {
        let own = self.groups.first().and_then(|group| fs::read_to_string(group.join("memory.pressure")).ok());
        let text = own.or_else(|| fs::read_to_string("/proc/pressure/memory").ok());
        text.as_deref().and_then(some_average).is_some_and(|share| share >= WAITING)
    }
}

fn is_full(group: &Path) -> bool {
    let number = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = [number("memory.high"), number("memory.max")].into_iter().flatten().min();
    let (Some(limit), Some(current)) = (limit, number("memory.current")) else { return false };
    let reaches = |bytes: u64| u128::from(bytes) * 100 >= u128::from(limit) * u128::from(FULL);
    // What the system has to add up is asked for only where it matters.
    let files = || fs::read_to_string(group.join("memory.stat")).ok().and_then(|text| file_pages(&text)).unwrap_or(0);
    reaches(current) && reaches(current.saturating_sub(files()))
}

/// The path of the one group of version 2.
fn own_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Pages of files, which the system can drop.
fn file_pages(text: &str) -> Option<u64> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    Some(value("inactive_file")? + value("active_file")?)
}

/// `avg10` of the line `some`.
fn some_average(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_over_ten_seconds_is_read() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_average(text), Some(12.5));
        assert_eq!(some_average("full avg10=1.00\n"), None);
    }

    #[test]
    fn the_group_of_version_two_is_found_among_others() {
        assert_eq!(own_group("4:memory:/old\n0::/a/b\n"), Some("/a/b"));
        assert_eq!(own_group("4:memory:/old\n"), None);
    }

    #[test]
    fn file_pages_are_told_from_other_fields() {
        let text = "anon 1\ninactive_file 10\nactive_file 20\nworkingset_activate_file 40\n";
        assert_eq!(file_pages(text), Some(30));
        assert_eq!(file_pages("anon 1\n"), None);
    }
}
