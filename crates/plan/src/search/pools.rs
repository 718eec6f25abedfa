//! A whole problem: its pools one after the other, in each the persistent zone below the transient one, and what
//! does not fit handed on to the pool it spills to.

use lowtide_core::{Bytes, Class, Placement, Plan, PoolIndex, Problem, ProblemError};

use crate::outcome::{Solver, Stopped};
use crate::prepare::rigid::{self, Rigid, Ties};
use crate::prepare::strip::Strip;
use crate::search::budget::Budget;
use crate::search::schedule::{self, Aim, Solved};
use crate::search::spill;

/// Where everything goes under one choice of ties.
pub(crate) struct Attempt {
    pub plan: Plan,
    /// What no plan under these ties can go below, pool by pool.
    pub bounds: Vec<Bytes>,
    pub solver: Solver,
    pub stopped: Stopped,
    pub spilled: bool,
}

impl Attempt {
    /// Whether every pool is within its capacity.
    pub fn fits(&self, problem: &Problem) -> bool {
        let within =
            |(pool, height): (&lowtide_core::Pool, &Bytes)| pool.capacity.is_none_or(|capacity| *height <= capacity);
        problem.pools.iter().zip(&self.plan.heights).all(within)
    }
}

/// Plans every pool.
pub(crate) fn attempt(
    problem: &Problem,
    ties: &Ties,
    budget: &mut Budget,
    watch: &dyn Fn(u64, u64),
) -> Result<Attempt, ProblemError> {
    let bodies = rigid::bodies(problem, ties)?;
    let mut pool_of: Vec<PoolIndex> = bodies.iter().map(|rigid| problem.buffer(rigid.members[0].0).pool).collect();
    let mut offsets = vec![0; bodies.len()];
    let mut attempt = Attempt {
        plan: Plan { placements: Vec::new(), heights: Vec::new(), lower_bound: Bytes::ZERO, proved: false },
        bounds: vec![Bytes::ZERO; problem.pools.len()],
        solver: Solver::Online,
        stopped: Stopped::Proved,
        spilled: false,
    };
    let mut tallest = 0;
    for (turn, pool) in spill_order(problem).into_iter().enumerate() {
        let mut zone = Zones { problem, bodies: &bodies, pool, mine: Vec::new() };
        zone.mine = (0..bodies.len()).filter(|&body| pool_of[body] == pool).collect();
        let planned = budget.share(problem.pools.len() - turn, |budget| zone.plan(budget, watch));
        for (&body, placed) in zone.mine.iter().zip(&planned.placed) {
            match (*placed, problem.pools[pool.get()].spill) {
                (Some(offset), _) => offsets[body] = offset,
                (None, Some(target)) => {
                    pool_of[body] = target;
                    attempt.spilled = true;
                }
                (None, None) => {}
            }
        }
        let native = |&body: &usize| problem.buffer(bodies[body].members[0].0).pool == pool;
        attempt.bounds[pool.get()] = if zone.mine.iter().all(native) && problem.pools[pool.get()].spill.is_none() {
            Bytes::new(planned.bound)
        } else {
            // Another choice of what spills might need less here.
            bound_of_pool(problem, &bodies, pool)
        };
        attempt.stopped = worse(attempt.stopped, planned.stopped);
        if planned.height >= tallest {
            (tallest, attempt.solver) = (planned.height, planned.solver);
        }
    }
    attempt.plan = assemble(problem, &bodies, &pool_of, &offsets);
    attempt.plan.lower_bound = attempt.bounds.iter().copied().sum::<Bytes>().max(alive_at_once(&bodies));
    attempt.plan.proved = attempt.plan.peak() == attempt.plan.lower_bound;
    Ok(attempt)
}

/// What all pools need together, as far as it is known without solving.
pub(crate) fn lower_bound(problem: &Problem, bodies: &[Rigid]) -> Bytes {
    let pools = (0..problem.pools.len()).map(|pool| bound_of_pool(problem, bodies, PoolIndex::new(pool)));
    pools.sum::<Bytes>().max(alive_at_once(bodies))
}

/// What a pool needs for the bodies that belong to it, whatever its plan; nothing is sure of one that they may leave.
fn bound_of_pool(problem: &Problem, bodies: &[Rigid], pool: PoolIndex) -> Bytes {
    if problem.pools[pool.get()].spill.is_some() {
        return Bytes::ZERO;
    }
    let own = bodies.iter().filter(|rigid| problem.buffer(rigid.members[0].0).pool == pool);
    Bytes::new(Strip::new(own.map(|rigid| rigid.body.clone()).collect(), 0).total_bound())
}

/// The most bytes alive at once in all pools together, which they need whoever lies where.
fn alive_at_once(bodies: &[Rigid]) -> Bytes {
    let pieces = bodies.iter().flat_map(|rigid| &rigid.body.pieces);
    let mut steps: Vec<(i64, bool, u64)> =
        pieces.flat_map(|piece| [(piece.lower, true, piece.size), (piece.upper, false, piece.size)]).collect();
    steps.sort_unstable();
    let (mut load, mut most) = (0, 0);
    for (_, begins, size) in steps {
        load = if begins { load + size } else { load - size };
        most = most.max(load);
    }
    Bytes::new(most)
}

/// Offsets of buffers from those of bodies.
fn assemble(problem: &Problem, bodies: &[Rigid], pool_of: &[PoolIndex], offsets: &[u64]) -> Plan {
    let nowhere = Placement { pool: PoolIndex::default(), offset: Bytes::ZERO };
    let mut placements = vec![nowhere; problem.buffers.len()];
    let mut heights = vec![Bytes::ZERO; problem.pools.len()];
    for ((rigid, &pool), &offset) in bodies.iter().zip(pool_of).zip(offsets) {
        for &(buffer, rise) in &rigid.members {
            let offset = Bytes::new(offset + rise);
            placements[buffer.get()] = Placement { pool, offset };
            let height = &mut heights[pool.get()];
            *height = (offset + problem.buffer(buffer).size).max(*height);
        }
    }
    Plan { placements, heights, lower_bound: Bytes::ZERO, proved: false }
}

/// Pools such that each comes before the one it spills to.
fn spill_order(problem: &Problem) -> Vec<PoolIndex> {
    let mut depth = vec![0_usize; problem.pools.len()];
    for start in 0..problem.pools.len() {
        let (mut hops, mut at) = (0, problem.pools[start].spill);
        while let Some(pool) = at {
            hops += 1;
            depth[pool.get()] = depth[pool.get()].max(hops);
            at = problem.pools[pool.get()].spill;
        }
    }
    let mut order: Vec<PoolIndex> = (0..problem.pools.len()).map(PoolIndex::new).collect();
    order.sort_by_key(|pool| depth[pool.get()]);
    order
}

fn worse(a: Stopped, b: Stopped) -> Stopped {
    if a == Stopped::Proved { b } else { a }
}

/// The two zones of one pool.
struct Zones<'a> {
    problem: &'a Problem,
    bodies: &'a [Rigid],
    pool: PoolIndex,
    /// Bodies that belong to this pool.
    mine: Vec<usize>,
}

/// What became of a pool.
struct Planned {
    /// An offset for each body of the pool, or none where it must spill.
    placed: Vec<Option<u64>>,
    height: u64,
    bound: u64,
    solver: Solver,
    stopped: Stopped,
}

impl Zones<'_> {
    fn is_persistent(&self, body: usize) -> bool {
        self.problem.buffer(self.bodies[body].members[0].0).class == Class::Persistent
    }

    fn takes_bytes(&self, body: usize) -> bool {
        !self.bodies[body].body.pieces.is_empty()
    }

    fn is_pinned(&self, body: usize) -> bool {
        self.bodies[body].body.pin.is_some()
    }

    /// The places, among the bodies of this pool, of those for which `is` holds.
    fn places(&self, is: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.mine.len()).filter(|&at| is(self.mine[at])).collect()
    }

    fn plan(&self, budget: &mut Budget, watch: &dyn Fn(u64, u64)) -> Planned {
        let mut planned = Planned {
            placed: vec![None; self.mine.len()],
            height: 0,
            bound: 0,
            solver: Solver::Online,
            stopped: Stopped::Proved,
        };
        for at in self.places(|body| !self.takes_bytes(body)) {
            let body = &self.bodies[self.mine[at]].body;
            let offset = body.pin.unwrap_or(0);
            planned.placed[at] = Some(offset);
            planned.height = planned.height.max(offset + body.size);
        }
        let weightless = planned.height;
        let low = self.places(|body| self.takes_bytes(body) && (self.is_persistent(body) || self.is_pinned(body)));
        let high = self.places(|body| self.takes_bytes(body) && (!self.is_persistent(body) || self.is_pinned(body)));
        let all = self.places(|body| self.takes_bytes(body));
        let has_both = low.iter().any(|&at| !self.is_pinned(self.mine[at]))
            && high.iter().any(|&at| !self.is_pinned(self.mine[at]));
        if !has_both {
            let zone = self.strip(&all, 0);
            planned.bound = self.zone(&all, &zone, self.top_aim(&zone), budget, watch, &mut planned);
            planned.bound = planned.bound.max(zone.total_bound()).max(weightless);
            return planned;
        }
        let low_strip = self.strip(&low, 0);
        let low_bound =
            budget.share(2, |budget| self.zone(&low, &low_strip, Aim::Lowest(0), budget, watch, &mut planned));
        let floor = self.floor_above(&low, &planned);
        let zone = self.strip(&high, floor);
        let bound = self.zone(&high, &zone, self.top_aim(&zone), budget, watch, &mut planned);
        // Where the lower zone may yet be lower, the upper one may begin lower: only the load of both is sure.
        let sure = if floor <= low_bound { bound } else { low_bound };
        planned.bound = sure.max(self.strip(&all, 0).total_bound()).max(weightless);
        planned
    }

    /// Where the zone above the persistent bodies begins.
    fn floor_above(&self, low: &[usize], planned: &Planned) -> u64 {
        let end = |&at: &usize| {
            let body = &self.bodies[self.mine[at]].body;
            planned.placed[at].filter(|_| body.pin.is_none()).map(|offset| offset + body.size)
        };
        low.iter().filter_map(end).max().unwrap_or(0)
    }

    fn strip(&self, members: &[usize], floor: u64) -> Strip {
        Strip::new(members.iter().map(|&at| self.bodies[self.mine[at]].body.clone()).collect(), floor)
    }

    /// What is asked of the zone on top: to fit the capacity, or to be as low as what is alive and pinned allows.
    fn top_aim(&self, strip: &Strip) -> Aim {
        let (total, pool) = (strip.total_bound(), &self.problem.pools[self.pool.get()]);
        match pool.capacity.map(Bytes::get) {
            // Not worth a search: it cannot be.
            Some(capacity) if total > capacity && pool.spill.is_none() => Aim::Lowest(u64::MAX),
            Some(capacity) => Aim::Below(capacity),
            None => Aim::Lowest(total),
        }
    }

    /// Plans the bodies of one zone, spilling what does not fit where the pool allows it, and returns what the zone
    /// cannot end below.
    fn zone(
        &self,
        members: &[usize],
        strip: &Strip,
        aim: Aim,
        budget: &mut Budget,
        watch: &dyn Fn(u64, u64),
        planned: &mut Planned,
    ) -> u64 {
        let pool = &self.problem.pools[self.pool.get()];
        let ceiling = pool.capacity.map(Bytes::get);
        let shares = if pool.spill.is_some() { 4 } else { 1 };
        let Solved { offsets, height, mut bound, solver, stopped } =
            budget.share(shares, |budget| schedule::solve(strip, aim, budget, watch));
        planned.solver = solver;
        planned.stopped = worse(planned.stopped, stopped);
        let spills = ceiling.filter(|&ceiling| pool.spill.is_some() && height > ceiling);
        let placed: Vec<Option<u64>> = match spills {
            Some(ceiling) => budget.share(2, |budget| spill::choose(strip, ceiling, budget)),
            None => offsets.into_iter().map(Some).collect(),
        };
        if spills.is_some() {
            // The bound was for everything; of what stayed nothing is known but that it fits.
            bound = 0;
        }
        for (&at, offset) in members.iter().zip(placed) {
            planned.placed[at] = offset;
            if let Some(offset) = offset {
                planned.height = planned.height.max(offset + self.bodies[self.mine[at]].body.size);
            }
        }
        bound
    }
}
