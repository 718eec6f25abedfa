//! What the layout costs beyond the bytes alive: a plan instead of the recorded allocator, and no alignment instead of
//! the one asked for.

use lowtide_core::{Align, Bytes, Change, Origin, Problem, Remedy, Usage};

use crate::options::Options;
use crate::solve::{SolveError, solve};

/// What the plan of `usage` needs, where it has one.
pub(super) fn at_hand(usage: &Usage) -> Option<Bytes> {
    let plan = usage.layouts.iter().rev().find(|layout| layout.origin == Origin::Planned);
    plan.map(|layout| layout.plan.peak())
}

/// The same, with a plan made here where there is none and a remedy depends on it.
pub(super) fn planned(usage: &Usage, options: &Options) -> Result<Option<Bytes>, SolveError> {
    match at_hand(usage) {
        None if is_aligned(&usage.problem) || !usage.reserved.is_empty() => solved(&usage.problem, options),
        at_hand => Ok(at_hand),
    }
}

fn solved(problem: &Problem, options: &Options) -> Result<Option<Bytes>, SolveError> {
    Ok(solve(problem, options, &|_| {})?.plan.map(|plan| plan.peak()))
}

/// The least that a plan needs, where that is found.
fn proved(problem: &Problem, options: &Options) -> Result<Option<Bytes>, SolveError> {
    Ok(solve(problem, options, &|_| {})?.plan.filter(|plan| plan.proved).map(|plan| plan.peak()))
}

fn is_aligned(problem: &Problem) -> bool {
    problem.buffers.iter().any(|buffer| buffer.align > Align::ONE)
}

/// What the plan saves beside the recorded allocator, and what it would save without alignment.
pub(super) fn remedies(usage: &Usage, planned: Option<Bytes>, options: &Options) -> Result<Vec<Remedy>, SolveError> {
    let Some(planned) = planned else { return Ok(Vec::new()) };
    let reserved = usage.reserved.iter().map(|&(_, bytes)| bytes).max().unwrap_or_default();
    let mut remedies = Vec::from_iter(remedy(Change::Plan, reserved, planned));
    if is_aligned(&usage.problem) {
        let mut problem = usage.problem.clone();
        for buffer in &mut problem.buffers {
            buffer.align = Align::ONE;
        }
        // Two searches that merely ended would differ by chance.
        let unaligned = solve(&problem, options, &|_| {})?.plan.filter(|plan| plan.proved);
        let is_proved = usage
            .layouts
            .iter()
            .any(|layout| layout.origin == Origin::Planned && layout.plan.proved && layout.plan.peak() == planned);
        let aligned = if is_proved { Some(planned) } else { proved(&usage.problem, options)? };
        remedies.extend(
            aligned
                .zip(unaligned)
                .and_then(|(before, after)| remedy(Change::Alignment { align: Align::ONE }, before, after.peak())),
        );
    }
    Ok(remedies)
}

fn remedy(change: Change, before: Bytes, after: Bytes) -> Option<Remedy> {
    (after < before).then(|| Remedy { change, saves: before - after, peak: after })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use lowtide_core::{Buffer, Layout, Lifetime, Measure, Plan};

    /// Three buffers of five bytes at multiples of eight, all alive at once.
    fn usage() -> Usage {
        let life = Lifetime { lower: 0, upper: 4 };
        let mut problem = Problem::new(["a", "b", "c"].map(|id| Buffer::new(id, life, Bytes::new(5))).into());
        problem.buffers.iter_mut().for_each(|buffer| buffer.align = Align::new(8).unwrap());
        Usage { reserved: vec![(0, Bytes::new(8)), (2, Bytes::new(64))], ..Usage::of(problem) }
    }

    #[test]
    fn a_plan_is_compared_with_what_was_reserved_and_with_one_that_needs_no_alignment() {
        let (usage, never) = (usage(), AtomicBool::new(false));
        let options = Options::new(&never);
        let planned = planned(&usage, &options).unwrap();
        assert_eq!(planned, Some(Bytes::new(21)));
        let remedies = remedies(&usage, planned, &options).unwrap();
        let told: Vec<_> = remedies.iter().map(|r| (r.change.measure(), r.saves.get(), r.peak.get())).collect();
        assert_eq!(told, [(Measure::Reserved, 43, 21), (Measure::Planned, 6, 15)]);
    }

    #[test]
    fn a_plan_at_hand_is_taken_and_none_is_made_for_nothing() {
        let (mut usage, never) = (usage(), AtomicBool::new(false));
        let options = Options::new(&never);
        let heights = vec![Bytes::new(24)];
        let plan = Plan { placements: Vec::new(), heights, lower_bound: Bytes::ZERO, proved: false };
        usage.layouts = vec![Layout { origin: Origin::Planned, plan }];
        assert_eq!(planned(&usage, &options).unwrap(), Some(Bytes::new(24)));
        let plain = Usage::of(Problem::new(Vec::new()));
        assert_eq!(planned(&plain, &options).unwrap(), None);
    }
}
