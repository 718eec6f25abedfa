//! Runs a program without Lowtide and with it, by turns.

use super::compare::{Comparison, Round, Used};
use super::{Outcome, Prepared};
use crate::Failure;
use crate::console::show;
use crate::program::{Ended, KeptBack};

/// Runs it `count` times each way, and no more after a run that ends badly. Who goes second finds files in memory and the
/// machine warm, so that each goes first in its turn.
pub(super) fn run(prepared: &mut Prepared, count: usize, signals: &KeptBack) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut rounds: Vec<Round> = Vec::new();
    while rounds.len() < count && outcome.stopped.is_none() {
        let with_first = rounds.len() % 2 == 1;
        let (mut without, mut with) = (None, None);
        for has_lowtide in [with_first, !with_first] {
            let ended = if has_lowtide {
                let run = prepared.run(signals)?;
                let ended = run.ended;
                with = Some(Used::from(&ended));
                outcome.run = Some(run);
                ended
            } else {
                let ended = prepared.run_without(signals)?;
                without = Some(Used::from(&ended));
                ended
            };
            if ended.code() != 0 {
                outcome.failed_without = (!has_lowtide).then_some(ended);
                outcome.stopped = Some(badly(&ended, has_lowtide));
                break;
            }
        }
        let without = without.filter(|used| used.exit_code == 0);
        rounds.extend(without.zip(with).map(|(without, with)| Round { with_first, without, with }));
    }
    outcome.stopped = outcome.stopped.map(|why| match rounds.len() {
        0 => format!("not compared: {why}"),
        done => format!("stopped after {} of {count}: {why}", show::counted(done, "round")),
    });
    outcome.comparison = Comparison::of(rounds);
    Ok(outcome)
}

fn badly(ended: &Ended, has_lowtide: bool) -> String {
    let way = if has_lowtide { "with" } else { "without" };
    format!("{way} Lowtide it ended with code {}", ended.code())
}
