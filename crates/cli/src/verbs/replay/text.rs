//! A replay in words: the headline, a table of the allocators, and which of them serves the run best.

use lowtide_core::Bytes;

use super::outcome::{Numbers, OutOfMemory};
use super::{Choice, Stage};
use crate::atomic_file::Target;
use crate::console::Emphasis;
use crate::console::{columns, show};
use crate::{Console, Failure};

/// Prints what was played.
pub(super) fn compared(stage: &Stage<'_>, played: &[Numbers], console: &mut Console) -> Result<(), Failure> {
    let Some(best) = best(played) else { return Ok(()) };
    let sheet = stage.arguments.view.sheet();
    let emphasis = if played.iter().all(Numbers::fits) { Emphasis::Strong } else { Emphasis::Bad };
    for line in sheet.headline(&headline(stage, played, best)) {
        let line = console.paint(emphasis, line);
        console.print(line)?;
    }
    let mut lines = vec![sheet.headline(&about(best)).join("\n"), String::new()];
    lines.extend(table(played));
    lines.push(String::new());
    lines.extend(played.iter().filter_map(|numbers| Some(refusal(numbers.strategy, numbers.out_of_memory.as_ref()?))));
    if played.len() > 1 {
        lines.push(verdict(played, best));
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.iter().try_for_each(|line| console.print(sheet.written(line)))
}

/// What was written, and the command to type next.
pub(super) fn next(stage: &Stage<'_>, played: &[Numbers], target: Option<&Target>) -> String {
    let wrote = target.map(|target| format!("wrote {}; ", show::path(target.path()))).unwrap_or_default();
    let next = if stage.arguments.strategy != Choice::All {
        format!("`{}` compares it with others", stage.typed(""))
    } else if played.iter().all(|numbers| !numbers.fits()) {
        format!("`lowtide explain {}` says what would lower the peak", stage.source.typed())
    } else {
        format!("`{}` finds PyTorch's best setting for it", stage.typed(" --sweep"))
    };
    format!("{wrote}next: {next}")
}

fn best(played: &[Numbers]) -> Option<&Numbers> {
    played.iter().min_by_key(|numbers| numbers.rank())
}

fn headline(stage: &Stage<'_>, played: &[Numbers], best: &Numbers) -> Vec<String> {
    let limit = stage
        .arguments
        .device
        .device_memory
        .as_ref()
        .map(|memory| format!(" in {}", memory.value()))
        .unwrap_or_default();
    if let [one] = played {
        let answer = match &one.out_of_memory {
            Some(_) => format!("{} does not fit{limit}", one.strategy),
            None => format!("{} reserves {} for {}", one.strategy, one.peak_reserved, one.peak_requested),
        };
        let wasted = one.fits().then(|| format!("{} wasted", percent(one.fragmentation)));
        let room = (one.fits() && !limit.is_empty()).then(|| format!("it fits{limit}"));
        return [Some(answer), wasted, room].into_iter().flatten().collect();
    }
    let fitting = played.iter().filter(|numbers| numbers.fits()).count();
    if fitting == 0 {
        return vec![format!("no allocator fits{limit}"), format!("{} alive at once", best.bound)];
    }
    let some = if fitting < played.len() {
        Some(format!("{fitting} of {} allocators fit{limit}", played.len()))
    } else {
        (!limit.is_empty()).then(|| format!("all {fitting} fit{limit}"))
    };
    let least = format!("{} reserves {}", best.strategy, best.peak_reserved);
    let beside = played.iter().find(|numbers| numbers.strategy == "caching" && numbers.fits() && *numbers != best);
    let usual = caching_name(stage);
    let beside = beside.map(|caching| format!("{usual} {}", caching.peak_reserved));
    let alive = format!("{} alive at once", best.peak_requested);
    [some, Some(alive), Some(least), beside].into_iter().flatten().collect()
}

/// What to call PyTorch's native allocator: its default, unless the user gave it settings.
fn caching_name(stage: &Stage<'_>) -> &'static str {
    if stage.arguments.alloc_conf.to_string().is_empty() { "PyTorch's default" } else { "PyTorch's native one as set" }
}

fn about(numbers: &Numbers) -> Vec<String> {
    let devices = (numbers.devices.len() > 1).then(|| show::counted(numbers.devices.len(), "device"));
    let steps = show::counted(numbers.steps, "step");
    let parts = [
        devices,
        Some(if numbers.fits() { steps } else { format!("{steps} closed before that") }),
        Some(show::counted(numbers.operations as usize, "operation")),
    ];
    parts.into_iter().flatten().collect()
}

const HEADER: [&str; 7] = ["allocator", "reserved", "wasted", "driver calls", "from step 3", "cost", "waits"];
const LAST: &str = "per op";

/// A row per allocator.
fn table(played: &[Numbers]) -> Vec<String> {
    let row = |numbers: &Numbers| {
        vec![
            numbers.strategy.to_owned(),
            if numbers.fits() { numbers.peak_reserved.to_string() } else { "no room".to_owned() },
            if numbers.fits() { percent(numbers.fragmentation) } else { "-".to_owned() },
            count(numbers.driver_calls),
            numbers.driver_calls_after_warmup.map_or_else(|| "-".to_owned(), count),
            show::seconds(numbers.driver_ns as f64 / 1e9),
            count(numbers.waits),
        ]
    };
    let mut cells = vec![HEADER.map(str::to_owned).to_vec()];
    cells.extend(played.iter().map(row));
    let last = played.iter().map(|numbers| format!("{:.0} ns", numbers.ns_per_op));
    let last: Vec<String> = [LAST.to_owned()].into_iter().chain(last).collect();
    columns::aligned_before(&cells, &last)
}

fn refusal(strategy: &str, refused: &OutOfMemory) -> String {
    let OutOfMemory { row, event, block, bytes, step, round, requested, reserved, device, .. } = refused;
    let place = match row {
        Some(row) => format!("row {}", count(*row)),
        None => format!("event {}", count(*event as u64)),
    };
    let step = step.map_or_else(|| "behind the last step".to_owned(), |step| format!("step {step}"));
    let round = if *round > 1 { format!(", round {round}") } else { String::new() };
    let device = device.map(|device| format!(" on device {device}")).unwrap_or_default();
    let block = show::name(block);
    format!(
        "{strategy} has no room for `{block}` ({bytes}){device}: {place}, {step}{round}\n  \
         {requested} were alive at this point and {reserved} reserved"
    )
}

/// Which allocator serves the run best, and why.
fn verdict(played: &[Numbers], best: &Numbers) -> String {
    if !best.fits() {
        return format!("no allocator serves this run; at least {} are needed", best.bound);
    }
    let others = played.iter().filter(|numbers| numbers.fits() && *numbers != best);
    let Some(next) = others.min_by_key(|numbers| numbers.rank()) else {
        return format!("Best: {}. No other fits.", best.strategy);
    };
    let more = next.peak_reserved.saturating_sub(best.peak_reserved);
    let calls = |numbers: &Numbers| count(numbers.driver_calls);
    let why = if more > Bytes::ZERO {
        format!("It reserves least; {} reserves {more} more.", next.strategy)
    } else if next.driver_ns > best.driver_ns {
        let calls = format!("{} driver calls against {}", calls(next), calls(best));
        format!("{} reserves the same but makes {calls}.", capitalised(next.strategy))
    } else {
        format!("{} is as good.", capitalised(next.strategy))
    };
    format!("Best: {}. {why}", best.strategy)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// `0.4%`; two decimals below a tenth, so that little is told from nothing.
pub(super) fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    if percent.abs() < 0.095 && percent != 0.0 { format!("{percent:.3}%") } else { format!("{percent:.1}%") }
}

pub(super) fn count(number: u64) -> String {
    show::thousands(number as usize)
}
