//! An explanation in sentences: what a change is, said so that somebody can do it.

use lowtide_core::{
    Absence, Bond, BufferIndex, Bytes, Change, Family, Late, Lateness, Measure, Release, Remedy, Usage,
};

use crate::{counted, line, thousands};

/// What `remedy` asks for, in a sentence without the bytes that it saves; `moment` is the event that is explained.
pub fn remedy(usage: &Usage, moment: i64, remedy: &Remedy) -> String {
    match &remedy.change {
        Change::InPlace { pairs } => of_pairs(usage, pairs, |input, output| {
            format!("in place: write {output} over {input}, which is not needed any more")
        }),
        Change::Order { pairs } => of_pairs(usage, pairs, |gone, made| {
            format!(
                "order: free {gone} before {made} is allocated instead of shortly after, where the second does not need the first"
            )
        }),
        Change::Release(release) => sooner(usage, release),
        Change::Split { family, parts } => {
            format!("split: make {} in {parts} parts, one after the other", noun(usage, family))
        }
        Change::Swap { family, absences, per_step } => swap(usage, moment, family, absences, *per_step),
        Change::Alignment { .. } => "alignment: do without it".to_owned(),
        Change::Plan => {
            "layout: serve the plan instead of the recorded allocator's layout (`lowtide run --device`; PyTorch's \
                         `expandable_segments:True` saves part of it)"
                .to_owned()
        }
    }
}

fn of_pairs(usage: &Usage, pairs: &[(BufferIndex, BufferIndex)], say: impl Fn(String, String) -> String) -> String {
    let Some(&(first, second)) = pairs.first() else { return String::new() };
    let others = match pairs.len() - 1 {
        0 => String::new(),
        1 => "; the same for one similar pair".to_owned(),
        others => format!("; the same for {} similar pairs", thousands(others)),
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

/// What was freed too late, why, and what that costs, in a sentence.
pub(crate) fn late(usage: &Usage, Late { release, saves, .. }: &Late) -> String {
    let Release { family, why, .. } = release;
    let what = noun(usage, family);
    let raises = match *saves {
        Bytes::ZERO => "does not raise the peak, because another moment is as high".to_owned(),
        saves => format!("raises the peak by {saves}"),
    };
    match *why {
        Lateness::NotDone { freed } => {
            let lag = lag(usage, family, freed);
            format!("The device used {what} for {lag} after the program freed {}, which {raises}", pronoun(family))
        }
        Lateness::Replaced { by } => {
            let successor =
                by.map_or_else(|| "a successor".to_owned(), |by| format!("the successor {}", id(usage, by)));
            let until = if usage.steps.is_empty() { "until" } else { "from one step until the next had made" };
            let made = if usage.steps.is_empty() { " was made" } else { "" };
            format!("Keeping {what} {until} {successor}{made} {raises}")
        }
        Lateness::Leak { per_step } => format!("Each step leaves {per_step} more behind, which {raises}: {what}"),
        Lateness::JustAfter { events } => {
            let earlier = format!("Freeing {what} {} earlier", counted(events as usize, "event"));
            match *saves {
                Bytes::ZERO => format!("{earlier} would not lower the peak, because another moment is as high"),
                saves => format!("{earlier} would lower the peak by {saves}"),
            }
        }
    }
}

/// Freeing earlier, as something to do.
fn sooner(usage: &Usage, Release { family, why, .. }: &Release) -> String {
    let (what, it) = (noun(usage, family), pronoun(family));
    match *why {
        Lateness::NotDone { freed } => {
            let lag = lag(usage, family, freed);
            format!(
                "wait: keep fewer in flight, so that the device is done with {what} when the program frees {it}, not {lag} later"
            )
        }
        Lateness::Replaced { .. } => {
            let when = if usage.steps.is_empty() { "before a successor is made" } else { "when its step ends" };
            format!("release: free {what} {when}, for example with `del`, instead of keeping {it} until then")
        }
        Lateness::Leak { per_step } => format!("leak: free {what}; each step leaves {per_step} more behind"),
        Lateness::JustAfter { events } => {
            format!("release: free {what} {} earlier", counted(events as usize, "event"))
        }
    }
}

fn pronoun(family: &Family) -> &'static str {
    if family.alive.len() == 1 && family.elsewhere.is_empty() { "it" } else { "them" }
}

/// How long the device took after the program had let go.
fn lag(usage: &Usage, family: &Family, freed: i64) -> String {
    let end = family.alive.first().map_or(freed, |&buffer| usage.problem.buffer(buffer).lifetime.upper);
    between(usage, freed, end)
}

fn swap(usage: &Usage, moment: i64, family: &Family, absences: &[Absence], per_step: Bytes) -> String {
    let what = noun(usage, family);
    let step = usage.step_at(moment);
    let mut here = absences.iter().filter(|absence| usage.step_at(absence.interval.lower) == step);
    let Some(first) = here.clone().find(|absence| absence.interval.lower <= moment).or_else(|| here.next()) else {
        return format!("swap: move {what} to the host and back; {per_step} each way");
    };
    let in_step = || absences.iter().filter(|absence| usage.step_at(absence.interval.lower) == step);
    let is_one = in_step().all(|absence| absence.interval == first.interval);
    let from = in_step().map(|absence| absence.interval.lower).min().unwrap_or(first.interval.lower);
    let to = in_step().map(|absence| absence.interval.upper).max().unwrap_or(first.interval.upper);
    let when = format!("from event {} to {}", event(from), event(to));
    let length = between(usage, from, to);
    let away = if is_one {
        format!("{when}, {length}")
    } else {
        format!("each for a part of the time {when}, {length} in all")
    };
    let often = if usage.steps.is_empty() { "in all" } else { "a step" };
    let doubt = if usage.clock.is_none() { "; without times, nobody knows whether a link is fast enough" } else { "" };
    format!("swap: move {what} to the host and back, {away}; {per_step} {often} each way{doubt}")
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
fn noun(usage: &Usage, family: &Family) -> String {
    let Some(&first) = family.alive.first() else { return "nothing".to_owned() };
    let size = usage.problem.buffer(first).size;
    let place = place(usage, first).map(|line| format!(" from {line}")).unwrap_or_default();
    let count = family.alive.len();
    let total: Bytes = family.alive.iter().map(|&buffer| usage.problem.buffer(buffer).size).sum();
    let all = if count == 2 { "both buffers".to_owned() } else { format!("all {} buffers", thousands(count)) };
    let alive = match family.bond {
        _ if count == 1 => buffer(usage, first),
        Bond::Tensor | Bond::Alike => format!("{all} of {size}{place}"),
        Bond::Site => format!("{all}{place} ({total})"),
        Bond::Category => {
            let category = usage.label(first).category.map_or("", |category| usage.text(category));
            format!("{all} of category {category} ({total})")
        }
        Bond::Together => format!("{} that are alive together ({total})", counted(count, "buffer")),
    };
    match family.elsewhere.len() {
        0 => alive,
        1 => format!("{alive} and one similar buffer"),
        others => format!("{alive} and {} similar buffers", thousands(others)),
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
