//! Runs a program without Lowtide and with it, by turns.

use std::num::NonZeroUsize;

use super::compare::{Comparison, Round, Used};
use super::summary::Summaries;
use super::{Arguments, Prepared};
use crate::child::{Ended, Program};
use crate::{Console, Failure};

/// How a comparison ended.
pub(super) enum Compared {
    Ended {
        /// The last run with Lowtide.
        ended: Ended,
        summaries: Option<Summaries>,
        /// None where no round has both.
        comparison: Option<Comparison>,
    },
    /// The program ends badly without Lowtide too.
    FailsAnyway(Ended),
}

/// Runs it as often as asked for, and no more after a run that ends badly. Who goes second finds files in memory and the
/// machine warm, so that each goes first in its turn.
pub(super) fn run(prepared: &Prepared<'_>, arguments: &Arguments, console: &mut Console) -> Result<Compared, Failure> {
    let count = arguments.rounds.map_or(1, NonZeroUsize::get);
    let mut rounds = Vec::new();
    loop {
        let with_first = rounds.len() % 2 == 1;
        let before = match with_first.then(|| prepared.run()).transpose()? {
            Some((ended, summaries)) if ended.code() != 0 => {
                return Ok(Compared::Ended { ended, summaries, comparison: Comparison::of(rounds) });
            }
            before => before,
        };
        let without = Program::new(&arguments.command).run_to_end()?;
        if without.code() != 0 {
            console.say(format!("not compared: without Lowtide it ended with code {}", without.code()));
            return Ok(Compared::FailsAnyway(without));
        }
        let (ended, summaries) = before.map_or_else(|| prepared.run(), Ok)?;
        rounds.push(Round { with_first, without: Used::from(&without), with: Used::from(&ended) });
        if ended.code() != 0 || rounds.len() == count {
            return Ok(Compared::Ended { ended, summaries, comparison: Comparison::of(rounds) });
        }
    }
}
