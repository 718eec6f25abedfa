//! The rules of a plan written down a second time, as plainly as possible: event by event and pair by pair, and a
//! search over every offset that shares nothing with the solvers. For small numbers only.

use lowtide_core::{Buffer, BufferIndex, Bytes, Class, Placement, Plan, PoolIndex, Problem};
use lowtide_plan::Verdict;

/// The bytes of its own that a buffer holds at an event.
fn held(buffer: &Buffer, time: i64) -> Option<(u64, u64)> {
    let alive = buffer.lifetime.lower <= time && time < buffer.lifetime.upper;
    let gap = buffer.gaps.iter().find(|gap| gap.lifetime.lower <= time && time < gap.lifetime.upper);
    let range = match gap {
        None => Some((0, buffer.size.get())),
        Some(gap) => gap.window.map(|window| (window.lower.get(), window.upper.get())),
    };
    range.filter(|range| alive && range.0 < range.1)
}

/// The alias set of a buffer, or the buffer alone.
fn family(problem: &Problem, buffer: BufferIndex) -> Vec<BufferIndex> {
    problem.aliases.iter().find(|set| set.contains(&buffer)).cloned().unwrap_or_else(|| vec![buffer])
}

/// Whether two buffers must not take each other's bytes when they lie as given.
fn must_be_apart(problem: &Problem, a: BufferIndex, b: BufferIndex, same_place: bool) -> bool {
    let (of_a, of_b) = (family(problem, a), family(problem, b));
    let pair = problem.may_share.iter().any(|(first, second)| {
        of_a.contains(first) && of_b.contains(second) || of_a.contains(second) && of_b.contains(first)
    });
    !(of_a.contains(&b) || pair && same_place)
}

fn take_the_same_bytes(first: &Buffer, at_first: Placement, second: &Buffer, at_second: Placement) -> bool {
    let lower = first.lifetime.lower.max(second.lifetime.lower);
    let upper = first.lifetime.upper.min(second.lifetime.upper);
    at_first.pool == at_second.pool
        && (lower..upper).any(|time| match (held(first, time), held(second, time)) {
            (Some(one), Some(other)) => {
                let (one, other) = ([one.0, one.1].map(|byte| byte + at_first.offset.get()), other);
                let other = [other.0, other.1].map(|byte| byte + at_second.offset.get());
                one[0] < other[1] && other[0] < one[1]
            }
            _ => false,
        })
}

/// Whether a buffer belongs below or above others for its class: not where a pin decides, its own or one of those it is
/// tied to, nor where none of them ever takes a byte.
fn has_a_zone(problem: &Problem, index: BufferIndex) -> bool {
    let mut tied = vec![index];
    let mut at = 0;
    while let Some(&next) = tied.get(at) {
        for set in problem.aliases.iter().chain(&problem.contiguous).filter(|set| set.contains(&next)) {
            let new: Vec<BufferIndex> = set.iter().copied().filter(|member| !tied.contains(member)).collect();
            tied.extend(new);
        }
        at += 1;
    }
    let moves = tied.iter().all(|&member| problem.buffer(member).pin.is_none());
    moves && tied.iter().any(|&member| problem.buffer(member).takes_bytes())
}

/// Whether an offset suits a member and all its aliases.
fn holds(problem: &Problem, member: BufferIndex, offset: u64) -> bool {
    let mut aliases = problem.aliases.iter().filter(|set| set.contains(&member)).flatten().chain([&member]);
    aliases.all(|&alias| problem.buffer(alias).align.holds(Bytes::new(offset)))
}

/// How far a member of a contiguous group lies above the first, which begins at a multiple of all their alignments.
fn rise_in(problem: &Problem, group: &[BufferIndex], member: BufferIndex) -> u64 {
    let mut rise = 0;
    for &at in group {
        rise = (rise..rise + 1000).find(|&start| holds(problem, at, start)).expect("alignments are small");
        if at == member {
            return rise;
        }
        rise += problem.buffer(at).size.get();
    }
    unreachable!("it is a member")
}

/// What is wrong between two buffers.
fn faults_between(problem: &Problem, a: BufferIndex, at_a: Placement, b: BufferIndex, at_b: Placement) -> Vec<Verdict> {
    let mut faults = Vec::new();
    let (first, second) = (problem.buffer(a), problem.buffer(b));
    if must_be_apart(problem, a, b, at_a == at_b) && take_the_same_bytes(first, at_a, second, at_b) {
        faults.push(Verdict::Overlap(a.min(b), a.max(b)));
    }
    for (one, at_one, other, at_other) in [(a, at_a, b, at_b), (b, at_b, a, at_a)] {
        let follows = |set: &Vec<BufferIndex>| set.windows(2).any(|pair| pair == [one, other]);
        if problem.aliases.iter().any(follows) && at_one != at_other {
            faults.push(Verdict::AliasesApart(one, other));
        }
        if let Some(group) = problem.contiguous.iter().find(|group| follows(group)) {
            let start = |member, at: Placement| at.offset.get().checked_sub(rise_in(problem, group, member));
            let base = start(one, at_one)
                .filter(|&base| group.iter().all(|&member| problem.buffer(member).align.holds(Bytes::new(base))));
            if at_one.pool != at_other.pool || base.is_none() || base != start(other, at_other) {
                faults.push(Verdict::NotContiguous(one, other));
            }
        }
        let (below, above) = (problem.buffer(one), problem.buffer(other));
        if (below.class, above.class) == (Class::Persistent, Class::Transient)
            && has_a_zone(problem, one)
            && has_a_zone(problem, other)
            && at_one.pool == at_other.pool
            && at_other.offset < at_one.offset + below.size
        {
            faults.push(Verdict::ClassesMixed(one, other));
        }
    }
    faults
}

/// What is wrong with one buffer.
fn faults_of(problem: &Problem, index: BufferIndex, placement: Placement) -> Vec<Verdict> {
    let buffer = problem.buffer(index);
    let way: Vec<PoolIndex> =
        std::iter::successors(Some(buffer.pool), |pool| problem.pools[pool.get()].spill).collect();
    let mut faults = Vec::new();
    if !way.contains(&placement.pool) {
        faults.push(Verdict::WrongPool(index));
    }
    if !placement.offset.get().is_multiple_of(buffer.align.get()) {
        faults.push(Verdict::Misaligned(index));
    }
    if buffer.pin.is_some_and(|pin| placement != Placement { pool: buffer.pool, offset: pin }) {
        faults.push(Verdict::Moved(index));
    }
    faults
}

/// Everything that is wrong with a plan that has the right numbers of placements and heights.
pub fn faults(problem: &Problem, plan: &Plan) -> Vec<Verdict> {
    let mut faults = Vec::new();
    for a in problem.indices() {
        faults.extend(faults_of(problem, a, plan.placement(a)));
        for b in problem.indices().take(a.get()) {
            faults.extend(faults_between(problem, a, plan.placement(a), b, plan.placement(b)));
        }
    }
    let mut total = Bytes::ZERO;
    for (number, pool) in problem.pools.iter().enumerate() {
        let inside = problem.indices().filter(|&index| plan.placement(index).pool.get() == number);
        let ends = inside.map(|index| plan.placement(index).offset + problem.buffer(index).size);
        let actual = ends.max().unwrap_or_default();
        total += actual;
        let (stated, index) = (plan.heights[number], PoolIndex::new(number));
        if stated != actual {
            faults.push(Verdict::WrongHeight { pool: index, stated, actual });
        }
        if pool.capacity.is_some_and(|capacity| capacity < actual) {
            faults.push(Verdict::OverCapacity(index));
        }
    }
    if total < plan.lower_bound {
        faults.push(Verdict::BelowBound);
    }
    faults
}

/// Every place that a buffer could have, and which places of any two buffers go together.
pub struct Oracle<'a> {
    problem: &'a Problem,
    slots: Vec<Placement>,
    /// For two buffers and a slot of the first, the slots of the second that go with it.
    together: Vec<Vec<Vec<u64>>>,
}

impl<'a> Oracle<'a> {
    /// Places from zero to the pool's reach in each pool; at most 64 of them in all.
    pub fn new(problem: &'a Problem, reach: &[u64]) -> Self {
        let slots: Vec<Placement> = (0..problem.pools.len())
            .flat_map(|pool| {
                let pool_index = PoolIndex::new(pool);
                (0..=reach[pool]).map(move |offset| Placement { pool: pool_index, offset: Bytes::new(offset) })
            })
            .collect();
        assert!(slots.len() <= 64, "the oracle is for small problems: {reach:?}");
        let row = |a: BufferIndex, b: BufferIndex| -> Vec<u64> {
            let goes =
                |one: Placement, other: Placement| a == b || faults_between(problem, a, one, b, other).is_empty();
            let mask = |&one: &Placement| {
                let bits = slots.iter().enumerate().filter(|&(_, &other)| goes(one, other));
                bits.fold(0_u64, |mask, (bit, _)| mask | 1 << bit)
            };
            slots.iter().map(mask).collect()
        };
        let together = problem.indices().map(|a| problem.indices().map(|b| row(a, b)).collect()).collect();
        Self { problem, slots, together }
    }

    /// Whether there is a plan that ends at or below a ceiling in each pool.
    pub fn fits(&self, ceilings: &[u64]) -> bool {
        let domain = |index: BufferIndex| {
            let size = self.problem.buffer(index).size;
            let allowed = self.slots.iter().enumerate().filter(|&(_, &slot)| {
                faults_of(self.problem, index, slot).is_empty()
                    && (slot.offset + size).get() <= ceilings[slot.pool.get()]
            });
            allowed.fold(0_u64, |mask, (bit, _)| mask | 1 << bit)
        };
        let domains: Vec<(usize, u64)> = self.problem.indices().map(|index| (index.get(), domain(index))).collect();
        self.search(domains)
    }

    fn search(&self, mut waiting: Vec<(usize, u64)>) -> bool {
        let Some(next) = (0..waiting.len()).min_by_key(|&place| waiting[place].1.count_ones()) else { return true };
        let (buffer, slots) = waiting.swap_remove(next);
        (0..64).filter(|bit| slots >> bit & 1 == 1).any(|slot| {
            let rest = waiting.iter().map(|&(other, domain)| (other, domain & self.together[buffer][other][slot]));
            let rest: Vec<(usize, u64)> = rest.collect();
            rest.iter().all(|&(_, domain)| domain != 0) && self.search(rest)
        })
    }
}

/// The lowest peak of a problem with one pool, whatever its capacity; `None` where no plan holds.
pub fn optimum(problem: &Problem) -> Option<u64> {
    assert_eq!(problem.pools.len(), 1);
    let stacked: u64 = problem.buffers.iter().map(|buffer| buffer.size.get() + buffer.align.get() - 1).sum();
    let highest_pin = problem.buffers.iter().filter_map(|buffer| buffer.pin).max().unwrap_or_default().get();
    // Alignments of three and four in one body make twelve, before each member of a group.
    let tied: usize = problem.aliases.iter().chain(&problem.contiguous).map(Vec::len).sum();
    let common = 12 * tied as u64;
    let reach = (stacked + highest_pin + common).min(63);
    let oracle = Oracle::new(problem, &[reach]);
    (0..=reach).find(|&height| oracle.fits(&[height]))
}

/// Whether a problem has a plan within its capacities, all of which are given.
pub fn fits(problem: &Problem) -> bool {
    let capacities: Vec<u64> =
        problem.pools.iter().map(|pool| pool.capacity.expect("every pool has a capacity").get()).collect();
    Oracle::new(problem, &capacities).fits(&capacities)
}

/// The lowest peak of plain or aligned buffers in one pool: every order, each buffer at the lowest offset that is
/// free. Pushing any plan down makes it one of these.
pub fn optimum_over_orders(problem: &Problem) -> u64 {
    fn extend(problem: &Problem, offsets: &mut Vec<(BufferIndex, u64)>, height: u64, best: &mut u64) {
        if height >= *best {
            return;
        }
        if offsets.len() == problem.buffers.len() {
            *best = height;
            return;
        }
        for index in problem.indices() {
            if offsets.iter().any(|&(placed, _)| placed == index) {
                continue;
            }
            let buffer = problem.buffer(index);
            let mut blocked: Vec<(u64, u64)> = offsets
                .iter()
                .map(|&(other, offset)| (problem.buffer(other), offset))
                .filter(|(other, _)| other.lifetime.overlaps(buffer.lifetime) && other.size > Bytes::ZERO)
                .map(|(other, offset)| (offset, offset + other.size.get()))
                .collect();
            blocked.sort_unstable();
            let mut offset = 0;
            for (bottom, top) in blocked {
                if buffer.size > Bytes::ZERO && offset < top && bottom < offset + buffer.size.get() {
                    offset = top.next_multiple_of(buffer.align.get());
                }
            }
            offsets.push((index, offset));
            extend(problem, offsets, height.max(offset + buffer.size.get()), best);
            offsets.pop();
        }
    }
    let mut best = u64::MAX;
    extend(problem, &mut Vec::new(), 0, &mut best);
    best
}
