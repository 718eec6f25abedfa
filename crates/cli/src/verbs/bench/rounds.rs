//! The order of a benchmark of allocators: each in turn on every program, and again from the start, so that what else the
//! machine does meets all of them alike.

use std::ops::Range;

use super::contestant::Contestant;
use super::report::Skipped;
use crate::Console;
use crate::console::progress::Counting;
use crate::planning::solving::was_interrupted;

/// Calls `measure` for the place of each program of `names` with each contestant, in each of the rounds; ends early after Ctrl-C. What
/// failed is reported, and not tried again.
pub(super) fn run(
    (names, rounds): (&[&str], Range<usize>),
    contestants: &[Contestant],
    failed: &mut Vec<Skipped>,
    console: &mut Console,
    mut measure: impl FnMut(usize, &Contestant) -> Result<(), String>,
) {
    let progress = Counting::new("measuring");
    let all = rounds.len() * names.len() * contestants.len();
    let mut done = 0;
    for round in rounds {
        for (program, name) in names.iter().enumerate() {
            for place in 0..contestants.len() {
                if was_interrupted() {
                    return;
                }
                // Nobody is always the first after a pause, or behind the same neighbour.
                let contestant = &contestants[(place + round) % contestants.len()];
                let label = format!("{name} on {}", contestant.name());
                progress.say(&label);
                progress.show(done, all as u64);
                done += 1;
                if failed.iter().any(|failure| failure.name == label) {
                    continue;
                }
                match measure(program, contestant) {
                    Ok(()) => {}
                    Err(_) if was_interrupted() => return,
                    Err(reason) => {
                        console.say(format!("FAILED {label}: {reason}"));
                        failed.push(Skipped { name: label, reason });
                    }
                }
            }
        }
    }
}
