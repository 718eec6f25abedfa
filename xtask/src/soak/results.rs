//! What came of the rounds of each program, without Lowtide and under it, and the verdict on that.

use std::fmt;
use std::time::Duration;

use super::folder::Way;
use super::pass::{End, Round};
use crate::tally::counted;

/// A program's rounds one way. Displays as `N rounds, N killed, N failed, N differing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    rounds: u32,
    killed: u32,
    /// Ended with another code than 0, or did not end.
    failed: u32,
    /// Ended well, and printed something else than at first.
    differing: u32,
    /// Of all rounds that ended well.
    wall: Duration,
}

impl Counts {
    /// The rounds of several programs.
    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            rounds: sum.rounds + one.rounds,
            killed: sum.killed + one.killed,
            failed: sum.failed + one.failed,
            differing: sum.differing + one.differing,
            wall: sum.wall + one.wall,
        })
    }

    /// Whether all rounds ended well and printed the same.
    pub(super) fn are_good(&self) -> bool {
        self.broken() + self.differing == 0
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    fn broken(&self) -> u32 {
        self.killed + self.failed
    }

    fn mean_seconds(&self) -> Option<f64> {
        let good = self.rounds - self.broken();
        (good > 0).then(|| self.wall.as_secs_f64() / f64::from(good))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, killed, failed, differing, .. } = self;
        let rounds = counted(*rounds as usize, "round");
        write!(formatter, "{rounds}, {killed} killed, {failed} failed, {differing} differing")
    }
}

/// A program, and what came of it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: &'static str,
    /// What it has to print.
    expected: Vec<u8>,
    plain: Counts,
    lowtide: Counts,
}

impl Record {
    pub(super) fn new(name: &'static str, expected: Vec<u8>) -> Self {
        Self { name, expected, plain: Counts::default(), lowtide: Counts::default() }
    }

    /// Its rounds one way.
    pub(super) fn counts(&self, way: Way) -> &Counts {
        match way {
            Way::Plain => &self.plain,
            Way::Lowtide => &self.lowtide,
        }
    }

    /// Counts a round; what is wrong with it, if anything.
    pub(super) fn count(&mut self, way: Way, round: &Round) -> Option<String> {
        let counts = match way {
            Way::Plain => &mut self.plain,
            Way::Lowtide => &mut self.lowtide,
        };
        counts.rounds += 1;
        let fault = match round.end {
            End::Well => {
                counts.wall += round.wall;
                let differs = round.output != self.expected;
                counts.differing += u32::from(differs);
                return differs.then(|| {
                    let [expected, printed] = [&self.expected, &round.output].map(|text| String::from_utf8_lossy(text));
                    format!("{} printed `{}` and not `{}`", self.name, printed.trim_end(), expected.trim_end())
                });
            }
            End::Killed => {
                counts.killed += 1;
                "was killed".to_owned()
            }
            End::Failed(code) => {
                counts.failed += 1;
                code.map_or_else(|| "hung, or ended by a signal".to_owned(), |code| format!("ended with code {code}"))
            }
        };
        Some(format!("{} {fault} after {:.1} s: {}", self.name, round.wall.as_secs_f64(), last_lines(&round.words)))
    }

    /// Whether it was killed, failed or differed under Lowtide, and not without, or not half as often.
    pub(super) fn is_worse(&self) -> bool {
        let Self { plain, lowtide, .. } = self;
        let is_more = |with: u32, without: u32| {
            u64::from(with) * u64::from(plain.rounds.max(1)) > 2 * u64::from(without) * u64::from(lowtide.rounds)
        };
        is_more(lowtide.broken(), plain.broken()) || is_more(lowtide.differing, plain.differing)
    }

    /// Its line of the table.
    pub(super) fn line(&self) -> String {
        let Self { name, plain, lowtide, .. } = self;
        let [without, with] = [plain, lowtide].map(Counts::mean_seconds);
        let ratio = with.zip(without).map(|(with, without)| with / without);
        let [without, with, ratio] = [(without, 1), (with, 1), (ratio, 2)]
            .map(|(number, digits)| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.digits$}")));
        let [plain, lowtide] = [(plain, without), (lowtide, with)].map(|(counts, wall)| {
            let Counts { rounds, killed, failed, differing, .. } = counts;
            columns([&rounds, &killed, &failed, &differing, &wall])
        });
        format!("{name:<11}{plain}  {lowtide} {ratio:>7}")
    }
}

/// The head of the table.
pub(super) fn head() -> String {
    let names = columns([&"rounds", &"killed", &"failed", &"differing", &"wall s"]);
    format!("{:<11}{:>43}  {:>43}\n{:<11}{names}  {names} {:>7}", "", "plain", "under Lowtide", "", "ratio")
}

fn columns([rounds, killed, failed, differing, wall]: [&dyn fmt::Display; 5]) -> String {
    format!("{rounds:>8} {killed:>7} {failed:>7} {differing:>10} {wall:>7}")
}

/// The end of what a program said, in one line.
fn last_lines(words: &str) -> String {
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(end: End, output: &str) -> Round {
        let words = "one\ntwo\n\nthree\nfour\n".to_owned();
        Round { program: 0, end, wall: Duration::from_secs(2), output: output.into(), words }
    }

    /// A program with these rounds without Lowtide, and these under it.
    fn record(plain: &[Round], lowtide: &[Round]) -> Record {
        let mut record = Record::new("example", b"same\n".into());
        for (way, rounds) in [(Way::Plain, plain), (Way::Lowtide, lowtide)] {
            for round in rounds {
                record.count(way, round);
            }
        }
        record
    }

    #[test]
    fn what_is_worse_under_lowtide_alone_is_found() {
        let good = || round(End::Well, "same\n");
        let differing = || round(End::Well, "other\n");
        let killed = || round(End::Killed, "");
        let failed = || round(End::Failed(Some(1)), "");
        for (plain, lowtide, is_worse) in [
            (vec![good()], vec![good(), good()], false),
            (vec![good()], vec![good(), killed()], true),
            (vec![good()], vec![failed()], true),
            (vec![good()], vec![differing()], true),
            (vec![killed()], vec![failed()], false),
            (vec![killed()], vec![differing()], true),
            (vec![differing()], vec![differing()], false),
            (vec![killed()], vec![], false),
        ] {
            assert_eq!(record(&plain, &lowtide).is_worse(), is_worse, "{plain:?} {lowtide:?}");
        }
    }

    #[test]
    fn rounds_are_counted_by_how_they_end() {
        let rounds = [
            round(End::Well, "same\n"),
            round(End::Killed, ""),
            round(End::Failed(None), ""),
            round(End::Well, "other\n"),
        ];
        let counts = record(&rounds, &[]).plain;
        assert_eq!(counts.to_string(), "4 rounds, 1 killed, 1 failed, 1 differing");
        assert!(!counts.are_good());
        assert_eq!(counts.mean_seconds(), Some(2.0));
        assert_eq!(Counts::sum([counts, counts].iter()).rounds, 8);
    }

    #[test]
    fn a_fault_says_what_happened() {
        let mut record = record(&[], &[]);
        assert_eq!(record.count(Way::Lowtide, &round(End::Well, "same\n")), None);
        let faults =
            [End::Well, End::Killed, End::Failed(Some(2))].map(|end| record.count(Way::Lowtide, &round(end, "")));
        let faults = faults.map(Option::unwrap_or_default);
        assert_eq!(faults[0], "example printed `` and not `same`");
        assert_eq!(faults[1], "example was killed after 2.0 s: two / three / four");
        assert_eq!(faults[2], "example ended with code 2 after 2.0 s: two / three / four");
    }

    #[test]
    fn the_table_is_aligned() {
        let line = record(&[round(End::Well, "same\n")], &[round(End::Well, "same\n")]).line();
        assert!(line.ends_with("   1.00"), "{line}");
        assert!(head().lines().all(|head| head.len() <= line.len()), "{line}");
    }
}
