//! A program without Lowtide and with it, side by side, as the system counts what each used.

use lowtide_core::Bytes;
use serde::Serialize;

use crate::arguments::numbers::median;
use crate::console::{columns, show};
use crate::program::Ended;

/// What a run used, with all processes that it waited for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Used {
    pub exit_code: u8,
    pub seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub minor_faults: u64,
    /// Of the largest process.
    pub peak_rss_bytes: u64,
}

impl From<&Ended> for Used {
    fn from(ended: &Ended) -> Self {
        Self {
            exit_code: ended.code(),
            seconds: ended.wall.as_secs_f64(),
            user_seconds: ended.usage.user.as_secs_f64(),
            system_seconds: ended.usage.system.as_secs_f64(),
            minor_faults: ended.usage.minor_faults,
            peak_rss_bytes: ended.usage.peak.get(),
        }
    }
}

/// Two runs, one right after the other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Round {
    pub with_first: bool,
    pub without: Used,
    pub with: Used,
}

/// All rounds. Numbers of a side are medians over them, each number by itself.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Comparison {
    pub without: Used,
    pub with: Used,
    pub rounds: Vec<Round>,
}

impl Comparison {
    /// None of no rounds.
    pub fn of(rounds: Vec<Round>) -> Option<Self> {
        let without = typical(&rounds, |round| round.without)?;
        let with = typical(&rounds, |round| round.with)?;
        Some(Self { without, with, rounds })
    }

    /// Both in a table. A ratio is the median of the rounds' own: what disturbs a machine for a while disturbs both runs of a
    /// round.
    pub fn lines(&self) -> Vec<String> {
        let mut header = ["", "without", "with", "ratio"].map(str::to_owned).to_vec();
        if self.rounds.len() > 1 {
            header.push(format!("over {} rounds", self.rounds.len()));
        }
        let time = |of: fn(&Used) -> f64| move |used: &Used| format!("{:.2} s", of(used));
        let rows = [
            header,
            self.row("wall", time(|used| used.seconds), |used| used.seconds),
            self.row("CPU", time(cpu), cpu),
            self.row("CPU, user", time(|used| used.user_seconds), |used| used.user_seconds),
            self.row("CPU, system", time(|used| used.system_seconds), |used| used.system_seconds),
            self.row(
                "minor faults",
                |used| show::thousands(used.minor_faults as usize),
                |used| used.minor_faults as f64,
            ),
            self.row("peak RSS", |used| Bytes::new(used.peak_rss_bytes).to_string(), |used| used.peak_rss_bytes as f64),
        ];
        columns::aligned(&rows).into_iter().map(|line| format!("  {line}")).collect()
    }

    fn row(&self, name: &str, show: impl Fn(&Used) -> String, number: impl Fn(&Used) -> f64) -> Vec<String> {
        let ratios = self.rounds.iter().map(|round| number(&round.with) / number(&round.without));
        let mut ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = median(&ratios).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}×"));
        let mut cells = vec![name.to_owned(), show(&self.without), show(&self.with), ratio];
        if let [lowest, .., highest] = ratios[..] {
            cells.push(format!("{lowest:.2}–{highest:.2}×"));
        }
        cells
    }
}

fn cpu(used: &Used) -> f64 {
    used.user_seconds + used.system_seconds
}

/// The median of each number of one side; the worst of its codes.
fn typical(rounds: &[Round], side: fn(&Round) -> Used) -> Option<Used> {
    let of = |number: fn(&Used) -> f64| {
        let mut numbers: Vec<f64> = rounds.iter().map(|round| number(&side(round))).collect();
        numbers.sort_by(f64::total_cmp);
        median(&numbers)
    };
    Some(Used {
        exit_code: rounds.iter().map(|round| side(round).exit_code).max()?,
        seconds: of(|used| used.seconds)?,
        user_seconds: of(|used| used.user_seconds)?,
        system_seconds: of(|used| used.system_seconds)?,
        minor_faults: of(|used| used.minor_faults as f64)? as u64,
        peak_rss_bytes: of(|used| used.peak_rss_bytes as f64)? as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHOUT: Used = Used {
        exit_code: 0,
        seconds: 2.0,
        user_seconds: 1.5,
        system_seconds: 0.0,
        minor_faults: 1000,
        peak_rss_bytes: 2 << 20,
    };
    const WITH: Used = Used { seconds: 1.0, minor_faults: 10, peak_rss_bytes: 1 << 20, ..WITHOUT };

    #[test]
    fn both_stand_side_by_side() {
        let round = Round { with_first: false, without: WITHOUT, with: WITH };
        let lines = Comparison::of(vec![round]).unwrap().lines();
        assert_eq!(lines[0], "                without     with  ratio");
        assert_eq!(lines[1], "  wall           2.00 s   1.00 s  0.50×");
        assert_eq!(lines[4], "  CPU, system    0.00 s   0.00 s      -");
        assert_eq!(lines[5], "  minor faults    1,000       10  0.01×");
        assert_eq!(Comparison::of(Vec::new()), None);
    }

    #[test]
    fn several_rounds_give_medians_and_how_far_their_ratios_lie_apart() {
        let slow = |used: Used| Used { seconds: used.seconds * 10.0, ..used };
        let rounds = [(WITHOUT, WITH), (slow(WITHOUT), slow(WITH)), (WITHOUT, WITHOUT)];
        let rounds = rounds.into_iter().map(|(without, with)| Round { with_first: false, without, with });
        let lines = Comparison::of(rounds.collect()).unwrap().lines();
        assert_eq!(lines[0], "                without     with  ratio  over 3 rounds");
        assert_eq!(lines[1], "  wall           2.00 s   2.00 s  0.50×     0.50–1.00×");
    }
}
