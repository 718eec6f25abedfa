//! What the tests of all crates share. A test that cannot run here calls [`skip`], or gets what it needs from [`data`] or
//! [`program`], which do; `cargo xtask test` prints every skip and does not count that test as passed.
#![forbid(unsafe_code)]

mod skipped;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

pub use skipped::{SKIPS_VARIABLE, Skipped};

/// The variable that names the folder with benchmark data.
pub const DATA_VARIABLE: &str = "LOWTIDE_DATA";

/// The variable that is set where tests that take long are left out.
pub const QUICK_VARIABLE: &str = "LOWTIDE_TEST_QUICK";

/// Says that this test, or a part of it, is not run, and why: `return skip("there is no C compiler")`.
pub fn skip(reason: &str) {
    Skipped::here(reason).report();
}

/// Whether tests that take long are run. By `cargo xtask test --quick` they are not, and this is a skip.
pub fn thorough() -> bool {
    let is_quick = env::var_os(QUICK_VARIABLE).is_some_and(|value| !value.is_empty());
    if is_quick {
        skip("it takes long, and `--quick` leaves it out");
    }
    !is_quick
}

/// The folder `name` of the benchmark data; a skip where it is not there.
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = env::var_os(DATA_VARIABLE).map(|root| PathBuf::from(root).join(name));
    let found = folder.filter(|folder| folder.is_dir());
    if found.is_none() {
        skip(&format!("{DATA_VARIABLE} names no folder with `{name}`"));
    }
    found
}

/// Where a program is on the search path; a skip where it is not installed.
pub fn program(name: &str) -> Option<PathBuf> {
    programs([name], &[]).map(|[program]| program)
}

/// Where programs are, in `folders` or on the search path; a skip where one of them is not installed.
pub fn programs<const N: usize>(names: [&str; N], folders: &[PathBuf]) -> Option<[PathBuf; N]> {
    let path: OsString = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = folders.iter().cloned().chain(env::split_paths(&path)).collect();
    let find = |name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    let found = names.map(|name| (name, find(name)));
    let missing: Vec<&str> = found.iter().filter(|(_, file)| file.is_none()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        Some(found.map(|(_, file)| file.unwrap_or_default()))
    } else {
        skip(&format!("not installed: {}", missing.join(", ")));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_folders_given_and_on_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("no-such-program-elsewhere");
        std::fs::write(&own, "").unwrap();
        let found = programs(["no-such-program-elsewhere", "sh"], &[folder.path().to_owned()]).unwrap();
        assert_eq!(found[0], own);
        assert!(found[1].ends_with("sh"), "{}", found[1].display());
    }
}
