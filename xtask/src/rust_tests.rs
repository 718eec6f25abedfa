//! The tests that cargo runs. The runner counts a test that was skipped as passed; which ones those were comes from a
//! file to which they add themselves by `lowtide_testing::skip`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use lowtide_testing::{DATA_VARIABLE, QUICK_VARIABLE, SKIPS_VARIABLE, Skipped};

use crate::process;
use crate::repository::Repository;
use crate::step::Passed;
use crate::tally::Tally;

/// With this feature the crate works only inside the tests named, so that they are built and run apart.
const INTERLEAVINGS: [&str; 7] =
    ["test", "--package", "lowtide-pool", "--features", "shuttle", "--lib", "interleavings"];

/// The properties that `--quick` tries are tried with fewer cases.
const FEW_CASES: (&str, &str) = ("PROPTEST_CASES", "32");

/// Runs every test of the workspace.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let skips = Skips::new(repository)?;
    let mut output = skips.collect(repository, &["test", "--quiet", "--workspace", "--no-fail-fast"], &[])?;
    let interleavings = skips.collect(repository, &INTERLEAVINGS, &[])?;
    ensure!(tally(&interleavings, "").passed > 0, "no test is called `interleavings` any more");
    output += &interleavings;
    Ok(Passed { tests: tally(&output, &skips.read()?), ..Passed::default() })
}

/// Runs the tests that take little time.
pub(crate) fn run_quickly(repository: &Repository) -> Result<Passed> {
    let skips = Skips::new(repository)?;
    let arguments = ["test", "--quiet", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"];
    let output = skips.collect(repository, &arguments, &[(QUICK_VARIABLE, "1"), FEW_CASES])?;
    Ok(Passed { tests: tally(&output, &skips.read()?), ..Passed::default() })
}

/// The file to which tests add themselves that are skipped.
struct Skips(PathBuf);

impl Skips {
    fn new(repository: &Repository) -> Result<Self> {
        refuse_absent_data(repository)?;
        let file = repository.target()?.join("skipped-tests.txt");
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self(file))
    }

    /// What cargo prints when it runs tests.
    fn collect(&self, repository: &Repository, arguments: &[&str], variables: &[(&str, &str)]) -> Result<String> {
        let mut command = process::cargo(repository, arguments);
        command.env(SKIPS_VARIABLE, &self.0).envs(variables.iter().copied());
        if let Some(folder) = &repository.data {
            command.env(DATA_VARIABLE, folder);
        }
        process::output(command)
    }

    fn read(&self) -> Result<String> {
        fs::read_to_string(&self.0).with_context(|| format!("cannot read {}", self.0.display()))
    }
}

/// A wrong path would make the tests skip the data as if nobody had asked for it.
fn refuse_absent_data(repository: &Repository) -> Result<()> {
    match &repository.data {
        Some(folder) if !folder.is_dir() => {
            bail!("`{DATA_VARIABLE}` is `{}`, which is not a folder", folder.display())
        }
        _ => Ok(()),
    }
}

/// Adds up the lines like `test result: ok. 3 passed; 0 failed; 1 ignored; …`, and takes the skips out of those passed.
fn tally(output: &str, skips: &str) -> Tally {
    let mut tally = Tally::default();
    for result in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        tally.passed += count_before(result, "passed").unwrap_or(0);
        for _ in 0..count_before(result, "ignored").unwrap_or(0) {
            tally.skip("", "marked `#[ignore]`");
        }
    }
    // A test may say more than once what it left out.
    let mut tests = BTreeSet::new();
    for Skipped { test, reason } in skips.lines().filter_map(Skipped::of_line) {
        if tests.insert(test.clone()) {
            tally.passed = tally.passed.saturating_sub(1);
            tally.skip(test, &reason);
        }
    }
    tally
}

/// The number before a word: 3 in `ok. 3 passed; 0 failed` for `passed`.
fn count_before(text: &str, word: &str) -> Option<usize> {
    let (before, _) = text.split_once(&format!(" {word};"))?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_all_binaries_are_added_up_and_skips_are_not_passes() {
        let output = "running 2 tests\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                      test result: ok. 40 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        let skips = "all-1 a\tno moon\nall-1 a\tno sun\nall-1 b\tno moon\n";
        let tally = tally(output, skips);
        assert_eq!((tally.passed, tally.skips()), (40, 5));
        assert_eq!(tally.skipped["no moon"], ["all-1 a", "all-1 b"]);
        assert_eq!(tally.skipped["marked `#[ignore]`"].len(), 3);
    }

    #[test]
    fn data_that_is_named_and_absent_is_a_failure() {
        let absent = Repository { root: ".".into(), data: Some("/no/such/folder".into()) };
        assert!(refuse_absent_data(&absent).unwrap_err().to_string().contains("not a folder"));
    }
}
