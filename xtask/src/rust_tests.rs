//! The tests that cargo runs. The runner counts a test that was skipped as passed; which ones those were comes from a
//! file to which they add themselves by `lowtide_testing::skip`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use lowtide_testing::{DATA_VARIABLE, SKIPS_VARIABLE, Skipped};

use crate::process;
use crate::repository::Repository;
use crate::step::Passed;
use crate::tally::Tally;

/// With this feature the crate works only inside the tests named, so that they are built and run apart.
const INTERLEAVINGS: [&str; 7] =
    ["test", "--package", "lowtide-pool", "--features", "shuttle", "--lib", "interleavings"];

/// Runs every test of the workspace.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    refuse_absent_data(repository)?;
    let skips = repository.target()?.join("skipped-tests.txt");
    fs::write(&skips, "").with_context(|| format!("cannot write {}", skips.display()))?;
    let mut output = test(repository, &["test", "--workspace", "--no-fail-fast"], &skips)?;
    let interleavings = test(repository, &INTERLEAVINGS, &skips)?;
    ensure!(tally(&interleavings, "").passed > 0, "no test is called `interleavings` any more");
    output += &interleavings;
    let skips = fs::read_to_string(&skips).with_context(|| format!("cannot read {}", skips.display()))?;
    Ok(Passed { tests: tally(&output, &skips), ..Passed::default() })
}

fn test(repository: &Repository, arguments: &[&str], skips: &Path) -> Result<String> {
    let mut command = process::cargo(repository, arguments);
    command.env(SKIPS_VARIABLE, skips);
    if let Some(folder) = &repository.data {
        command.env(DATA_VARIABLE, folder);
    }
    process::output(command)
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
