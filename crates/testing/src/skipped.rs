//! A test that was skipped, as it is handed from the process that runs tests to `cargo xtask test`: a line of a file that
//! a variable names. Whoever runs tests by hand reads the same on stderr.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// The variable that names the file to which skips are added.
pub const SKIPS_VARIABLE: &str = "LOWTIDE_TEST_SKIPS";

/// A test that was skipped.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Skipped {
    /// The file that holds the tests, and the name of the test in it.
    pub test: String,
    /// Why it was skipped: one line.
    pub reason: String,
}

impl Skipped {
    /// The test that runs on this thread, which the test runner names after it.
    pub fn here(reason: &str) -> Self {
        let program = env::current_exe().unwrap_or_default();
        let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let thread = thread::current();
        Self {
            test: format!("{program} {}", thread.name().unwrap_or("a thread without a name")),
            reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// Says it on stderr, past the runner that keeps back what tests print, and adds it to the file if one is named.
    pub fn report(&self) {
        // One call, and a line of its own wherever another test has stopped.
        let _ = io::stderr().write_all(format!("\nskipped {}: {}\n", self.test, self.reason).as_bytes());
        if let Some(file) = env::var_os(SKIPS_VARIABLE).filter(|file| !file.is_empty()) {
            self.add_to(Path::new(&file));
        }
    }

    /// The skip that a line of the file names.
    pub fn of_line(line: &str) -> Option<Self> {
        let (test, reason) = line.split_once('\t')?;
        Some(Self { test: test.to_owned(), reason: reason.to_owned() })
    }

    fn add_to(&self, file: &Path) {
        let added = OpenOptions::new().create(true).append(true).open(file).and_then(|mut file| {
            // One call, because other tests add to the file at the same time.
            file.write_all(format!("{}\t{}\n", self.test, self.reason).as_bytes())
        });
        assert!(added.is_ok(), "{}: {added:?}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_names_its_test_and_is_one_line() {
        let skipped = Skipped::here("there is\n\tno moon");
        assert!(skipped.test.ends_with(" skipped::tests::a_skip_names_its_test_and_is_one_line"), "{skipped:?}");
        assert_eq!(skipped.reason, "there is no moon");
    }

    #[test]
    fn what_is_added_to_a_file_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        let skips = ["no moon", "no sun"].map(Skipped::here);
        for skipped in &skips {
            skipped.add_to(&file);
        }
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.lines().filter_map(Skipped::of_line).collect::<Vec<_>>(), skips);
    }

    #[test]
    fn other_lines_are_no_skips() {
        assert_eq!(Skipped::of_line("no tab"), None);
    }
}
