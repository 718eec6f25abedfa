//! What is reported at the end of a run: a block about the process that used most memory, a line about the others, and the
//! next command.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use lowtide_core::Bytes;
use lowtide_core::preload::WORTH;

use super::compare::Comparison;
use super::summary::{Summaries, Summary};
use crate::console::show;
use crate::program::Ended;

/// Characters of a command that are worth repeating.
const COMMAND_CHARACTERS: usize = 100;

/// Large allocations from which on a program is likely to repeat itself.
const MANY: u64 = 1000;

/// The block at the end.
pub(super) fn lines(summaries: &Summaries, ended: &Ended) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = summaries.of.first() {
        lines.extend(block(first));
    }
    if !summaries.has(ended.pid) {
        lines.push(without_summary(ended));
    }
    let others = summaries.of.get(1..).unwrap_or_default();
    if let Some(largest) = others.first() {
        let count = show::counted_as(others.len(), "other process", "other processes");
        lines.push(format!("  and {count}, with at most {}", largest.peak()));
    }
    if summaries.unreadable > 0 {
        let count = show::counted_as(summaries.unreadable, "summary", "summaries");
        lines.push(format!("  {count} cannot be read"));
    }
    lines
}

/// Why the program itself left none. Others that left none are not known.
fn without_summary(ended: &Ended) -> String {
    let why = match ended.usage.status.signal() {
        Some(signal) => format!("it was killed by signal {signal}"),
        None => "it cannot be preloaded into, or has no permission to write one".to_owned(),
    };
    format!("lowtide: process {} left no summary: {why}", ended.pid)
}

fn block(summary: &Summary) -> Vec<String> {
    let mut lines = vec![headline(summary)];
    let mut say = |name: &str, text: String| lines.push(format!("  {name:<12} {text}"));
    if let Some(reason) = &summary.stepped_aside {
        say("stepped aside", reason.clone());
    }
    if let Some(text) = faults(summary) {
        say("faults", text);
    }
    let large = match summary.large.allocations {
        0 if summary.large.by == "off" => "the arena is off for it".to_owned(),
        0 if summary.large.by == "slabs" => "large blocks came from slabs by size class: many are replaced".to_owned(),
        0 if summary.large.asked_before_bytes >= WORTH && summary.is_undecided() => {
            format!(
                "large blocks stayed with {}: by the end it was not clear yet what the arena would save",
                summary.below
            )
        }
        0 if summary.large.asked_before_bytes >= WORTH => {
            format!("large blocks stayed with {}: few of their pages are faulted in again", summary.below)
        }
        0 if summary.large.asked_before_bytes > 0 => {
            format!("{} in large blocks, too little for the arena", Bytes::new(summary.large.asked_before_bytes))
        }
        0 => "no large blocks".to_owned(),
        _ => format!("large blocks {} at most", Bytes::new(summary.large.peak_live_bytes)),
    };
    let explicit = match summary.explicit_huge_bytes {
        0 => String::new(),
        bytes => format!(" · and {} in explicit huge pages", Bytes::new(bytes)),
    };
    say("peak", format!("{} resident{explicit} · {large}", summary.peak()));
    if let Some(rate) = summary.hit_rate() {
        let asked = show::thousands((summary.large.hits + summary.large.misses) as usize);
        say("plan", format!("{} of {asked} large allocations hit", percent(rate)));
    }
    if let Some(share) = summary.huge_share() {
        say("huge pages", format!("{} of {}", percent(share), Bytes::new(summary.arena_resident_bytes)));
    }
    if !["", "glibc"].contains(&&*summary.below) {
        say("underlying", summary.below.clone());
    }
    for warning in &summary.warnings {
        say("warning", show::escaped(warning).into_owned());
    }
    lines
}

fn headline(summary: &Summary) -> String {
    let Summary { pid, command, seconds, steps, steps_by, planned_from_step, .. } = summary;
    let by = match &**steps_by {
        "marks" => " marked by the program",
        "period" => " found by their period",
        _ => "",
    };
    let steps = match (steps, planned_from_step) {
        (0, _) => "no steps".to_owned(),
        (_, None) => format!("{}{by}, none planned", show::counted(*steps as usize, "step")),
        (_, Some(from)) => format!("{}{by}, planned from step {from}", show::counted(*steps as usize, "step")),
    };
    format!("lowtide: {}, process {pid} · {steps} · {}", show::name(command), show::seconds(*seconds))
}

fn faults(summary: &Summary) -> Option<String> {
    let count = |number: f64| show::thousands(number.round() as usize);
    let faults = &summary.faults;
    match (faults.per_step_before_plan, faults.per_step_after_plan) {
        (Some(before), Some(after)) => {
            Some(format!("{} a step before the plan, {} after", count(before), count(after)))
        }
        (Some(before), None) if summary.steps > 0 => Some(format!("{} a step", count(before))),
        _ => (faults.total > 0).then(|| format!("{} in all", show::thousands(faults.total as usize))),
    }
}

/// With one decimal; only what is whole reads so.
fn percent(part: f64) -> String {
    format!("{:.1}%", (part * 1000.0).floor() / 10.0)
}

/// The next command to type, of a program that ended well; `flags` are those that were given.
pub(super) fn next(
    summaries: &Summaries,
    comparison: Option<&Comparison>,
    flags: &[OsString],
    command: &[OsString],
) -> String {
    let given: Vec<String> = flags.iter().map(|word| format!(" {}", show::path(Path::new(word)))).collect();
    let (flags, typed) = (given.concat(), typed(command));
    let first = summaries.of.first();
    let without_steps = first.is_some_and(|summary| summary.steps == 0 && summary.large.allocations >= MANY);
    if without_steps {
        return format!(
            "next: mark the steps with `lowtide.step()` (in C, `lowtide_step()`), or `lowtide watch -- {typed}`"
        );
    }
    match comparison {
        Some(_) => format!("next: `lowtide watch -- {typed}` shows memory and faults over time"),
        None => format!("next: `lowtide run --compare{flags} -- {typed}` runs it with and without"),
    }
}

/// The command as it can be typed again, or a word for it where that is long.
fn typed(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| show::path(Path::new(word))).collect();
    let typed = words.join(" ");
    let is_short = typed.chars().count() <= COMMAND_CHARACTERS && !typed.contains(char::is_control);
    if is_short { typed } else { "COMMAND".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::summary::{Faults, Large};
    use super::*;

    fn trained() -> Summary {
        Summary {
            pid: 7,
            command: "python".to_owned(),
            seconds: 12.34,
            steps: 40,
            steps_by: "marks".to_owned(),
            planned_from_step: Some(4),
            faults: Faults { total: 9, per_step_before_plan: Some(196_632.0), per_step_after_plan: Some(0.2) },
            peak_rss_bytes: 900 << 20,
            large: Large { allocations: 5000, hits: 3999, misses: 1, peak_live_bytes: 328 << 20, ..Large::default() },
            huge_page_bytes: 92,
            arena_resident_bytes: 100,
            ..Summary::default()
        }
    }

    #[test]
    fn a_training_reads_as_a_block() {
        assert_eq!(
            block(&trained()),
            [
                "lowtide: python, process 7 · 40 steps marked by the program, planned from step 4 · 12.3 s",
                "  faults       196,632 a step before the plan, 0 after",
                "  peak         900.0 MiB resident · large blocks 328.0 MiB at most",
                "  plan         99.9% of 4,000 large allocations hit",
                "  huge pages   92.0% of 100 B",
            ]
        );
    }

    #[test]
    fn who_served_large_blocks_is_said_where_that_was_not_the_arena() {
        let line = |by: &str, asked: u64| {
            let large = Large { by: by.to_owned(), asked_before_bytes: asked, ..Large::default() };
            block(&Summary { large, below: "glibc".to_owned(), ..Summary::default() }).pop().unwrap()
        };
        assert!(
            line("underlying", WORTH)
                .ends_with("large blocks stayed with glibc: few of their pages are faulted in again")
        );
        assert!(line("slabs", WORTH).ends_with("large blocks came from slabs by size class: many are replaced"));
        assert!(line("underlying", 1 << 20).ends_with("1.0 MiB in large blocks, too little for the arena"));
        let faulted = Summary {
            faults: Faults { total: WORTH / 4096, ..Faults::default() },
            large: Large { by: "underlying".to_owned(), asked_before_bytes: WORTH, ..Large::default() },
            below: "glibc".to_owned(),
            ..Summary::default()
        };
        assert!(block(&faulted).pop().unwrap().ends_with("by the end it was not clear yet what the arena would save"));
        assert!(line("off", 1).ends_with("the arena is off for it"));
        assert!(line("underlying", 0).ends_with("no large blocks"));
    }

    #[test]
    fn a_small_program_is_told_shortly() {
        let summary = Summary { pid: 8, command: "true".to_owned(), peak_rss_bytes: 1 << 20, ..Summary::default() };
        assert_eq!(
            block(&summary),
            ["lowtide: true, process 8 · no steps · 0.0 ms", "  peak         1.0 MiB resident · no large blocks",]
        );
    }

    #[test]
    fn explicit_pages_are_told_beside_what_is_resident() {
        let text = block(&Summary { explicit_huge_bytes: 64 << 20, ..trained() }).join("\n");
        assert!(text.contains("900.0 MiB resident · and 64.0 MiB in explicit huge pages · large blocks"), "{text}");
    }

    #[test]
    fn what_went_wrong_is_told() {
        let summary = Summary {
            stepped_aside: Some("no range of addresses".to_owned()),
            warnings: vec!["one\n".to_owned()],
            ..trained()
        };
        let text = block(&summary).join("\n");
        assert!(text.contains("stepped aside no range") && text.contains("warning      one\\n"), "{text}");
    }

    #[test]
    fn a_command_that_is_long_is_not_repeated() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(typed(&words(&["python", "a b.py"])), "python 'a b.py'");
        assert_eq!(typed(&words(&["python", "-c", &"x".repeat(200)])), "COMMAND");
        assert_eq!(typed(&words(&["python", "-c", "a\nb"])), "COMMAND");
    }
}
