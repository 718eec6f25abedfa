//! Whether the system has the pages that are asked for, said before the program runs and with the command that makes them.

use std::fs;
use std::path::Path;

use super::host::Pages;

const SYSTEM: &str = "/sys/kernel/mm";

/// What to say of `pages` on this machine.
pub(super) fn doubts(pages: Option<Pages>) -> Option<String> {
    doubts_at(Path::new(SYSTEM), pages)
}

fn doubts_at(system: &Path, pages: Option<Pages>) -> Option<String> {
    match pages {
        Some(Pages::Base) | None => None,
        Some(Pages::Transparent) => {
            let mode = fs::read_to_string(system.join("transparent_hugepage/enabled")).ok()?;
            mode.contains("[never]").then(|| {
                "transparent huge pages are switched off: \
                 `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root allows them"
                    .to_owned()
            })
        }
        Some(Pages::Huge2M) => pool(system, "2048kB", "2 MiB", "sysctl -w vm.nr_hugepages=1024"),
        Some(Pages::Huge1G) => pool(system, "1048576kB", "1 GiB", "boot with `hugepagesz=1G hugepages=4`"),
    }
}

/// What to say where the pool has no page free.
fn pool(system: &Path, folder: &str, size: &str, remedy: &str) -> Option<String> {
    let pool = system.join("hugepages").join(format!("hugepages-{folder}"));
    let count = |name: &str| -> u64 {
        fs::read_to_string(pool.join(name)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    };
    let none = count("free_hugepages") == 0 && count("nr_overcommit_hugepages") == 0;
    none.then(|| format!("the system has no free huge page of {size}, so that smaller ones serve: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_there_are_doubted() {
        let system = tempfile::tempdir().unwrap();
        let at = |pages| doubts_at(system.path(), Some(pages));
        assert!(at(Pages::Huge2M).unwrap().contains("vm.nr_hugepages"));
        assert!(at(Pages::Huge1G).is_some() && at(Pages::Base).is_none());
        let pool = system.path().join("hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        fs::write(pool.join("free_hugepages"), "12\n").unwrap();
        assert_eq!(at(Pages::Huge2M), None);
        let transparent = system.path().join("transparent_hugepage");
        fs::create_dir_all(&transparent).unwrap();
        fs::write(transparent.join("enabled"), "always madvise [never]\n").unwrap();
        assert!(at(Pages::Transparent).is_some());
    }
}
