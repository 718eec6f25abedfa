//! What processes wrote of themselves when they ended: a file for each, in one folder.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lowtide_core::Bytes;
use lowtide_core::preload::WORTH;
use serde::Deserialize;
use serde_json::Value;
use tempfile::{Builder, TempDir};

use crate::Failure;

/// Where the processes of one run leave their summaries. Those that have become another user's may write there too, and
/// nobody can who was not told its name.
#[derive(Debug)]
pub(crate) struct Folder {
    inner: TempDir,
    /// Other users can pass through it, and not list it.
    _around: TempDir,
}

impl Folder {
    pub fn new() -> Result<Self, Failure> {
        Self::make().map_err(|error| Failure::access("<temporary folder>", "write", error))
    }

    fn make() -> io::Result<Self> {
        let around = Builder::new().prefix("lowtide-run-").tempdir()?;
        let inner = Builder::new().prefix("").rand_bytes(24).tempdir_in(&around)?;
        // The system takes away from what is asked for where it makes a folder, so that it is asked afterwards.
        fs::set_permissions(&inner, Permissions::from_mode(0o1733))?;
        fs::set_permissions(&around, Permissions::from_mode(0o711))?;
        Ok(Self { inner, _around: around })
    }

    pub fn path(&self) -> &Path {
        self.inner.path()
    }
}

/// A process as the library in it tells it. What a later version adds is kept in the file and left out here.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub pid: u32,
    pub command: String,
    pub seconds: f64,
    pub steps: u64,
    pub steps_by: String,
    pub planned_from_step: Option<u64>,
    pub faults: Faults,
    pub peak_rss_bytes: u64,
    pub explicit_huge_bytes: u64,
    pub large: Large,
    pub huge_page_bytes: u64,
    pub arena_resident_bytes: u64,
    pub below: String,
    pub stepped_aside: Option<String>,
    pub warnings: Vec<String>,
}

/// Page faults.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Faults {
    pub total: u64,
    pub per_step_before_plan: Option<f64>,
    pub per_step_after_plan: Option<f64>,
}

/// Blocks that are large enough for the arena.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Large {
    pub allocations: u64,
    pub hits: u64,
    pub misses: u64,
    pub peak_live_bytes: u64,
    pub held_bytes: u64,
    pub by: String,
    pub asked_before_bytes: u64,
}

impl Summary {
    pub fn peak(&self) -> Bytes {
        Bytes::new(self.peak_rss_bytes)
    }

    /// Whether much of what was asked for in large blocks was faulted in, for all that is known of pages, by a program that ended before that could
    /// be judged.
    pub fn is_undecided(&self) -> bool {
        const PAGE: u64 = 4 << 10;
        const JUDGED: u64 = 8 * WORTH;
        self.large.asked_before_bytes <= JUDGED
            && self.faults.total.saturating_mul(PAGE) >= self.large.asked_before_bytes / 2
    }

    /// How much of what was asked for while a plan was served was in it.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.large.hits + self.large.misses;
        (asked > 0).then(|| self.large.hits as f64 / asked as f64)
    }

    /// How much of the arena had huge pages in the end.
    pub fn huge_share(&self) -> Option<f64> {
        let resident = self.arena_resident_bytes;
        (resident > 0).then(|| (self.huge_page_bytes as f64 / resident as f64).min(1.0))
    }
}

/// The summaries of a run.
#[derive(Debug, Default)]
pub(crate) struct Summaries {
    /// Those with most memory first.
    pub of: Vec<Summary>,
    /// The same as they were written.
    pub written: Vec<Value>,
    /// Files that could not be read.
    pub unreadable: usize,
}

impl Summaries {
    /// Reads what is in `folder`.
    pub fn read(folder: &Path) -> Self {
        let mut all = Self::default();
        let mut read: Vec<(Summary, Value)> = Vec::new();
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files =
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path());
        for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
            let value = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            match value.and_then(|value| Some((Summary::deserialize(&value).ok()?, value))) {
                Some(pair) => read.push(pair),
                None => all.unreadable += 1,
            }
        }
        read.sort_by_key(|(summary, _)| (std::cmp::Reverse(summary.peak_rss_bytes), summary.pid));
        (all.of, all.written) = read.into_iter().unzip();
        all
    }

    /// Whether the process `pid` left one.
    pub fn has(&self, pid: u32) -> bool {
        self.of.iter().any(|summary| summary.pid == pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_with_most_memory_is_first_and_the_rest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("1.json", r#"{"version":1,"pid":1,"peak_rss_bytes":5,"later":[1]}"#);
        write("2.json", r#"{"version":1,"pid":2,"peak_rss_bytes":9,"large":{"hits":3,"misses":1}}"#);
        write("3.json", r#"{"version":1,"pid""#);
        write("note.txt", "");
        let all = Summaries::read(folder.path());
        assert_eq!(all.of.iter().map(|summary| summary.pid).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((all.unreadable, all.has(1), all.has(3)), (1, true, false));
        assert_eq!(all.of[0].hit_rate(), Some(0.75));
        assert_eq!(all.written[1]["later"][0], 1);
    }

    #[test]
    fn any_user_may_write_to_the_folder_and_none_can_look_for_it() {
        let folder = Folder::new().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let around = folder.path().parent().unwrap().to_owned();
        assert_eq!((mode(folder.path()), mode(&around)), (0o1733, 0o711));
        drop(folder);
        assert!(!around.exists());
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("1.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("2.json")).unwrap();
        let all = Summaries::read(folder.path());
        assert_eq!((all.of.len(), all.unreadable), (0, 0));
    }

    #[test]
    fn no_folder_is_no_summary() {
        assert!(Summaries::read(Path::new("/surely/not/there")).of.is_empty());
    }
}
