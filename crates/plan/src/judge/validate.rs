//! Whether a plan keeps every promise of its problem: small, public, and sharing nothing with the solvers.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use lowtide_core::{Buffer, BufferIndex, Bytes, Class, Plan, PoolIndex, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is wrong with a plan, if anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Valid,
    /// It has placements for another number of buffers, or heights for another number of pools.
    WrongCount,
    /// A buffer lies in a pool that is not there, or that its own pool does not spill to.
    WrongPool(BufferIndex),
    /// A buffer's offset is no multiple of its alignment.
    Misaligned(BufferIndex),
    /// A buffer is not where it is pinned.
    Moved(BufferIndex),
    /// Two buffers take the same bytes at the same time.
    Overlap(BufferIndex, BufferIndex),
    /// Two buffers that must share an address do not.
    AliasesApart(BufferIndex, BufferIndex),
    /// Two buffers that must lie one behind the other do not, or the first of their group does not begin at a
    /// multiple of all members' alignments.
    NotContiguous(BufferIndex, BufferIndex),
    /// The second buffer is transient and lies below the first, which is persistent.
    ClassesMixed(BufferIndex, BufferIndex),
    /// A pool's height is not the largest end of a buffer in it.
    WrongHeight {
        /// The pool.
        pool: PoolIndex,
        /// What the plan says.
        stated: Bytes,
        /// What it is.
        actual: Bytes,
    },
    /// A pool needs more than it has.
    OverCapacity(PoolIndex),
    /// The plan is lower than the bound it claims.
    BelowBound,
}

impl Verdict {
    /// The buffers it names.
    pub fn buffers(self) -> Vec<BufferIndex> {
        match self {
            Self::WrongPool(a) | Self::Misaligned(a) | Self::Moved(a) => vec![a],
            Self::Overlap(a, b) | Self::AliasesApart(a, b) | Self::NotContiguous(a, b) | Self::ClassesMixed(a, b) => {
                vec![a, b]
            }
            Self::Valid | Self::WrongCount | Self::WrongHeight { .. } | Self::OverCapacity(_) | Self::BelowBound => {
                vec![]
            }
        }
    }

    /// A word for files and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::WrongCount => "wrong-count",
            Self::WrongPool(_) => "wrong-pool",
            Self::Misaligned(_) => "misaligned",
            Self::Moved(_) => "moved",
            Self::Overlap(..) => "overlap",
            Self::AliasesApart(..) => "aliases-apart",
            Self::NotContiguous(..) => "not-contiguous",
            Self::ClassesMixed(..) => "classes-mixed",
            Self::WrongHeight { .. } => "wrong-height",
            Self::OverCapacity(_) => "over-capacity",
            Self::BelowBound => "below-bound",
        }
    }

    /// The verdict in words, with the buffers' names.
    pub fn describe(self, problem: &Problem) -> impl fmt::Display + '_ {
        Described { verdict: self, problem }
    }
}

struct Described<'a> {
    verdict: Verdict,
    problem: &'a Problem,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = |index: BufferIndex| &self.problem.buffer(index).id;
        let pool = |index: PoolIndex| &self.problem.pools[index.get()].name;
        match self.verdict {
            Verdict::Valid => f.write_str("the plan is valid"),
            Verdict::WrongCount => f.write_str("the plan is for another number of buffers or pools"),
            Verdict::WrongPool(a) => write!(f, "buffer `{}` lies in a pool it does not belong to", id(a)),
            Verdict::Misaligned(a) => {
                write!(f, "the offset of buffer `{}` is no multiple of {}", id(a), self.problem.buffer(a).align)
            }
            Verdict::Moved(a) => write!(f, "buffer `{}` is not where it is pinned", id(a)),
            Verdict::Overlap(a, b) => {
                write!(f, "buffers `{}` and `{}` take the same bytes at the same time", id(a), id(b))
            }
            Verdict::AliasesApart(a, b) => {
                write!(f, "buffers `{}` and `{}` must share an address and do not", id(a), id(b))
            }
            Verdict::NotContiguous(a, b) => {
                write!(f, "buffers `{}` and `{}` do not lie one behind the other as their group must", id(a), id(b))
            }
            Verdict::ClassesMixed(a, b) => {
                write!(f, "transient buffer `{}` lies below persistent buffer `{}`", id(b), id(a))
            }
            Verdict::WrongHeight { pool: p, stated, actual } => write!(
                f,
                "the plan says that pool `{}` needs {} bytes, but it needs {}",
                pool(p),
                stated.get(),
                actual.get()
            ),
            Verdict::OverCapacity(p) => write!(f, "pool `{}` needs more than its capacity", pool(p)),
            Verdict::BelowBound => f.write_str("the plan is lower than the bound it claims"),
        }
    }
}

/// Judges `plan` as an answer to `problem`; of several faults one is named, those of single buffers first.
///
/// A plan that exceeds a pool's capacity is judged [`Verdict::OverCapacity`] only when nothing else is wrong with
/// it. Costs a sort of the buffers' beginnings and ends.
pub fn validate(problem: &Problem, plan: &Plan) -> Verdict {
    let checks = [check_counts, check_buffers, check_relations, check_overlaps, check_classes, check_heights];
    let verdicts = checks.iter().map(|check| check(problem, plan));
    verdicts.into_iter().find(|&verdict| verdict != Verdict::Valid).unwrap_or(Verdict::Valid)
}

fn check_counts(problem: &Problem, plan: &Plan) -> Verdict {
    if plan.placements.len() == problem.buffers.len() && plan.heights.len() == problem.pools.len() {
        Verdict::Valid
    } else {
        Verdict::WrongCount
    }
}

fn check_buffers(problem: &Problem, plan: &Plan) -> Verdict {
    for (index, buffer) in problem.indices().zip(&problem.buffers) {
        let placement = plan.placement(index);
        if !may_lie_in(problem, buffer.pool, placement.pool) {
            return Verdict::WrongPool(index);
        }
        if !buffer.align.holds(placement.offset) {
            return Verdict::Misaligned(index);
        }
        if buffer.pin.is_some_and(|pin| pin != placement.offset || placement.pool != buffer.pool) {
            return Verdict::Moved(index);
        }
    }
    Verdict::Valid
}

/// Whether `pool` is `own` or on the way that what spills from `own` takes.
fn may_lie_in(problem: &Problem, own: PoolIndex, pool: PoolIndex) -> bool {
    let mut at = Some(own);
    while let Some(next) = at {
        if next == pool {
            return true;
        }
        at = problem.pools[next.get()].spill;
    }
    false
}

fn check_relations(problem: &Problem, plan: &Plan) -> Verdict {
    for set in &problem.aliases {
        for pair in set.windows(2) {
            if plan.placement(pair[0]) != plan.placement(pair[1]) {
                return Verdict::AliasesApart(pair[0], pair[1]);
            }
        }
    }
    let alias_aligns = if problem.contiguous.is_empty() { HashMap::new() } else { problem.alias_aligns() };
    let align = |member: BufferIndex| alias_aligns.get(&member).copied().unwrap_or(problem.buffer(member).align);
    for group in &problem.contiguous {
        let begins_well = group.iter().all(|&member| align(member).holds(plan.placement(group[0]).offset));
        for pair in group.windows(2) {
            let (first, second) = (plan.placement(pair[0]), plan.placement(pair[1]));
            let end = first.offset.checked_add(problem.buffer(pair[0]).size);
            let next = end.and_then(|end| end.checked_align_up(align(pair[1])));
            if first.pool != second.pool || next != Some(second.offset) || !begins_well {
                return Verdict::NotContiguous(pair[0], pair[1]);
            }
        }
    }
    Verdict::Valid
}

/// Who may take whose bytes: aliases always, in-place pairs where they have the same address.
struct Kinship {
    /// The alias set of a buffer that has one, by its first member.
    set: FxHashMap<BufferIndex, BufferIndex>,
    pairs: FxHashSet<(BufferIndex, BufferIndex)>,
    in_pairs: FxHashSet<BufferIndex>,
}

impl Kinship {
    fn new(problem: &Problem) -> Self {
        let mut set = FxHashMap::default();
        for members in &problem.aliases {
            for &member in members {
                set.insert(member, members[0]);
            }
        }
        let head = |buffer: BufferIndex| set.get(&buffer).copied().unwrap_or(buffer);
        let pairs: FxHashSet<_> =
            problem.may_share.iter().map(|&(a, b)| (head(a), head(b))).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let in_pairs = pairs.iter().map(|&(a, _)| a).collect();
        Self { set, pairs, in_pairs }
    }

    fn head(&self, buffer: BufferIndex) -> BufferIndex {
        self.set.get(&buffer).copied().unwrap_or(buffer)
    }

    fn has_kin(&self, buffer: BufferIndex) -> bool {
        self.set.contains_key(&buffer) || self.in_pairs.contains(&self.head(buffer))
    }

    fn may_overlap(&self, plan: &Plan, a: BufferIndex, b: BufferIndex) -> bool {
        let (head_a, head_b) = (self.head(a), self.head(b));
        head_a == head_b || (plan.placement(a) == plan.placement(b) && self.pairs.contains(&(head_a, head_b)))
    }
}

/// Bytes that a buffer takes for a while.
struct Stay {
    lower: i64,
    upper: i64,
    bottom: u64,
    top: u64,
    buffer: BufferIndex,
}

fn stays(problem: &Problem, plan: &Plan) -> Vec<Stay> {
    let mut stays = Vec::with_capacity(problem.buffers.len());
    for (buffer, shape) in problem.indices().zip(&problem.buffers) {
        let offset = plan.placement(buffer).offset.get();
        let mut push = |lower: i64, upper: i64, from: u64, to: u64| {
            if lower < upper && from < to {
                // An offset from a file may be anything: what lies beyond 64 bits is checked as far as they go.
                let (bottom, top) = (offset.saturating_add(from), offset.saturating_add(to));
                stays.push(Stay { lower, upper, bottom, top, buffer });
            }
        };
        let mut from = shape.lifetime.lower;
        for gap in &shape.gaps {
            push(from, gap.lifetime.lower, 0, shape.size.get());
            if let Some(window) = gap.window {
                push(gap.lifetime.lower, gap.lifetime.upper, window.lower.get(), window.upper.get());
            }
            from = gap.lifetime.upper;
        }
        push(from, shape.lifetime.upper, 0, shape.size.get());
    }
    stays
}

/// Sweeps over time with the living in order of their pools and addresses; a newcomer is compared with its
/// neighbours.
fn check_overlaps(problem: &Problem, plan: &Plan) -> Verdict {
    let stays = stays(problem, plan);
    let kinship = Kinship::new(problem);
    let mut events: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * stays.len());
    for (index, stay) in stays.iter().enumerate() {
        events.push((stay.lower, true, index as u32));
        events.push((stay.upper, false, index as u32));
    }
    events.sort_unstable();
    let mut living: BTreeSet<(PoolIndex, u64, u32)> = BTreeSet::new();
    for (_, begins, index) in events {
        let stay = &stays[index as usize];
        let pool = plan.placement(stay.buffer).pool;
        let key = (pool, stay.bottom, index);
        if !begins {
            living.remove(&key);
            continue;
        }
        // Those that begin inside the newcomer, then those below it up to one that cannot hide another: without
        // kin, whatever reached past it would have been found when it came.
        let inside = |&&(in_pool, bottom, _): &&(PoolIndex, u64, u32)| in_pool == pool && bottom < stay.top;
        let above = living.range(key..).take_while(inside).map(|&(_, _, other)| other);
        let below = living.range((pool, 0, 0)..key).rev().map(|&(_, _, other)| other);
        for other in above {
            if !kinship.may_overlap(plan, stay.buffer, stays[other as usize].buffer) {
                return overlap(stay.buffer, stays[other as usize].buffer);
            }
        }
        for other in below {
            let other = &stays[other as usize];
            if other.top > stay.bottom {
                if !kinship.may_overlap(plan, stay.buffer, other.buffer) {
                    return overlap(stay.buffer, other.buffer);
                }
            } else if !kinship.has_kin(other.buffer) {
                break;
            }
        }
        living.insert(key);
    }
    Verdict::Valid
}

fn overlap(a: BufferIndex, b: BufferIndex) -> Verdict {
    Verdict::Overlap(a.min(b), a.max(b))
}

fn check_classes(problem: &Problem, plan: &Plan) -> Verdict {
    // In each pool, the highest end of a persistent buffer and the lowest start of a transient one.
    let mut highest: Vec<Option<(Bytes, BufferIndex)>> = vec![None; problem.pools.len()];
    let mut lowest = highest.clone();
    if problem.buffers.iter().all(|buffer| buffer.class == Class::Transient) {
        return Verdict::Valid;
    }
    let pinned = with_tied(problem, |buffer| buffer.pin.is_some());
    let holding = with_tied(problem, Buffer::takes_bytes);
    for (index, buffer) in problem.indices().zip(&problem.buffers) {
        // What a pin decides, and what never takes a byte, may lie anywhere.
        if pinned.contains(&index) || !holding.contains(&index) {
            continue;
        }
        let placement = plan.placement(index);
        let pool = placement.pool.get();
        let end = Bytes::new(placement.offset.get().saturating_add(buffer.size.get()));
        match buffer.class {
            Class::Persistent if highest[pool].is_none_or(|(high, _)| end > high) => {
                highest[pool] = Some((end, index));
            }
            Class::Transient if lowest[pool].is_none_or(|(low, _)| placement.offset < low) => {
                lowest[pool] = Some((placement.offset, index));
            }
            _ => {}
        }
    }
    for (high, low) in highest.into_iter().zip(lowest) {
        if let (Some((end, persistent)), Some((start, transient))) = (high, low)
            && start < end
        {
            return Verdict::ClassesMixed(persistent, transient);
        }
    }
    Verdict::Valid
}

/// The buffers for which `is` holds, and those tied to them as aliases or in contiguous groups.
fn with_tied(problem: &Problem, is: impl Fn(&Buffer) -> bool) -> FxHashSet<BufferIndex> {
    let mut found: FxHashSet<BufferIndex> = problem.indices().filter(|&index| is(problem.buffer(index))).collect();
    loop {
        let before = found.len();
        for set in problem.aliases.iter().chain(&problem.contiguous) {
            if set.iter().any(|member| found.contains(member)) {
                found.extend(set);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn check_heights(problem: &Problem, plan: &Plan) -> Verdict {
    let mut actual = vec![Bytes::ZERO; problem.pools.len()];
    for (placement, buffer) in plan.placements.iter().zip(&problem.buffers) {
        let end = Bytes::new(placement.offset.get().saturating_add(buffer.size.get()));
        let height = &mut actual[placement.pool.get()];
        *height = end.max(*height);
    }
    for (index, (&stated, &actual)) in plan.heights.iter().zip(&actual).enumerate() {
        if stated != actual {
            return Verdict::WrongHeight { pool: PoolIndex::new(index), stated, actual };
        }
    }
    let total = actual.iter().try_fold(Bytes::ZERO, |sum, &height| sum.checked_add(height));
    if total.is_some_and(|total| total < plan.lower_bound) {
        return Verdict::BelowBound;
    }
    for (index, (pool, height)) in problem.pools.iter().zip(actual).enumerate() {
        if pool.capacity.is_some_and(|capacity| height > capacity) {
            return Verdict::OverCapacity(PoolIndex::new(index));
        }
    }
    Verdict::Valid
}
