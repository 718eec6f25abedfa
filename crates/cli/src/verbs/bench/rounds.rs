//! The order of a benchmark of allocators: each in turn on every program, and again from the start, so that what else the
//! machine does meets all of them alike.

use std::num::NonZeroUsize;

use super::contestant::Contestant;
use super::report::Skipped;
use crate::Console;
use crate::console::progress::Counting;
use crate::planning::solving::was_interrupted;

/// Calls `measure` for the place of each program of `names` with each contestant, `runs` times; ends early after Ctrl-C. What
/// failed is reported, and not tried again.
pub(super) fn run(
    (names, runs): (&[&str], NonZeroUsize),
    contestants: &[Contestant],
    console: &mut Console,
    mut measure: impl FnMut(usize, &Contestant) -> Result<(), String>,
) -> Vec<Skipped> {
    let progress = Counting::new("measuring");
    let mut failed: Vec<Skipped> = Vec::new();
    let all = runs.get() * names.len() * contestants.len();
    let mut done = 0;
    for round in 0..runs.get() {
        for (program, name) in names.iter().enumerate() {
            for place in 0..contestants.len() {
                if was_interrupted() {
                    return failed;
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
                    Err(_) if was_interrupted() => return failed,
                    Err(reason) => {
                        console.say(format!("FAILED {label}: {reason}"));
                        failed.push(Skipped { name: label, reason });
                    }
                }
            }
        }
    }
    failed
}
