//! The steps of each command, in the order they run. What a step needs beyond Rust is said in its [`Need`], so that a
//! bare checkout skips it by name instead of failing or staying silent.

use anyhow::Result;

use crate::repository::Repository;
use crate::step::{Passed, Step};
use crate::{browser, layers, process, python, rust_tests, sources};

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
    steps.push(Step { name: "tests", purpose: "every test of the workspace passes", need: None, run: rust_tests::run });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_begins_with_all_of_check() {
        let names = |steps: Vec<Step>| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert!(names(test()).starts_with(&names(check())));
    }
}
