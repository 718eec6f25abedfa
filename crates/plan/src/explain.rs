//! Why memory is as high as it is: who is alive at a moment, what could have gone before it, and which single change
//! would lower the peak most.
//!
//! `account` says what buffers hold when and `curve` how high that is, also after an `edit`. `families` finds what a
//! change reaches: the same tensor of every step, and all of its make. `late` looks for causes; `neighbours`, `split`,
//! `swap` and `layout` for remedies, of which `choice` picks those worth telling.

mod account;
mod analysis;
mod choice;
mod curve;
mod edit;
mod families;
mod late;
mod layout;
mod neighbours;
mod split;
mod swap;
#[cfg(test)]
mod tests;

use lowtide_core::{Alive, Bytes, Explanation, Lifetime, Moment, Problem, ProblemError, StepIndex, Usage};

use crate::options::Options;
use crate::recorded::lifetimes::StepError;
use crate::solve::SolveError;
use account::Account;
use analysis::{Analysis, CANDIDATES};
use curve::Curve;
use families::Families;

/// Which moment to explain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// The highest of all.
    Peak,
    /// This event.
    Event(i64),
    /// The highest of this step.
    Step(StepIndex),
}

/// Why a moment cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The problem makes no sense; mend it.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// Nothing is known of such a step.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The event lies outside the time that is known.
    #[error("there is no event {wanted}; {}", if .first < .end {
        format!("events go from {} to {}", .first, .end - 1)
    } else {
        "nothing is ever alive".to_owned()
    })]
    NoSuchEvent {
        /// The event asked for.
        wanted: i64,
        /// The first at which something is alive.
        first: i64,
        /// The first after all at which something is alive.
        end: i64,
    },
    /// A plan that a remedy depends on could not be made.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// Explains why memory is as high as it is at a moment, and what would lower it.
///
/// The bytes alive are counted as [`lower_bound`](crate::lower_bound) counts them, alignment and fragmentation aside,
/// in all pools together: aliases once, nothing in gaps, and of in-place pairs only what could not share. Every saving
/// is exact: the highest moment of the [scope](Explanation::scope) before the change less the highest one after it,
/// each wherever it lies. Changes reach the same tensor in every step, or every tensor of one make.
///
/// Remedies are looked for among the 200 families of each bond that hold most at the moment, and nothing is told of less
/// than a thousandth of the bytes alive. What a layout costs is told for the peak of all only: it needs up to two
/// solves, each within `options`, where something was reserved or is aligned. The rest takes time about linear in the
/// buffers.
pub fn explain(usage: &Usage, at: At, options: &Options) -> Result<Explanation, ExplainError> {
    usage.problem.check()?;
    let span = Lifetime { lower: usage.span().start, upper: usage.span().end };
    let scope = scope(usage, at, span)?;
    let account = Account::new(&usage.problem)?;
    let curve = Curve::new(&account.deltas());
    let moment = highest_moment(usage, &curve, scope);
    let alive = alive_at(&account, moment.time);
    let families = Families::new(usage);
    let present = alive.iter().map(|alive| alive.buffer).collect();
    let analysis = Analysis {
        usage,
        account: &account,
        curve: &curve,
        families,
        scope,
        moment: moment.time,
        height: moment.live.get(),
        alive: &alive,
        present,
    };
    let late = late::late(&analysis);
    let mut remedies = late::remedies(&analysis, &late);
    remedies.extend(neighbours::in_place(&analysis));
    remedies.extend(neighbours::order(&analysis));
    let families = analysis.families.of_alive(&alive, CANDIDATES);
    remedies.extend(split::splits(&analysis, &families));
    remedies.extend(swap::swaps(&analysis, &families));
    let mut planned = layout::at_hand(usage);
    if at == At::Peak {
        planned = layout::planned(usage, options)?;
        remedies.extend(layout::remedies(usage, planned, options)?);
    }
    let alike = analysis.families.alike(&alive);
    let (peak, remedies) = (highest_moment(usage, &curve, span), choice::chosen(usage, remedies));
    Ok(Explanation { moment, peak, scope, planned, alive, alike, late, remedies })
}

/// The bytes alive, from each of these times on until the next, counted as [`lower_bound`](crate::lower_bound) does.
pub fn live(problem: &Problem) -> Result<Vec<(i64, Bytes)>, ProblemError> {
    problem.check()?;
    let mut level = 0_i64;
    let mut points: Vec<(i64, Bytes)> = Vec::new();
    for moment in Account::new(problem)?.deltas().chunk_by(|a, b| a.0 == b.0) {
        let change: i64 = moment.iter().map(|&(_, change)| change).sum();
        level += change;
        if change != 0 {
            points.push((moment[0].0, Bytes::new(level.max(0) as u64)));
        }
    }
    Ok(points)
}

/// The time that savings are counted over.
fn scope(usage: &Usage, at: At, span: Lifetime) -> Result<Lifetime, ExplainError> {
    match at {
        At::Peak => Ok(span),
        At::Event(wanted) if (span.lower..span.upper).contains(&wanted) => {
            Ok(Lifetime { lower: wanted, upper: wanted + 1 })
        }
        At::Event(wanted) => Err(ExplainError::NoSuchEvent { wanted, first: span.lower, end: span.upper }),
        At::Step(wanted) => {
            let place = usage.steps.iter().position(|end| end.step == wanted).ok_or_else(|| StepError::NoSuchStep {
                wanted,
                first: usage.steps.first().map(|end| end.step),
                last: usage.steps.last().map(|end| end.step),
            })?;
            let end = usage.steps[place].at;
            let begin = place.checked_sub(1).map_or(span.lower, |last| usage.steps[last].at.saturating_add(1));
            Ok(Lifetime { lower: begin.min(end), upper: end.saturating_add(1) })
        }
    }
}

/// The first of the highest moments of `scope`.
fn highest_moment(usage: &Usage, curve: &Curve, scope: Lifetime) -> Moment {
    let live = curve.highest(scope);
    let first = live.checked_sub(1).and_then(|below| curve.first_above(scope, below));
    let time = first.unwrap_or(scope.lower);
    Moment { time, step: usage.step_at(time), live: Bytes::new(live) }
}

fn alive_at(account: &Account, time: i64) -> Vec<Alive> {
    let alive = account.alive_at(time).into_iter();
    let mut alive: Vec<Alive> = alive.map(|(buffer, bytes)| Alive { buffer, bytes: Bytes::new(bytes) }).collect();
    alive.sort_by_key(|alive| {
        (std::cmp::Reverse((alive.bytes, account.problem.buffer(alive.buffer).size)), alive.buffer)
    });
    alive
}
