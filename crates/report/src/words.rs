//! An explanation in sentences: what a change is, said so that somebody can do it.

use lowtide_core::{
    Absence, Bond, BufferIndex, Bytes, Change, Family, Late, Lateness, Measure, Release, Remedy, Usage,
};

use crate::{counted, line, thousands};

/// What `remedy` asks for, in a sentence without the bytes that it saves.
pub fn remedy(usage: &Usage, remedy: &Remedy) -> String {
    match &remedy.change {
        Change::InPlace { pairs } => match pairs.first() {
            Some(&(input, output)) => format!(
                "in place: write {} over {}, which goes once that is there{}",
                buffer(usage, output),
                buffer(usage, input),
                in_other_steps(pairs.len() - 1)
            ),
            None => "in place".to_owned(),
        },
        Change::Order { pairs } => match pairs.first() {
            Some(&(gone, made)) => format!(
                "order: let go of {} before {} is made, if that does not need it, instead of shortly after{}",
                buffer(usage, gone),
                buffer(usage, made),
                in_other_steps(pairs.len() - 1)
            ),
            None => "order".to_owned(),
        },
        Change::Release(release) => sooner(usage, release),
        Change::Split { family, parts } => {
            format!("split: make {} in {parts} parts, one after the other", self::family(usage, family))
        }
        Change::Swap { family, absences, per_step } => swap(usage, family, absences, *per_step),
        Change::Alignment { align } => format!("alignment: make every offset a multiple of {align} at most"),
        Change::Plan => "layout: serve the plan instead of what the recorded allocator did".to_owned(),
    }
}

/// Which peak the bytes that a remedy saves are of, where it is not that of what is alive.
pub fn measure(change: &Change) -> &'static str {
    match change.measure() {
        Measure::Live => "",
        Measure::Planned => " of the plan",
        Measure::Reserved => " of what is reserved",
    }
}

/// Why something was late, in a sentence.
pub fn late(usage: &Usage, late: &Late) -> String {
    let Release { family, why, .. } = &late.release;
    let (was, it) = if family.alive.len() == 1 { ("was", "it") } else { ("were", "them") };
    let what = self::family(usage, family);
    match *why {
        Lateness::NotDone { freed } => {
            let lag = lag(usage, family, freed);
            format!("the program had let go of {what}; the device was done with {it} {lag} later")
        }
        Lateness::Replaced { by } => {
            let successor = by.map(|by| format!(" {}", id(usage, by))).unwrap_or_default();
            format!("{what} {was} kept from one step until the next had made a successor{successor}")
        }
        Lateness::Leak { per_step } => format!("each step leaves {per_step} more behind: {what}"),
        Lateness::JustAfter { events } => {
            format!("{what} went {} after that moment", counted(events as usize, "event"))
        }
    }
}

/// Letting go sooner, as something to do.
fn sooner(usage: &Usage, Release { family, why, ends }: &Release) -> String {
    let what = self::family(usage, family);
    match *why {
        Lateness::NotDone { freed } => {
            let lag = lag(usage, family, freed);
            format!("wait: have the device done with {what} when the program lets go, not {lag} later; fewer in flight")
        }
        Lateness::Replaced { .. } => {
            let (it, was) = if family.alive.len() == 1 { ("it", "it was") } else { ("them", "they were") };
            let at = ends.iter().find(|ending| family.alive.contains(&ending.buffer)).map_or(0, |ending| ending.at);
            let when = if usage.steps.iter().any(|end| end.at == at) {
                format!("with the step; {was} kept until the next had made a successor")
            } else {
                format!("by event {}, if nothing needs {it} after; {was} kept until replaced", thousands_of(at))
            };
            format!("release: let go of {what} {when}")
        }
        Lateness::Leak { per_step } => format!("leak: each step leaves {per_step} more behind; let go of {what}"),
        Lateness::JustAfter { events } => {
            format!("release: let go of {what} {} sooner", counted(events as usize + 1, "event"))
        }
    }
}

/// How long the device took after the program had let go.
fn lag(usage: &Usage, family: &Family, freed: i64) -> String {
    let end = family.alive.first().map_or(freed, |&buffer| usage.problem.buffer(buffer).lifetime.upper);
    between(usage, freed, end)
}

fn swap(usage: &Usage, family: &Family, absences: &[Absence], per_step: Bytes) -> String {
    let what = self::family(usage, family);
    let away = match absences {
        [] => String::new(),
        [first, ..] => {
            let here = absences.iter().find(|absence| family.alive.first() == Some(&absence.buffer)).unwrap_or(first);
            let Absence { window, .. } = here;
            let length = between(usage, window.lower, window.upper);
            format!(" for {length}, from event {} to {}", thousands_of(window.lower), thousands_of(window.upper))
        }
    };
    let often = if usage.steps.is_empty() { "in all" } else { "a step" };
    format!("swap: move {what} elsewhere{away}; {per_step} {often} out and back")
}

fn thousands_of(time: i64) -> String {
    let sign = if time < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(time.unsigned_abs() as usize))
}

/// How long it is from one event to another: a time where the clock is known.
fn between(usage: &Usage, start: i64, end: i64) -> String {
    match &usage.clock {
        Some(clock) => duration(clock.at(end).saturating_sub(clock.at(start))),
        None => counted(end.abs_diff(start) as usize, "event"),
    }
}

/// `1.24 s`, `3.1 ms`, `12.0 µs`.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds {
        1_000_000_000.. => format!("{:.2} s", time / 1e9),
        1_000_000.. => format!("{:.1} ms", time / 1e6),
        _ => format!("{:.1} µs", time / 1e3),
    }
}

fn in_other_steps(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and so {} more", counted(others, "time")) }
}

/// A family as a noun.
fn family(usage: &Usage, family: &Family) -> String {
    let Some(&first) = family.alive.first() else { return "nothing".to_owned() };
    let size = usage.problem.buffer(first).size;
    let place = place(usage, first).map(|line| format!(" from {line}")).unwrap_or_default();
    let count = family.alive.len();
    let total: Bytes = family.alive.iter().map(|&buffer| usage.problem.buffer(buffer).size).sum();
    let others = match family.elsewhere.len() {
        0 => String::new(),
        others => format!(
            " and {} alike {}",
            thousands(others),
            if usage.steps.is_empty() { "at other times" } else { "in other steps" }
        ),
    };
    match family.bond {
        _ if count == 1 => format!("{}{others}", buffer(usage, first)),
        Bond::Tensor | Bond::Alike => format!("the {} of {size}{place}{others}", thousands(count)),
        Bond::Site => format!("all {}{place} ({total}){others}", thousands(count)),
        Bond::Category => {
            let category = usage.label(first).category.map_or("", |category| usage.text(category));
            format!("all {} of category {category} ({total}){others}", thousands(count))
        }
        Bond::Together => format!("{} that are there together ({total}){others}", counted(count, "buffer")),
    }
}

/// A buffer as a noun: its name, its size, and where it was asked for.
pub(crate) fn buffer(usage: &Usage, buffer: BufferIndex) -> String {
    let place = place(usage, buffer).map(|line| format!(", {line}")).unwrap_or_default();
    format!("{} ({}{place})", id(usage, buffer), usage.problem.buffer(buffer).size)
}

/// A buffer's name, on one line and not too long.
pub(crate) fn id(usage: &Usage, buffer: BufferIndex) -> String {
    const MOST: usize = 40;
    let name = &usage.problem.buffer(buffer).id;
    let safe = name.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    let shown: String = safe.clone().take(MOST).collect();
    if safe.count() > MOST { format!("`{shown}…`") } else { format!("`{shown}`") }
}

/// The line that asked for a buffer, where it is known.
pub(crate) fn place(usage: &Usage, buffer: BufferIndex) -> Option<String> {
    let site = usage.text(usage.label(buffer).site?);
    Some(line(site).chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect())
}
