//! The way from a problem to an outcome: pins, ties, sharing, pools, the bound, and the judge at the end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lowtide_core::random::Random;
use lowtide_core::{Align, BufferIndex, Bytes, Placement, Plan, Pool, PoolIndex, Problem, ProblemError};

use crate::judge::blame;
use crate::judge::validate::{Verdict, validate};
use crate::options::Options;
use crate::outcome::{Blame, Fits, Outcome, Solver, Stopped};
use crate::prepare::rigid::{self, Ties};
use crate::prepare::share::Sharing;
use crate::search::budget::Budget;
use crate::search::pools::{self, Attempt};

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The problem makes no sense; mend it.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A solver made a plan that does not hold. It was not returned; report it.
    #[error("a plan was found that does not hold ({}); this is a fault of Lowtide", .0.name())]
    InvalidPlan(Verdict),
}

/// How far a solve has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The best height of what is being solved.
    pub height: Bytes,
    /// What it cannot go below.
    pub lower_bound: Bytes,
}

/// Plans `problem`: the best plan that the options allow, validated, with its bound, and whether it fits.
///
/// `watch` hears of progress, from the calling thread. Takes about the time limit; where something cannot fit, finding
/// whom to blame may take as long again. Memory is proportional to the problem.
pub fn solve(problem: &Problem, options: &Options, watch: &dyn Fn(Progress)) -> Result<Outcome, SolveError> {
    problem.check()?;
    let mut budget = Budget::new(options);
    let ties = Ties::new(problem)?;
    check_bodies(problem, &ties)?;
    if let Some((a, b)) = pins_in_conflict(problem, &ties)? {
        return Ok(impossible(a, b));
    }
    let hear = |height: u64, bound: u64| {
        watch(Progress { height: Bytes::new(height), lower_bound: Bytes::new(bound) });
    };
    let attempt = best_attempt(problem, &ties, &mut budget, &hear)?;
    let verdict = validate(problem, &attempt.plan);
    if !matches!(verdict, Verdict::Valid | Verdict::OverCapacity(_)) {
        return Err(SolveError::InvalidPlan(verdict));
    }
    let fits = judge_fit(problem, &attempt, &mut budget);
    let stopped = match (&fits, attempt.stopped) {
        (Fits::No(_), _) => Stopped::Proved,
        (Fits::Yes, _) if attempt.plan.proved => Stopped::Proved,
        (Fits::Yes, _) if has_capacity(problem) => Stopped::Fits,
        (_, Stopped::Proved) => Stopped::Exhausted,
        (_, stopped) => stopped,
    };
    let spilled = problem
        .indices()
        .filter(|&buffer| attempt.plan.placement(buffer).pool != problem.buffer(buffer).pool)
        .collect();
    Ok(Outcome { plan: Some(attempt.plan), fits, spilled, solver: attempt.solver, stopped, work: budget.work })
}

fn has_capacity(problem: &Problem) -> bool {
    problem.pools.iter().any(|pool| pool.capacity.is_some())
}

/// Members of one body may not take each other's bytes, whatever ties them.
fn check_bodies(problem: &Problem, ties: &Ties) -> Result<(), ProblemError> {
    if problem.aliases.is_empty() && problem.contiguous.is_empty() {
        return Ok(());
    }
    for rigid in rigid::bodies(problem, ties)?.iter().filter(|rigid| rigid.members.len() > 2) {
        let placed = rigid.members.iter().map(|&(buffer, rise)| (buffer, rise + rigid.body.pin.unwrap_or(0)));
        let why = match validate_some(problem, placed) {
            Verdict::Overlap(..) => "it puts buffers over each other while both are alive",
            Verdict::NotContiguous(..) | Verdict::Misaligned(_) => "their alignments cannot all hold",
            _ => continue,
        };
        let what = format!("what ties buffer `{}` to others", problem.buffer(rigid.members[0].0).id);
        return Err(ProblemError::Contradiction { what, why: why.to_owned() });
    }
    Ok(())
}

fn pins_in_conflict(problem: &Problem, ties: &Ties) -> Result<Option<(BufferIndex, BufferIndex)>, ProblemError> {
    if problem.buffers.iter().all(|buffer| buffer.pin.is_none()) {
        return Ok(None);
    }
    let bodies = rigid::bodies(problem, ties)?;
    let placed = bodies.iter().flat_map(|rigid| {
        let pin = rigid.body.pin;
        rigid.members.iter().filter_map(move |&(buffer, rise)| Some((buffer, pin? + rise)))
    });
    Ok(match validate_some(problem, placed) {
        Verdict::Overlap(a, b) => Some((a, b)),
        _ => None,
    })
}

/// The verdict on some of the buffers alone, with indices of the whole problem.
fn validate_some(problem: &Problem, placed: impl Iterator<Item = (BufferIndex, u64)>) -> Verdict {
    let (buffers, offsets): (Vec<BufferIndex>, Vec<u64>) = placed.unzip();
    let part = problem.restricted(&buffers);
    let placements = part
        .buffers
        .iter()
        .zip(&offsets)
        .map(|(buffer, &offset)| Placement { pool: buffer.pool, offset: Bytes::new(offset) })
        .collect();
    let heights = vec![Bytes::ZERO; part.pools.len()];
    let plan = Plan { placements, heights, lower_bound: Bytes::ZERO, proved: false };
    match validate(&part, &plan) {
        Verdict::Overlap(a, b) => Verdict::Overlap(buffers[a.get()], buffers[b.get()]),
        other => other,
    }
}

fn impossible(a: BufferIndex, b: BufferIndex) -> Outcome {
    Outcome {
        plan: None,
        fits: Fits::No(Blame { buffers: vec![a, b], irreducible: true }),
        spilled: Vec::new(),
        solver: Solver::Exact,
        stopped: Stopped::Proved,
        work: 0,
    }
}

/// Tries ways to let in-place pairs share, all of them first, and keeps the best.
fn best_attempt(
    problem: &Problem,
    ties: &Ties,
    budget: &mut Budget,
    hear: &dyn Fn(u64, u64),
) -> Result<Attempt, ProblemError> {
    if problem.may_share.is_empty() {
        return pools::attempt(problem, ties, budget, hear);
    }
    let sharing = Sharing::new(problem);
    let (bounds, bound) = sharing.bounds(ties)?;
    let mut random = Random::new(budget.options.seed);
    let mut best: Option<Attempt> = None;
    for round in 0.. {
        let tied = match round {
            0 => sharing.tied(ties, || false),
            1 => ties.clone(),
            _ => sharing.sampled(ties, 1.0 / f64::from(round), &mut random),
        };
        let attempt = budget.share(4, |budget| pools::attempt(problem, &tied, budget, hear))?;
        let key = |attempt: &Attempt| (!attempt.fits(problem), attempt.spilled, attempt.plan.peak());
        if best.as_ref().is_none_or(|best| key(&attempt) < key(best)) {
            best = Some(attempt);
        }
        let Some(best) = &mut best else { continue };
        best.plan.lower_bound = bound;
        best.bounds.clone_from(&bounds);
        best.plan.proved = best.plan.peak() == bound;
        let settled = best.plan.proved || has_capacity(problem) && best.fits(problem);
        if settled {
            best.stopped = Stopped::Proved;
        } else if let Some(stopped) = budget.spent() {
            best.stopped = stopped;
        } else if round < ROUNDS_OF_SHARING {
            continue;
        } else {
            best.stopped = Stopped::Exhausted;
        }
        break;
    }
    match best {
        Some(best) => Ok(best),
        None => pools::attempt(problem, ties, budget, hear),
    }
}

/// Choices of pairs after which no better one is expected.
const ROUNDS_OF_SHARING: u32 = 64;

/// Whether the plan is within the capacities, and whom to blame where none can be.
fn judge_fit(problem: &Problem, attempt: &Attempt, budget: &mut Budget) -> Fits {
    if attempt.fits(problem) {
        return Fits::Yes;
    }
    if let Some(buffer) = problem.indices().find(|&buffer| fits_nowhere(problem, buffer)) {
        return Fits::No(Blame { buffers: vec![buffer], irreducible: true });
    }
    // Where buffers may go elsewhere, another choice of them might have fitted.
    let spills = |pool: PoolIndex| {
        problem.pools[pool.get()].spill.is_some() || problem.pools.iter().any(|other| other.spill == Some(pool))
    };
    let too_small = |&pool: &PoolIndex| {
        let capacity = problem.pools[pool.get()].capacity;
        capacity.is_some_and(|capacity| attempt.bounds[pool.get()] > capacity) && !spills(pool)
    };
    match (0..problem.pools.len()).map(PoolIndex::new).find(too_small) {
        Some(pool) => Fits::No(blame_pool(problem, pool, &attempt.plan, budget)),
        None => Fits::Unknown,
    }
}

/// Whether a buffer ends beyond its pool's capacity where it is pinned, or is larger than every pool it may lie in.
fn fits_nowhere(problem: &Problem, index: BufferIndex) -> bool {
    let buffer = problem.buffer(index);
    let exceeds = |pool: &Pool, end: Bytes| pool.capacity.is_some_and(|capacity| end > capacity);
    if let Some(pin) = buffer.pin {
        return exceeds(&problem.pools[buffer.pool.get()], pin + buffer.size);
    }
    let chain = std::iter::successors(Some(buffer.pool), |pool| problem.pools[pool.get()].spill);
    chain.map(|pool| &problem.pools[pool.get()]).all(|pool| exceeds(pool, buffer.size))
}

fn blame_pool(problem: &Problem, pool: PoolIndex, plan: &Plan, budget: &mut Budget) -> Blame {
    let capacity = problem.pools[pool.get()].capacity.unwrap_or_default();
    let mut inside: Vec<BufferIndex> =
        problem.indices().filter(|&buffer| plan.placement(buffer).pool == pool).collect();
    let plain = problem.aliases.is_empty() && problem.may_share.is_empty() && problem.contiguous.is_empty();
    let bare = |&index: &BufferIndex| {
        let buffer = problem.buffer(index);
        buffer.gaps.is_empty() && buffer.pin.is_none()
    };
    if let Some(large) = inside.iter().copied().find(|&buffer| problem.buffer(buffer).size > capacity) {
        return Blame { buffers: vec![large], irreducible: true };
    }
    let plain = plain && inside.iter().all(bare);
    if plain && let Some(mut moment) = blame::overfull_moment(problem, &inside, capacity) {
        moment.sort_unstable();
        if inside.iter().all(|&buffer| problem.buffer(buffer).align == Align::ONE) {
            return Blame { buffers: moment, irreducible: true };
        }
        // With alignments, fewer of them may already be too many.
        inside = moment;
    }
    let end = budget.options.deadline();
    let cancel = budget.options.cancel;
    let late = || cancel.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
    blame::shrink(inside, |some| fits_alone(problem, pool, some, budget), late)
}

/// What each question may take that is asked to find whom to blame.
const WORK_PER_QUESTION: u64 = 1_000_000;
const TIME_PER_QUESTION: Duration = Duration::from_millis(200);

/// Whether some buffers of a pool fit it by themselves; `None` where that cannot be told soon.
fn fits_alone(problem: &Problem, pool: PoolIndex, some: &[BufferIndex], budget: &mut Budget) -> Option<bool> {
    let mut part = problem.restricted(some);
    for buffer in &mut part.buffers {
        buffer.pool = PoolIndex::default();
    }
    part.pools = vec![Pool { spill: None, ..problem.pools[pool.get()].clone() }];
    let ties = Ties::new(&part).ok()?;
    let attempt = budget
        .aside(WORK_PER_QUESTION, TIME_PER_QUESTION, |budget| best_attempt(&part, &ties, budget, &|_, _| {}))
        .ok()?;
    if attempt.fits(&part) {
        return Some(true);
    }
    (attempt.bounds[0] > part.pools[0].capacity?).then_some(false)
}

/// What `problem` cannot go below, without solving it.
pub fn lower_bound(problem: &Problem) -> Result<Bytes, ProblemError> {
    problem.check()?;
    let ties = Ties::new(problem)?;
    if !problem.may_share.is_empty() {
        return Ok(Sharing::new(problem).bounds(&ties)?.1);
    }
    Ok(pools::lower_bound(problem, &rigid::bodies(problem, &ties)?))
}
