//! Huge pages: whether the system joins small ones, and what its pools of explicit ones hold.

use std::fs;
use std::path::{Path, PathBuf};

use lowtide_core::Bytes;

use super::number;

const SYSTEM: &str = "/sys/kernel/mm";

/// Whether the system joins pages to transparent huge ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Wherever it can.
    Always,
    /// Where that is asked for.
    OnRequest,
    /// Nowhere.
    Off,
}

/// A pool of explicit huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    /// Pages that nobody uses.
    pub free: u64,
    /// Pages that the system may add at need.
    pub overcommit: u64,
}

/// Where the system says it.
#[derive(Clone, Debug)]
pub struct HugePages {
    folder: PathBuf,
}

impl HugePages {
    /// Those of this machine.
    pub fn of_machine() -> Self {
        Self::at(Path::new(SYSTEM))
    }

    /// As a folder has it that is laid out as the system's own: for tests.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Whether pages are joined; none where the system does not say.
    pub fn mode(&self) -> Option<Mode> {
        let text = fs::read_to_string(self.folder.join("transparent_hugepage/enabled")).ok()?;
        let modes = [("[always]", Mode::Always), ("[madvise]", Mode::OnRequest), ("[never]", Mode::Off)];
        modes.into_iter().find_map(|(word, mode)| text.contains(word).then_some(mode))
    }

    /// The pool of pages of this size; an empty one where there is none.
    pub fn pool(&self, size: Bytes) -> Pool {
        let folder = self.folder.join("hugepages").join(format!("hugepages-{}kB", size.get() >> 10));
        let count = |name: &str| number(&folder.join(name)).unwrap_or(0);
        Pool { free: count("free_hugepages"), overcommit: count("nr_overcommit_hugepages") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_and_the_mode_are_read_where_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let pages = HugePages::at(folder.path());
        let size = Bytes::new(2 << 20);
        assert_eq!((pages.mode(), pages.pool(size)), (None, Pool::default()));
        let pool = folder.path().join("hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        fs::write(pool.join("free_hugepages"), "12\n").unwrap();
        fs::create_dir_all(folder.path().join("transparent_hugepage")).unwrap();
        for (text, mode) in [("[always] madvise never", Mode::Always), ("always madvise [never]\n", Mode::Off)] {
            fs::write(folder.path().join("transparent_hugepage/enabled"), text).unwrap();
            assert_eq!(pages.mode(), Some(mode));
        }
        assert_eq!(pages.pool(size), Pool { free: 12, overcommit: 0 });
        assert_eq!(pages.pool(Bytes::new(1 << 30)), Pool::default());
    }
}
