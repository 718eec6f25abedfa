//! A solve in words: the headline first, then what stands behind it.

use lowtide_core::{BufferIndex, Bytes, Pool, Problem};
use lowtide_plan::{Blame, Fits, Stopped};
use lowtide_report::{Ink, Sheet};

use super::Summary;
use crate::console::show;
use crate::console::{Emphasis, width};
use crate::planning::solving::Solved;
use crate::{Console, Failure};

/// Prints the answer and what stands behind it.
pub(super) fn show(
    problem: &Problem,
    solved: &Solved,
    summary: &Summary,
    console: &mut Console,
) -> Result<(), Failure> {
    let emphasis = match solved.outcome.fits {
        Fits::Yes => Emphasis::Strong,
        Fits::No(_) | Fits::Unknown => Emphasis::Bad,
    };
    let answer = console.paint(emphasis, answer(problem, solved, summary));
    console.print(answer)?;
    if let Fits::No(blame) = &solved.outcome.fits {
        for line in blame_lines(problem, blame) {
            console.print(line)?;
        }
    }
    for line in pool_lines(problem, solved) {
        console.print(line)?;
    }
    if let Some(line) = pinned_line(problem) {
        console.print(line)?;
    }
    let details = console.paint(Emphasis::Faint, details(solved, summary));
    console.print(details)
}

/// `122 buffers · found by greedy · 2 threads · 122 units of work`; who found it where something was found.
fn details(solved: &Solved, summary: &Summary) -> String {
    let found = (solved.outcome.fits == Fits::Yes).then(|| format!("found by {}", summary.solver));
    let work = show::thousands(usize::try_from(summary.work).unwrap_or(usize::MAX));
    let parts = [
        Some(show::counted(summary.buffers, "buffer")),
        found,
        Some(show::counted(summary.threads, "thread")),
        Some(format!("{work} units of work")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// How many buffers the input places itself, where it does.
fn pinned_line(problem: &Problem) -> Option<String> {
    let pinned = problem.buffers.iter().filter(|buffer| buffer.pin.is_some()).count();
    let verb = if pinned == 1 { "is" } else { "are" };
    let all = show::counted(problem.buffers.len(), "buffer");
    (pinned > 0).then(|| format!("{} of {all} {verb} pinned", show::thousands(pinned)))
}

/// The answer in one line.
pub(super) fn answer(problem: &Problem, solved: &Solved, summary: &Summary) -> String {
    match &solved.outcome.fits {
        Fits::Yes => headline(summary),
        Fits::No(blame) => refusal(problem, solved, summary, blame),
        Fits::Unknown => not_found(problem, solved, summary),
    }
}

/// `peak 21.0 GiB · lower bound 21.0 GiB · optimal · without reuse 301.4 GiB · 0.4 s`, on as many lines as a terminal needs.
fn headline(summary: &Summary) -> String {
    let parts = headline_parts(summary);
    width().map_or_else(|| parts.join(" · "), |width| Sheet::new(Ink::Unicode, Some(width)).headline(&parts).join("\n"))
}

/// The numbers that matter, as parts of a headline.
pub(crate) fn headline_parts(summary: &Summary) -> Vec<String> {
    let peak = summary.peak.unwrap_or_default();
    let capacity = summary.capacity.map(|capacity| format!("fits in {capacity}"));
    let parts = [
        Some(format!("peak {peak}")),
        Some(format!("lower bound {}", summary.lower_bound)),
        Some(quality(summary, peak)),
        Some(format!("without reuse {}", summary.naive)),
        Some(show::seconds(summary.seconds)),
    ];
    capacity.into_iter().chain(parts.into_iter().flatten()).collect()
}

fn quality(summary: &Summary, peak: Bytes) -> String {
    let ratio = || show::ratio(peak, summary.lower_bound);
    if summary.proved {
        "optimal".to_owned()
    } else if [Stopped::Proved, Stopped::Fits].iter().any(|stopped| summary.stopped == stopped.name()) {
        format!("{}× the bound", ratio())
    } else {
        format!("{}× the bound, not proved optimal (stopped: {})", ratio(), summary.stopped)
    }
}

/// That there is no plan because buffers are pinned over each other.
pub(crate) fn contradiction(problem: &Problem, blame: &Blame) -> String {
    let names: Vec<String> =
        blame.buffers.iter().map(|&buffer| format!("`{}`", show::name(&problem.buffer(buffer).id))).collect();
    let who = if names.is_empty() { String::new() } else { format!(" {}", names.join(" and ")) };
    format!("no plan: buffers{who} are pinned over each other while both are alive")
}

fn refusal(problem: &Problem, solved: &Solved, summary: &Summary, blame: &Blame) -> String {
    let Some(plan) = &solved.outcome.plan else {
        return contradiction(problem, blame);
    };
    if let Some(capacity) = summary.capacity {
        let (needs, over) = (summary.lower_bound, summary.lower_bound.saturating_sub(capacity));
        return format!("does not fit: needs at least {needs}, capacity is {capacity} ({over} over)");
    }
    let pool = blame.buffers.first().map(|&buffer| plan.placement(buffer).pool).unwrap_or_default();
    let Pool { name, capacity, .. } = &problem.pools[pool.get()];
    format!("does not fit: pool `{}` needs more than its {}", show::name(name), capacity.unwrap_or_default())
}

fn not_found(problem: &Problem, solved: &Solved, summary: &Summary) -> String {
    let best = match (summary.capacity, &solved.outcome.plan) {
        (Some(capacity), Some(plan)) => {
            let over = plan.peak().saturating_sub(capacity);
            format!("the best plan takes {}, capacity is {capacity} ({over} over)", plan.peak())
        }
        (_, Some(plan)) => {
            let over = problem.pools.iter().zip(&plan.heights).filter(|(pool, height)| is_over(pool, **height));
            let names: Vec<String> = over.map(|(pool, _)| format!("`{}`", show::name(&pool.name))).collect();
            format!("the best plan takes more than there is of {}", names.join(", "))
        }
        (_, None) => "there is no plan".to_owned(),
    };
    match solved.outcome.stopped {
        Stopped::Work => format!("not found with this much work: {best}; this is not a no (stopped: work)"),
        Stopped::Cancelled | Stopped::Time => {
            format!("not found in time: {best}; this is not a no (stopped: {})", summary.stopped)
        }
        Stopped::Proved | Stopped::Fits | Stopped::Exhausted => {
            format!("not found: nothing is left to try; this is not a no: {best}")
        }
    }
}

fn is_over(pool: &Pool, height: Bytes) -> bool {
    pool.capacity.is_some_and(|capacity| height > capacity)
}

/// Rows of blame that are shown.
const ROWS: usize = 10;

/// The buffers that cannot fit together, the largest first.
fn blame_lines(problem: &Problem, blame: &Blame) -> Vec<String> {
    if let [buffer] = blame.buffers[..]
        && let Some(line) = lone_culprit(problem, buffer)
    {
        return vec![line];
    }
    let mut buffers: Vec<BufferIndex> = blame.buffers.clone();
    buffers.sort_by_key(|&buffer| std::cmp::Reverse(problem.buffer(buffer).size));
    let sum = |buffers: &[BufferIndex]| buffers.iter().map(|&buffer| problem.buffer(buffer).size).sum::<Bytes>();
    let certainty = if blame.irreducible {
        "none of them can be left out"
    } else {
        "there was no time to see which of them can be left out"
    };
    let count = show::counted(buffers.len(), "buffer");
    let mut lines = vec![format!("{count} cannot fit together, {} in all; {certainty}:", sum(&buffers))];
    let (shown, rest) = buffers.split_at(buffers.len().min(ROWS));
    let names: Vec<String> = shown.iter().map(|&buffer| show::name(&problem.buffer(buffer).id)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, &buffer) in names.iter().zip(shown) {
        let buffer = problem.buffer(buffer);
        lines.push(format!("  {name:width$}  {:>10}  {}", buffer.size.to_string(), buffer.lifetime));
    }
    if !rest.is_empty() {
        lines.push(format!("  +{} smaller, {} in all", show::thousands(rest.len()), sum(rest)));
    }
    lines
}

/// Why one buffer does not fit whatever else there is; nothing where that is not plain from its size and its pin.
fn lone_culprit(problem: &Problem, buffer: BufferIndex) -> Option<String> {
    let buffer = problem.buffer(buffer);
    let capacity = problem.pools[buffer.pool.get()].capacity?;
    let name = show::name(&buffer.id);
    match buffer.pin {
        _ if buffer.size > capacity => {
            Some(format!("buffer `{name}` alone is larger than the capacity: {} of {capacity}", buffer.size))
        }
        Some(pin) if pin + buffer.size > capacity => Some(format!(
            "buffer `{name}` alone is pinned beyond the capacity: from byte {} to {}, of {}",
            pin.get(),
            (pin + buffer.size).get(),
            capacity.get()
        )),
        _ => None,
    }
}

/// How full each pool is where there are several, and what spilled.
fn pool_lines(problem: &Problem, solved: &Solved) -> Vec<String> {
    let Some(plan) = solved.outcome.plan.as_ref().filter(|_| problem.pools.len() > 1) else { return Vec::new() };
    let mut lines: Vec<String> = problem
        .pools
        .iter()
        .zip(&plan.heights)
        .map(|(pool, height)| {
            let limit = pool.capacity.map(|capacity| format!(" of {capacity}")).unwrap_or_default();
            format!("pool `{}`: {height}{limit}", show::name(&pool.name))
        })
        .collect();
    let spilled = &solved.outcome.spilled;
    if !spilled.is_empty() {
        let bytes: Bytes = spilled.iter().map(|&buffer| problem.buffer(buffer).size).sum();
        lines.push(format!("{} spilled, {bytes} in all", show::counted(spilled.len(), "buffer")));
    }
    lines
}
