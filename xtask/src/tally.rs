//! How many tests passed and which were skipped, whoever ran them: cargo, pytest or node. A skip is counted under its
//! reason, so that the same reason is printed once.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// What a reason contains, and what to do about it.
const HINTS: [(&str, &str); 3] = [
    ("LOWTIDE_DATA", "set `LOWTIDE_DATA` to the folder that holds the benchmark data"),
    ("there is no CUDA driver", "run this on a machine with a CUDA device"),
    (
        "needs a CUDA device",
        "where there is one, `pytest python/tests -m gpu` runs them, with the wheel and PyTorch installed",
    ),
];

/// Up to so many tests of one reason are named.
const NAMED: usize = 3;

/// Tests by how they ended. Displays as `N tests passed, N skipped`.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// By their reason: what was skipped, as many entries as tests.
    pub(crate) skipped: BTreeMap<String, Vec<String>>,
}

impl Tally {
    /// Counts a test that was skipped. Its name may be empty.
    pub(crate) fn skip(&mut self, test: impl Into<String>, reason: &str) {
        self.skipped.entry(reason.to_owned()).or_default().push(test.into());
    }

    /// How many tests were skipped.
    pub(crate) fn skips(&self) -> usize {
        self.skipped.values().map(Vec::len).sum()
    }

    /// A paragraph for each reason.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.skipped.iter().map(|(reason, tests)| note(reason, tests))
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        for (reason, tests) in other.skipped {
            self.skipped.entry(reason).or_default().extend(tests);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = counted(self.passed, "test");
        write!(formatter, "{passed} passed, {} skipped", grouped(self.skips()))
    }
}

fn note(reason: &str, tests: &[String]) -> String {
    let mut lines = vec![format!("skipped {}: {reason}", counted(tests.len(), "test"))];
    if tests.len() <= NAMED {
        lines.extend(tests.iter().filter(|test| !test.is_empty()).map(|test| format!("        {test}")));
    }
    let hint = HINTS.iter().find(|(part, _)| reason.contains(part));
    lines.extend(hint.map(|(_, hint)| format!("hint: {hint}")));
    lines.join("\n")
}

/// `1 test`, `2 tests`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1,234`.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_skipped_for_one_reason_are_told_together() {
        let mut tally = Tally { passed: 1234, ..Tally::default() };
        for test in ["a", "b", "c", "d"] {
            tally.skip(test, "there is no CUDA driver");
        }
        tally.skip("e", "no moon");
        assert_eq!(tally.to_string(), "1,234 tests passed, 5 skipped");
        let notes: Vec<String> = tally.notes().collect();
        assert_eq!(notes[0], "skipped 1 test: no moon\n        e");
        assert_eq!(
            notes[1],
            "skipped 4 tests: there is no CUDA driver\nhint: run this on a machine with a CUDA device"
        );
    }

    #[test]
    fn tallies_add_up() {
        let mut sum = Tally { passed: 2, ..Tally::default() };
        sum.skip("a", "no moon");
        let mut other = Tally { passed: 3, ..Tally::default() };
        other.skip("b", "no moon");
        sum += other;
        assert_eq!((sum.passed, sum.skips(), sum.skipped.len()), (5, 2, 1));
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "step"), "1 step");
    }
}
