//! Control groups, of version 2 or 1, what the machine has left, and how long tasks wait for memory.

use std::fs;
use std::path::{Path, PathBuf};

use lowtide_core::Bytes;

use super::{kilobytes, number};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group that accounts for memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    folder: PathBuf,
    names: &'static Names,
}

/// What a version of control groups calls things.
#[derive(PartialEq, Eq, Debug)]
struct Names {
    current: &'static str,
    limits: &'static [&'static str],
    file_pages: [&'static str; 2],
}

static SECOND: Names = Names {
    current: "memory.current",
    limits: &["memory.high", "memory.max"],
    file_pages: ["inactive_file", "active_file"],
};

static FIRST: Names = Names {
    current: "memory.usage_in_bytes",
    limits: &["memory.limit_in_bytes"],
    file_pages: ["total_inactive_file", "total_active_file"],
};

/// A limit from here on is none: the first version has no word for that.
const UNLIMITED: u64 = 1 << 62;

impl Group {
    /// The group of this process and those around it, from the inside out, as far as they can be seen.
    pub fn own() -> Vec<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let second = Self::around(Path::new(ROOT), path_of_group(&text).unwrap_or("/"), &SECOND);
        if second.is_empty() {
            Self::around(&Path::new(ROOT).join("memory"), path_of_first(&text).unwrap_or("/"), &FIRST)
        } else {
            second
        }
    }

    fn around(root: &Path, path: &str, names: &'static Names) -> Vec<Self> {
        let own = root.join(path.trim_start_matches('/'));
        let folders = own.ancestors().take_while(|folder| folder.starts_with(root));
        folders.filter(|folder| folder.join(names.current).exists()).map(|folder| Self::at(folder, names)).collect()
    }

    fn at(folder: &Path, names: &'static Names) -> Self {
        Self { folder: folder.to_owned(), names }
    }

    /// What the group has.
    pub fn current(&self) -> Option<Bytes> {
        number(&self.folder.join(self.names.current)).map(Bytes::new)
    }

    /// The most that it may have: the lower of the limit at which it is slowed down and the one at which it is ended.
    pub fn limit(&self) -> Option<Bytes> {
        let limits = self.names.limits.iter().filter_map(|name| number(&self.folder.join(name)));
        limits.filter(|&limit| limit < UNLIMITED).min().map(Bytes::new)
    }

    /// How much of it are pages of files, which the system can drop. The system has to add them up.
    pub fn file_pages(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        sum_of_file_pages(&text, self.names).map(Bytes::new)
    }

    /// The share of the last ten seconds, in percent, that some task of the group waited for memory.
    pub fn waiting(&self) -> Option<f64> {
        share_of_waiting(&fs::read_to_string(self.folder.join("memory.pressure")).ok()?)
    }
}

/// What the machine could give without paging anything out.
pub fn machine_available() -> Option<Bytes> {
    kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable").map(Bytes::new)
}

/// The share of the last ten seconds, in percent, that some task of the machine waited for memory.
pub fn machine_waiting() -> Option<f64> {
    share_of_waiting(&fs::read_to_string("/proc/pressure/memory").ok()?)
}

/// The path of the one group of version 2.
fn path_of_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The path of the group of version 1 that accounts for memory.
fn path_of_first(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then_some(path)
    })
}

fn sum_of_file_pages(text: &str, names: &Names) -> Option<u64> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let [inactive, active] = names.file_pages;
    value(inactive)?.checked_add(value(active)?)
}

/// `avg10` of the line `some`.
fn share_of_waiting(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_over_ten_seconds_is_read() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(share_of_waiting(text), Some(12.5));
        assert_eq!(share_of_waiting("full avg10=1.00\n"), None);
    }

    #[test]
    fn the_group_of_version_two_is_found_among_others() {
        assert_eq!(path_of_group("4:memory:/old\n0::/a/b\n"), Some("/a/b"));
        assert_eq!(path_of_group("4:memory:/old\n"), None);
        assert_eq!(path_of_first("9:name=systemd:/\n4:cpu,memory:/old/x\n0::/a/b\n"), Some("/old/x"));
    }

    #[test]
    fn file_pages_are_told_from_other_fields() {
        let text = "anon 1\ninactive_file 10\nactive_file 20\nworkingset_activate_file 40\n";
        assert_eq!(sum_of_file_pages(text, &SECOND), Some(30));
        assert_eq!(sum_of_file_pages("anon 1\n", &SECOND), None);
        assert_eq!(sum_of_file_pages("total_inactive_file 3\ntotal_active_file 4\n", &FIRST), Some(7));
    }

    #[test]
    fn the_lower_of_two_limits_counts_and_none_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::at(folder.path(), &SECOND);
        assert_eq!((group.limit(), group.current(), group.file_pages(), group.waiting()), (None, None, None, None));
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.high", "max\n");
        write("memory.max", "4096\n");
        write("memory.current", "1024\n");
        assert_eq!((group.limit(), group.current()), (Some(Bytes::new(4096)), Some(Bytes::new(1024))));
        write("memory.high", "2048\n");
        assert_eq!(group.limit(), Some(Bytes::new(2048)));
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "77\n");
        let first = Group::at(folder.path(), &FIRST);
        assert_eq!((first.limit(), first.current()), (None, Some(Bytes::new(77))));
    }
}
