//! A control group for all programs of a pass: version 1 or 2, whichever this user may use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const ROOT: &str = "/sys/fs/cgroup";

/// How long processes that were killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The group; whatever runs in it ends with it.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    names: &'static Names,
}

/// What a version of control groups calls things.
#[derive(Debug)]
struct Names {
    usage: &'static str,
    file_pages: [&'static str; 2],
    limit: &'static str,
    /// The file that turns swap off, and whether it takes the limit or 0.
    swap: (&'static str, bool),
    kills: &'static str,
}

static FIRST: Names = Names {
    usage: "memory.usage_in_bytes",
    file_pages: ["total_inactive_file", "total_active_file"],
    limit: "memory.limit_in_bytes",
    swap: ("memory.memsw.limit_in_bytes", true),
    kills: "memory.oom_control",
};

static SECOND: Names = Names {
    usage: "memory.current",
    file_pages: ["inactive_file", "active_file"],
    limit: "memory.max",
    swap: ("memory.swap.max", false),
    kills: "memory.events",
};

impl Group {
    /// A group within that of this process, or within one around it. None where this user may not make one.
    pub(super) fn make(name: &str) -> Option<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("lowtide-{name}-{}", std::process::id());
        let first = path_of(&text, "memory").map(|path| (Path::new(ROOT).join("memory"), path, &FIRST));
        let second = path_of(&text, "").map(|path| (PathBuf::from(ROOT), path, &SECOND));
        first.into_iter().chain(second).find_map(|(root, path, names)| {
            let own = root.join(path.trim_start_matches('/'));
            let around = own.ancestors().take_while(|folder| folder.starts_with(&root));
            around.map(|folder| Self::within(folder, &name, names)).find_map(io::Result::ok)
        })
    }

    fn within(folder: &Path, name: &str, names: &'static Names) -> io::Result<Self> {
        let group = Self { folder: folder.join(name), names };
        fs::create_dir(&group.folder)?;
        group.usage().ok_or(io::ErrorKind::Unsupported)?;
        fs::OpenOptions::new().write(true).open(group.folder.join(names.limit))?;
        group.try_out()?;
        Ok(group)
    }

    /// Whether processes can be put into it is known once one has been.
    fn try_out(&self) -> io::Result<()> {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let added = self.add(child.id());
        drop(child.stdin.take());
        child.wait()?;
        added
    }

    /// Puts a process into it.
    pub(super) fn add(&self, process: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }

    /// Limits the memory; what is beyond goes nowhere else. Says whether swap is off, for the group or altogether.
    pub(super) fn limit(&self, bytes: u64) -> io::Result<bool> {
        fs::write(self.folder.join(self.names.limit), bytes.to_string())?;
        let (file, is_total) = self.names.swap;
        let swap = if is_total { bytes } else { 0 };
        let is_off = fs::write(self.folder.join(file), swap.to_string()).is_ok();
        Ok(is_off || fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() <= 1))
    }

    /// What its processes have, without pages of files, which the system could drop.
    pub(super) fn needed(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        let pages: u64 = self.names.file_pages.iter().filter_map(|name| field(&text, name)).sum();
        Some(self.usage()?.saturating_sub(pages))
    }

    fn usage(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join(self.names.usage)).ok()?.trim().parse().ok()
    }

    /// How many of its processes the system has killed for want of memory.
    pub(super) fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.names.kills)).unwrap_or_default();
        field(&text, "oom_kill").unwrap_or(0)
    }

    /// Kills all that still runs in it, and waits until it is gone.
    pub(super) fn clear(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
            let mut processes = text.lines().filter_map(|line| line.parse().ok()).peekable();
            if processes.peek().is_none() {
                return;
            }
            for process in processes {
                // It may have ended by itself.
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.clear();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The path of this process's group that accounts for memory: `memory` for version 1, no name for version 2.
fn path_of<'text>(text: &'text str, controller: &str) -> Option<&'text str> {
    let groups = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    groups.filter(|(names, _)| names.split(',').any(|name| name == controller)).map(|(_, path)| path).next()
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let text = "9:name=systemd:/\n4:cpu,memory:/old/x\n0::/a/b\n";
        assert_eq!((path_of(text, "memory"), path_of(text, "")), (Some("/old/x"), Some("/a/b")));
        assert_eq!(path_of("1:name=systemd:/\n", "memory"), None);
    }

    #[test]
    fn kills_are_counted_and_file_pages_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.stat", "anon 1\ninactive_file 10\nactive_file 20\nworkingset_activate_file 40\n");
        write("memory.current", "100\n");
        write("memory.events", "oom 9\noom_kill 2\noom_group_kill 0\n");
        let group = Group { folder: folder.path().to_owned(), names: &SECOND };
        assert_eq!((group.needed(), group.kills()), (Some(70), 2));
    }
}
