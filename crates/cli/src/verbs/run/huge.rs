//! Whether the system has the pages that are asked for, said before the program runs and with the command that makes them.

use lowtide_core::Bytes;
use lowtide_memory::system::files::huge_pages::{HugePages, Mode};

use lowtide_core::options::Pages;

/// What to say of `pages` on this machine.
pub(super) fn doubts(pages: Option<Pages>) -> Option<String> {
    doubts_of(&HugePages::of_machine(), pages)
}

fn doubts_of(system: &HugePages, pages: Option<Pages>) -> Option<String> {
    match pages {
        Some(Pages::Base) | None => None,
        Some(Pages::Transparent) => (system.mode()? == Mode::Off).then(|| {
            "transparent huge pages are switched off: \
             `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root allows them"
                .to_owned()
        }),
        Some(Pages::Huge2M) => pool(system, Bytes::new(2 << 20), "2 MiB", "sysctl -w vm.nr_hugepages=1024"),
        Some(Pages::Huge1G) => pool(system, Bytes::new(1 << 30), "1 GiB", "boot with `hugepagesz=1G hugepages=4`"),
    }
}

/// What to say where the pool has no page free.
fn pool(system: &HugePages, size: Bytes, name: &str, remedy: &str) -> Option<String> {
    let pool = system.pool(size);
    let none = pool.free == 0 && pool.overcommit == 0;
    none.then(|| format!("the system has no free huge page of {name}, so that smaller ones serve: {remedy}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pages_that_are_not_there_are_doubted() {
        let system = tempfile::tempdir().unwrap();
        let at = |pages| doubts_of(&HugePages::at(system.path()), Some(pages));
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
