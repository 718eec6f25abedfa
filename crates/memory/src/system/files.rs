//! What the system says in files: `/proc`, `/sys` and control groups. No other module reads them.
//!
//! They are read by hand and not by the crate `procfs`: a few fields are wanted of a few files, and that one parses and
//! allocates all of them at each sample and fails as a whole where a kernel or a sandbox leaves one out.

pub mod groups;
pub mod huge_pages;
pub mod nodes;
pub mod own;
pub mod pagemap;
pub mod processes;

use std::fs;
use std::path::Path;

/// The number that a file holds alone.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The bytes of a field that is given in kB; none where the text has no such field.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
