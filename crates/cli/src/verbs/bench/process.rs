//! One process under an allocator, which measures itself and prints its numbers as a line of JSON.

use std::process::{Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contestant::Contestant;
use crate::console::show;

/// How Lowtide did in a process.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Served {
    pub steps: u64,
    pub steps_by: String,
    pub planned_from_step: Option<u64>,
    pub hit_rate: Option<f64>,
    pub warnings: Vec<String>,
}

/// The numbers that `command` prints under the allocator, and how Lowtide did where that is the allocator; or why there are
/// none.
pub(super) fn run<T: DeserializeOwned>(
    command: &mut Command,
    contestant: &Contestant,
) -> Result<(T, Option<Served>), String> {
    contestant.under(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let pid = child.id();
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, last_line(&output.stderr)));
    }
    let line = last_line(&output.stdout);
    let numbers = serde_json::from_str(&line).map_err(|_| format!("it printed no numbers: {}", show::name(&line)))?;
    let lowtide = contestant.summary(pid).map(|summary| Served {
        steps: summary.steps,
        hit_rate: summary.hit_rate(),
        steps_by: summary.steps_by,
        planned_from_step: summary.planned_from_step,
        warnings: summary.stepped_aside.into_iter().chain(summary.warnings).collect(),
    });
    Ok((numbers, lowtide))
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    line.trim().chars().take(2000).collect()
}
