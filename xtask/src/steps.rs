//! The steps of each command, in the order they run. What a step needs beyond Rust is said in its [`Need`], so that a
//! bare checkout skips it by name instead of failing or staying silent.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::repository::{DATA_VARIABLE, Repository};
use crate::step::{Need, Passed, Step};
use crate::{browser, layers, process, python, sources};

/// The steps of `cargo xtask check`.
pub(crate) fn check() -> Vec<Step> {
    vec![
        Step { name: "format", purpose: "rustfmt would change nothing", need: None, run: format },
        Step { name: "clippy", purpose: "no warning in any target", need: None, run: clippy },
        Step { name: "layers", purpose: "crates use only crates below them", need: None, run: layers::run },
        Step { name: "sources", purpose: "`unsafe` stays where it may be", need: None, run: sources::run },
        Step { name: "docs", purpose: "the documentation builds without a warning", need: None, run: docs },
    ]
}

/// The steps of `cargo xtask test`.
pub(crate) fn test() -> Vec<Step> {
    let mut steps = check();
    steps.push(Step {
        name: "data",
        purpose: "the benchmark data is there for the tests",
        need: Some(Need {
            what: "tests over the benchmark data did not run, because `LOWTIDE_DATA` is not set",
            how_to_get: "set `LOWTIDE_DATA` to the folder that holds the data, then run this again",
            is_met: |repository| repository.data.is_some(),
        }),
        run: data,
    });
    steps.push(Step { name: "tests", purpose: "every test of the workspace passes", need: None, run: tests });
    steps.push(Step {
        name: "browser",
        purpose: "the report page works in Chromium",
        need: Some(browser::NEED),
        run: browser::run,
    });
    steps.push(Step {
        name: "python",
        purpose: "the wheel builds, installs and works under PyTorch",
        need: Some(python::NEED),
        run: python::run,
    });
    steps
}

fn format(repository: &Repository) -> Result<Passed> {
    process::output(process::cargo(repository, &["fmt", "--all", "--check"]))?;
    Ok(Passed::default())
}

fn clippy(repository: &Repository) -> Result<Passed> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::output(process::cargo(repository, &arguments))?;
    Ok(Passed::default())
}

fn docs(repository: &Repository) -> Result<Passed> {
    let mut command = process::cargo(repository, &["doc", "--no-deps", "--workspace"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::output(command)?;
    Ok(Passed::default())
}

/// A wrong path would make the tests skip the data as if nobody had asked for it.
fn data(repository: &Repository) -> Result<Passed> {
    match &repository.data {
        Some(folder) if !folder.is_dir() => {
            bail!("`{DATA_VARIABLE}` is `{}`, which is not a folder", folder.display())
        }
        _ => Ok(Passed::default()),
    }
}

/// With this feature the crate works only inside the tests named, so that they are built and run apart.
const INTERLEAVINGS: [&str; 7] =
    ["test", "--package", "lowtide-pool", "--features", "shuttle", "--lib", "arena::stage::interleavings"];

fn tests(repository: &Repository) -> Result<Passed> {
    let mut command = process::cargo(repository, &["test", "--workspace", "--no-fail-fast"]);
    if let Some(folder) = &repository.data {
        command.env(DATA_VARIABLE, folder);
    }
    let mut output = process::output(command)?;
    output += &process::output(process::cargo(repository, &INTERLEAVINGS))?;
    let Tally { passed, ignored, skipped } = Tally::of(&output);
    let mut notes: Vec<String> = skipped.iter().map(|reason| format!("skipped a test: {reason}")).collect();
    if ignored > 0 {
        notes.push(format!("skipped {ignored} tests that are ignored\nhint: cargo test --workspace -- --ignored"));
    }
    Ok(Passed { detail: format!("{passed} tests"), notes })
}

/// What `cargo test` says about all its binaries together.
#[derive(Debug, Default, Eq, PartialEq)]
struct Tally {
    passed: u64,
    ignored: u64,
    /// What tests say that found nothing to try, each reason once.
    skipped: BTreeSet<String>,
}

impl Tally {
    /// Adds up the lines like `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn of(output: &str) -> Self {
        let results: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("test result: ")).collect();
        let total = |word: &str| results.iter().filter_map(|result| count_before(result, word)).sum();
        let skipped = output.lines().filter_map(|line| line.strip_prefix("skipped: ")).map(str::to_owned).collect();
        Self { passed: total("passed"), ignored: total("ignored"), skipped }
    }
}

/// The number before a word: 3 in `ok. 3 passed; 0 failed` for `passed`.
fn count_before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(&format!(" {word};"))?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_all_binaries_are_added_up() {
        let output = "running 2 tests\n\
                      skipped: there is no moon\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                      test result: ok. 40 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\
                      skipped: there is no moon\n";
        let skipped = BTreeSet::from(["there is no moon".to_owned()]);
        assert_eq!(Tally::of(output), Tally { passed: 42, ignored: 3, skipped });
    }

    #[test]
    fn test_begins_with_all_of_check() {
        let names = |steps: Vec<Step>| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert!(names(test()).starts_with(&names(check())));
    }

    #[test]
    fn data_that_is_named_and_absent_is_a_failure() {
        let absent = Repository { root: ".".into(), data: Some("/no/such/folder".into()) };
        assert!(data(&absent).unwrap_err().to_string().contains("not a folder"));
    }
}
