//! The steps of each command, in the order they run. What a step needs beyond Rust is said in its [`Need`], so that a
//! bare checkout skips it by name instead of failing or staying silent.

use anyhow::Result;

use crate::repository::Repository;
use crate::step::{Need, Passed, Step};
use crate::{browser, dependencies, layers, process, python, rust_tests, sources};

const FORMAT: Step = Step { name: "format", purpose: "rustfmt would change nothing", need: None, run: format };
const LAYERS: Step =
    Step { name: "layers", purpose: "crates use only crates below them", need: None, run: layers::run };
const SOURCES: Step =
    Step { name: "sources", purpose: "`unsafe` and module files are where they may be", need: None, run: sources::run };
const UNUSED: Step =
    Step { name: "unused", purpose: "every dependency of the workspace is used", need: None, run: dependencies::run };
const CLIPPY: Step = Step { name: "clippy", purpose: "no warning in any target", need: None, run: clippy };
const DOCS: Step = Step { name: "docs", purpose: "the documentation builds without a warning", need: None, run: docs };
const TESTS: Step =
    Step { name: "tests", purpose: "every test of the workspace passes", need: None, run: rust_tests::run };
const QUICK_TESTS: Step =
    Step { name: "tests", purpose: "the tests that take little time pass", need: None, run: rust_tests::run_quickly };
const BROWSER: Step = Step {
    name: "browser",
    purpose: "the report page works in Chromium",
    need: Some(browser::NEED),
    run: browser::run,
};
const PYTHON: Step = Step {
    name: "python",
    purpose: "the wheel builds, installs and works under PyTorch",
    need: Some(python::NEED),
    run: python::run,
};

/// The steps of `cargo xtask check`.
pub(crate) fn check() -> Vec<Step> {
    vec![FORMAT, LAYERS, SOURCES, UNUSED, CLIPPY, DOCS]
}

/// The steps of `cargo xtask test`.
pub(crate) fn test() -> Vec<Step> {
    vec![FORMAT, LAYERS, SOURCES, UNUSED, CLIPPY, DOCS, TESTS, BROWSER, PYTHON]
}

/// The steps of `cargo xtask test --quick`.
pub(crate) fn quick() -> Vec<Step> {
    vec![FORMAT, LAYERS, SOURCES, UNUSED, QUICK_TESTS, LEFT_OUT]
}

/// Says what `--quick` does not do.
const LEFT_OUT: Step = Step {
    name: "others",
    purpose: "not run: clippy, docs, browser, python",
    need: Some(Need {
        what: "`--quick` leaves out the steps clippy, docs, browser and python, and the examples in the documentation",
        how_to_get: "`cargo xtask test` runs everything",
        is_met: |_| false,
    }),
    run: |_| Ok(Passed::default()),
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_begins_with_all_of_check() {
        let names = |steps: Vec<Step>| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert!(names(test()).starts_with(&names(check())));
    }

    #[test]
    fn what_quick_leaves_out_is_said() {
        let said = LEFT_OUT.need.unwrap().what;
        let quick: Vec<&str> = quick().iter().map(|step| step.name).collect();
        for step in test().iter().filter(|step| !quick.contains(&step.name)) {
            assert!(said.contains(step.name), "{}", step.name);
        }
    }
}
