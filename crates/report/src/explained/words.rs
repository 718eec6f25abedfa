//! An explanation in sentences: what a change is, said so that somebody can do it.

use lowtide_core::{
    Absence, Bond, BufferIndex, Bytes, Change, Family, Late, Lateness, Measure, Release, Remedy, Usage,
};

use crate::{counted, line, thousands};

/// What `remedy` asks for, in a sentence without the bytes that it saves; `moment` is the event that is explained.
pub fn remedy(usage: &Usage, moment: i64, remedy: &Remedy) -> String {
    match &remedy.change {
        Change::InPlace { pairs } => of_pairs(usage, pairs, |input, output| {
            format!("in place: write {output} over {input}, which goes once that is there")
        }),
        Change::Order { pairs } => of_pairs(usage, pairs, |gone, made| {
            format!("order: let go of {gone} before {made} is made, if that does not need it, instead of shortly after")
        }),
        Change::Release(release) => sooner(usage, release),
        Change::Split { family, parts } => {
            format!("split: make {} in {parts} parts, one after the other", self::family(usage, family))
        }
        Change::Swap { family, absences, per_step } => swap(usage, moment, family, absences, *per_step),
        Change::Alignment { .. } => "alignment: do without it".to_owned(),
        Change::Plan => "layout: serve the plan instead of what the recorded allocator did (`lowtide run --device`; \
                         PyTorch's `expandable_segments:True` wins part of it back)"
            .to_owned(),
    }
}

fn of_pairs(usage: &Usage, pairs: &[(BufferIndex, BufferIndex)], say: impl Fn(String, String) -> String) -> String {
    let Some(&(first, second)) = pairs.first() else { return String::new() };
    let others = match pairs.len() - 1 {
        0 => String::new(),
        others => format!(", and so {} more", counted(others, "time")),
    };
    say(buffer(usage, first), buffer(usage, second)) + &others
}

/// Which peak the bytes that a remedy saves are of, where it is not that of what is alive.
pub fn measure(change: &Change) -> &'static str {
    match change.measure() {
        Measure::Live => "",
        Measure::Planned => " of the plan",
        Measure::Reserved => " of what is reserved",
    }
}

/// Why something was late and what that cost, in a sentence.
pub(crate) fn late_with_cost(usage: &Usage, late: &Late) -> String {
    let cost = if late.saves > Bytes::ZERO {
        format!("at a cost of {}", late.saves)
    } else {
        "at no cost, because another moment is as high".to_owned()
    };
    format!("{} alive there {cost}: {}", late.bytes, self::late(usage, late))
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
            let until = if usage.steps.is_empty() { "until" } else { "from one step until the next had made" };
            format!("{what} {was} kept {until} a successor{successor}")
        }
        Lateness::Leak { per_step } => format!("each step leaves {per_step} more behind: {what}"),
        Lateness::JustAfter { events } => {
            format!("{what} went {} after that moment", counted(events as usize, "event"))
        }
    }
}

/// Letting go sooner, as something to do.
fn sooner(usage: &Usage, Release { family, why, .. }: &Release) -> String {
    let what = self::family(usage, family);
    match *why {
        Lateness::NotDone { freed } => {
            let lag = lag(usage, family, freed);
            format!("wait: have the device done with {what} when the program lets go, not {lag} later; fewer in flight")
        }
        Lateness::Replaced { .. } => {
            let was = if family.alive.len() == 1 { "it was" } else { "they were" };
            let when = if usage.steps.is_empty() { "before a successor is made" } else { "when its step ends" };
            format!("release: let go of {what} {when}, for example with `del`; {was} kept until replaced")
        }
        Lateness::Leak { per_step } => format!("leak: each step leaves {per_step} more behind; let go of {what}"),
        Lateness::JustAfter { .. } => format!("release: let go of {what} sooner"),
    }
}

/// How long the device took after the program had let go.
fn lag(usage: &Usage, family: &Family, freed: i64) -> String {
    let end = family.alive.first().map_or(freed, |&buffer| usage.problem.buffer(buffer).lifetime.upper);
    between(usage, freed, end)
}

fn swap(usage: &Usage, moment: i64, family: &Family, absences: &[Absence], per_step: Bytes) -> String {
    let what = self::family(usage, family);
    let step = usage.step_at(moment);
    let mut here = absences.iter().filter(|absence| usage.step_at(absence.window.lower) == step);
    let Some(first) = here.clone().find(|absence| absence.window.lower <= moment).or_else(|| here.next()) else {
        return format!("swap: move {what} to the host and back; {per_step} out and back");
    };
    let in_step = || absences.iter().filter(|absence| usage.step_at(absence.window.lower) == step);
    let is_one = in_step().all(|absence| absence.window == first.window);
    let from = in_step().map(|absence| absence.window.lower).min().unwrap_or(first.window.lower);
    let to = in_step().map(|absence| absence.window.upper).max().unwrap_or(first.window.upper);
    let when = format!("from event {} to {}", event(from), event(to));
    let length = between(usage, from, to);
    let away = if is_one { format!("{when}, {length}") } else { format!("each for a while {when}, {length} in all") };
    let often = if usage.steps.is_empty() { "in all" } else { "a step" };
    format!("swap: move {what} to the host and back, {away}; {per_step} {often} each way")
}

/// An event's number.
pub(crate) fn event(time: i64) -> String {
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

/// A family as a noun.
fn family(usage: &Usage, family: &Family) -> String {
    let Some(&first) = family.alive.first() else { return "nothing".to_owned() };
    let size = usage.problem.buffer(first).size;
    let place = place(usage, first).map(|line| format!(" from {line}")).unwrap_or_default();
    let count = family.alive.len();
    let total: Bytes = family.alive.iter().map(|&buffer| usage.problem.buffer(buffer).size).sum();
    let others = match family.elsewhere.len() {
        0 => String::new(),
        others => format!(" and {} alike", thousands(others)),
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
