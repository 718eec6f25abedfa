//! Steps and how they are run: one line of progress each, the output of those that fail, what was skipped and how to
//! get it, and a last line that counts them.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;

use crate::repository::Repository;
use crate::tally::{Tally, counted};

/// One thing to find out about the repository.
pub(crate) struct Step {
    /// One word.
    pub(crate) name: &'static str,
    /// What holds when it passes.
    pub(crate) purpose: &'static str,
    /// What it cannot do without, where a developer may well not have it. Without it the step is skipped.
    pub(crate) need: Option<Need>,
    /// Does it. The text of an error is shown as it is.
    pub(crate) run: fn(&Repository) -> Result<Passed>,
}

/// Something outside the repository that a step needs.
pub(crate) struct Need {
    /// What it is and what is not done without it.
    pub(crate) what: &'static str,
    /// What to type or to install.
    pub(crate) how_to_get: &'static str,
    /// Whether it is there. May set it up by itself when that needs nobody's consent.
    pub(crate) is_met: fn(&Repository) -> bool,
}

/// What a step that passed has to say.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// A few words for its line.
    pub(crate) detail: String,
    /// Sentences that want a reader, and yet are no failure.
    pub(crate) notes: Vec<String>,
    /// The tests that it ran, if it runs any.
    pub(crate) tests: Tally,
}

impl Passed {
    fn detail(&self) -> String {
        if self.tests == Tally::default() { self.detail.clone() } else { self.tests.to_string() }
    }
}

/// How many steps ended how, and the tests of all of them. Displays as
/// `N steps passed, N failed, N skipped · N tests passed, N skipped`.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Summary {
    passed: usize,
    failed: usize,
    skipped: usize,
    tests: Tally,
}

impl Summary {
    /// Whether nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = counted(self.passed, "step");
        write!(formatter, "{steps} passed, {} failed, {} skipped", self.failed, self.skipped)?;
        if self.tests != Tally::default() {
            write!(formatter, " · {}", self.tests)?;
        }
        Ok(())
    }
}

enum Outcome<'step> {
    Passed(Passed),
    Failed(anyhow::Error),
    Skipped(&'step Need),
}

/// Runs every step, also after one has failed, and ends with the summary on a line of its own.
///
/// Fails only when `out` does.
pub(crate) fn run_all(steps: &[Step], repository: &Repository, out: &mut impl Write) -> io::Result<Summary> {
    let mut summary = Summary::default();
    let mut notes = Vec::new();
    for step in steps {
        write!(out, "{:<9}", step.name)?;
        out.flush()?;
        let started = Instant::now();
        let outcome = run(step, repository);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Outcome::Passed(passed) => {
                summary.passed += 1;
                writeln!(out, "{}", line("ok", seconds, &passed.detail()))?;
                notes.extend(passed.notes);
                summary.tests += passed.tests;
            }
            Outcome::Failed(error) => {
                summary.failed += 1;
                writeln!(out, "{}\n\n{error:#}\n", line("FAILED", seconds, ""))?;
            }
            Outcome::Skipped(need) => {
                summary.skipped += 1;
                writeln!(out, "skipped")?;
                notes.push(format!("skipped `{}`: {}\nhint: {}", step.name, need.what, need.how_to_get));
            }
        }
    }
    for note in notes.into_iter().chain(summary.tests.notes()) {
        writeln!(out, "\n{note}")?;
    }
    writeln!(out, "\n{summary}")?;
    Ok(summary)
}

fn run<'step>(step: &'step Step, repository: &Repository) -> Outcome<'step> {
    match &step.need {
        Some(need) if !(need.is_met)(repository) => Outcome::Skipped(need),
        _ => (step.run)(repository).map_or_else(Outcome::Failed, Outcome::Passed),
    }
}

fn line(verdict: &str, seconds: f64, detail: &str) -> String {
    let separator = if detail.is_empty() { "" } else { " · " };
    format!("{verdict:<8} {seconds:.1} s{separator}{detail}")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use anyhow::bail;

    use super::*;

    const MISSING: Need = Need { what: "it needs the moon", how_to_get: "wait for the night", is_met: |_| false };
    const PRESENT: Need = Need { what: "it needs the ground", how_to_get: "look down", is_met: |_| true };

    fn step(need: Option<Need>, run: fn(&Repository) -> Result<Passed>) -> Step {
        Step { name: "example", purpose: "", need, run }
    }

    fn run_quietly(steps: &[Step]) -> (Summary, String) {
        let nowhere = Repository { root: PathBuf::new(), data: None };
        let mut out = Vec::new();
        let summary = run_all(steps, &nowhere, &mut out).unwrap();
        (summary, String::from_utf8(out).unwrap())
    }

    #[test]
    fn steps_are_counted_by_how_they_end_and_a_failure_stops_nothing() {
        let (summary, _) = run_quietly(&[
            step(None, |_| bail!("broken")),
            step(None, |_| Ok(Passed::default())),
            step(Some(PRESENT), |_| Ok(Passed::default())),
            step(Some(MISSING), |_| bail!("never run")),
        ]);
        assert_eq!(summary, Summary { passed: 2, failed: 1, skipped: 1, tests: Tally::default() });
        assert!(!summary.is_good());
    }

    #[test]
    fn the_output_of_a_failure_is_shown_and_the_last_line_counts() {
        let (_, text) = run_quietly(&[step(None, |_| bail!("first line\nsecond line"))]);
        assert!(text.contains("\nfirst line\nsecond line\n"), "{text}");
        assert_eq!(text.lines().last(), Some("0 steps passed, 1 failed, 0 skipped"));
    }

    #[test]
    fn a_skipped_step_is_no_failure_and_says_how_to_get_what_it_needs() {
        let (summary, text) = run_quietly(&[step(Some(MISSING), |_| bail!("never run"))]);
        assert!(summary.is_good());
        assert!(text.contains("skipped `example`: it needs the moon\nhint: wait for the night\n"), "{text}");
    }

    #[test]
    fn skipped_tests_are_told_and_the_last_line_counts_them() {
        let (_, text) = run_quietly(&[step(None, |_| {
            let mut tests = Tally { passed: 7, ..Tally::default() };
            tests.skip("a", "there is no moon");
            Ok(Passed { tests, ..Passed::default() })
        })]);
        assert!(text.contains("\nskipped 1 test: there is no moon\n        a\n"), "{text}");
        assert_eq!(text.lines().last(), Some("1 step passed, 0 failed, 0 skipped · 7 tests passed, 1 skipped"));
    }
}
