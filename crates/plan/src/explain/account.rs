//! What buffers hold when, nothing counted twice: aliases once, nothing in gaps, and of what may share only what could
//! not, which is how [`lower_bound`](crate::lower_bound) counts too.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use lowtide_core::ranges::RangeSet;
use lowtide_core::{Buffer, BufferIndex, Bytes, Lifetime, Problem, ProblemError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::curve::Delta;
use crate::prepare::rigid::{self, Rigid, Ties};

/// The bytes of a problem by what holds them.
pub(super) struct Account<'a> {
    pub problem: &'a Problem,
    bodies: Vec<Rigid>,
    /// The body of each buffer.
    body_of: Vec<u32>,
    /// In-place pairs as bodies, both ways round.
    pairs: FxHashSet<(u32, u32)>,
    /// Bodies that pairs connect, by the smallest of them.
    groups: BTreeMap<u32, Vec<u32>>,
    /// That smallest one for each body in a pair.
    group_of: FxHashMap<u32, u32>,
    /// What makes and connects bodies, by body; a pair by its first.
    relations: FxHashMap<u32, Vec<Relation>>,
}

/// A relation's place among those of its kind.
#[derive(Clone, Copy)]
enum Relation {
    Aliases(usize),
    Contiguous(usize),
    Pair(usize),
}

impl<'a> Account<'a> {
    pub fn new(problem: &'a Problem) -> Result<Self, ProblemError> {
        let bodies = rigid::bodies(problem, &Ties::new(problem)?)?;
        let mut body_of = vec![0_u32; problem.buffers.len()];
        for (index, rigid) in bodies.iter().enumerate() {
            for &(buffer, _) in &rigid.members {
                body_of[buffer.get()] = index as u32;
            }
        }
        let pairs = problem.may_share.iter().map(|&(a, b)| (body_of[a.get()], body_of[b.get()]));
        let pairs: FxHashSet<(u32, u32)> = pairs.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let group_of = connected(&pairs);
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (&body, &group) in &group_of {
            groups.entry(group).or_default().push(body);
        }
        let relations = relations(problem, &body_of);
        Ok(Self { problem, bodies, body_of, pairs, groups, group_of, relations })
    }

    /// When the bytes held become more or fewer, sorted by time.
    pub fn deltas(&self) -> Vec<Delta> {
        let mut deltas = Vec::with_capacity(2 * self.bodies.len());
        for (index, rigid) in self.bodies.iter().enumerate() {
            if !self.group_of.contains_key(&(index as u32)) {
                let pieces = &rigid.body.pieces;
                deltas.extend(pieces.iter().flat_map(|p| [(p.lower, p.size as i64), (p.upper, -(p.size as i64))]));
            }
        }
        for group in self.groups.values() {
            self.shared_deltas(group, &mut deltas);
        }
        deltas.sort_unstable_by_key(|&(time, _)| time);
        deltas
    }

    /// The deltas of bodies that pairs connect: a sweep over their beginnings and ends.
    fn shared_deltas(&self, group: &[u32], deltas: &mut Vec<Delta>) {
        let mut events: Vec<(i64, u32, i64)> = Vec::new();
        for &body in group {
            for piece in &self.bodies[body as usize].body.pieces {
                events.push((piece.lower, body, piece.size as i64));
                events.push((piece.upper, body, -(piece.size as i64)));
            }
        }
        events.sort_unstable();
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        let mut counted = 0;
        for moment in events.chunk_by(|a, b| a.0 == b.0) {
            for &(_, body, change) in moment {
                let bytes = held.entry(body).or_insert(0);
                *bytes = bytes.wrapping_add_signed(change);
            }
            held.retain(|_, bytes| *bytes > 0);
            let saved: u64 = self.sharers(&held).into_iter().map(|body| held[&body]).sum();
            let now = (held.values().sum::<u64>() - saved) as i64;
            deltas.push((moment[0].0, now - counted));
            counted = now;
        }
    }

    /// The bodies that could lie in the memory of larger ones: all but a set of which no two may share, picked
    /// greedily.
    fn sharers(&self, held: &BTreeMap<u32, u64>) -> Vec<u32> {
        let mut by_bytes: Vec<(u64, u32)> = held.iter().map(|(&body, &bytes)| (bytes, body)).collect();
        by_bytes.sort_unstable_by_key(|&(bytes, body)| (std::cmp::Reverse(bytes), body));
        let mut apart: Vec<u32> = Vec::new();
        let mut sharers = Vec::new();
        for (_, body) in by_bytes {
            if apart.iter().any(|&other| self.pairs.contains(&(body, other))) {
                sharers.push(body);
            } else {
                apart.push(body);
            }
        }
        sharers
    }

    /// Every buffer that holds bytes at `time`, with what it adds to those alive: where several hold the same, the
    /// largest adds it.
    pub fn alive_at(&self, time: i64) -> Vec<(BufferIndex, u64)> {
        let mut alive: Vec<(BufferIndex, u64)> = Vec::new();
        let mut in_pairs: BTreeMap<u32, u64> = BTreeMap::new();
        for (index, rigid) in self.bodies.iter().enumerate() {
            let first = alive.len();
            self.add_alive(rigid, time, &mut alive);
            if alive.len() > first && self.group_of.contains_key(&(index as u32)) {
                in_pairs.insert(index as u32, alive[first..].iter().map(|&(_, bytes)| bytes).sum());
            }
        }
        let sharers: FxHashSet<u32> = self.sharers(&in_pairs).into_iter().collect();
        for (buffer, bytes) in &mut alive {
            if sharers.contains(&self.body_of[buffer.get()]) {
                *bytes = 0;
            }
        }
        alive
    }

    fn add_alive(&self, rigid: &Rigid, time: i64, alive: &mut Vec<(BufferIndex, u64)>) {
        let held = |&(member, rise): &(BufferIndex, u64)| {
            let (lower, upper) = held_range(self.problem.buffer(member), time)?;
            Some((rise + lower, rise + upper, member))
        };
        let mut ranges: Vec<(u64, u64, BufferIndex)> = rigid.members.iter().filter_map(held).collect();
        ranges.sort_unstable_by_key(|&(lower, upper, member)| (std::cmp::Reverse(upper - lower), member));
        let mut covered = RangeSet::new();
        alive.extend(ranges.into_iter().map(|(lower, upper, member)| (member, covered.insert(lower..upper))));
    }

    /// Whether `output` could be written over `input` as far as what binds them goes: they are in no pair, and what
    /// lies where `input` does goes with it, what lies where `output` does comes with it.
    pub fn can_join(&self, input: BufferIndex, output: BufferIndex) -> bool {
        let (one, other) = (self.body_of[input.get()], self.body_of[output.get()]);
        let life = |index: BufferIndex| self.problem.buffer(index).lifetime;
        let members = |body: u32| self.bodies[body as usize].members.iter();
        one != other
            && ![one, other].iter().any(|body| self.group_of.contains_key(body))
            && members(one).all(|&(member, rise)| rise == 0 && life(member).upper <= life(input).upper)
            && members(other).all(|&(member, rise)| rise == 0 && life(member).lower >= life(output).lower)
    }

    /// Whether nothing is tied to `index` or may share with it.
    pub fn is_alone(&self, index: BufferIndex) -> bool {
        let body = self.body_of[index.get()];
        self.relations.is_empty() || self.bodies[body as usize].members.len() == 1 && !self.group_of.contains_key(&body)
    }

    /// `buffers` and all whose bytes depend on theirs, in order: what is tied to them, and what pairs connect them to
    /// and is alive between their first beginning and last end.
    pub fn with_related(&self, buffers: &[BufferIndex]) -> Vec<BufferIndex> {
        let mut members = buffers.to_vec();
        let mut hulls: BTreeMap<u32, Lifetime> = BTreeMap::new();
        for &buffer in buffers {
            let body = self.body_of[buffer.get()];
            let group = self.group_of.get(&body).copied();
            if group.is_some() || self.bodies[body as usize].members.len() > 1 {
                let life = self.problem.buffer(buffer).lifetime;
                let hull = hulls.entry(group.unwrap_or(body)).or_insert(life);
                *hull = Lifetime { lower: hull.lower.min(life.lower), upper: hull.upper.max(life.upper) };
            }
        }
        for (group, hull) in hulls {
            let bodies = self.groups.get(&group).map_or(std::slice::from_ref(&group), Vec::as_slice);
            let tied = bodies.iter().map(|&body| &self.bodies[body as usize].members);
            let meets = |&(member, _): &(BufferIndex, u64)| self.problem.buffer(member).lifetime.overlaps(hull);
            let met = tied.filter(|members| members.iter().any(meets));
            members.extend(met.flatten().map(|&(member, _)| member));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// The same problem with `members` alone, which are sorted, and without names.
    pub fn excerpt(&self, members: &[BufferIndex]) -> Problem {
        let mut part = Problem::new(members.iter().map(|&index| nameless(self.problem.buffer(index))).collect());
        if self.relations.is_empty() {
            return part;
        }
        let mut bodies: Vec<u32> = members.iter().map(|member| self.body_of[member.get()]).collect();
        bodies.sort_unstable();
        bodies.dedup();
        let place = |index: &BufferIndex| members.binary_search(index).ok().map(BufferIndex::new);
        let places = |set: &Vec<BufferIndex>| -> Vec<BufferIndex> { set.iter().filter_map(place).collect() };
        for &relation in bodies.iter().filter_map(|body| self.relations.get(body)).flatten() {
            match relation {
                Relation::Aliases(number) => part.aliases.push(places(&self.problem.aliases[number])),
                Relation::Contiguous(number) => part.contiguous.push(places(&self.problem.contiguous[number])),
                Relation::Pair(number) => {
                    let (a, b) = &self.problem.may_share[number];
                    part.may_share.extend(place(a).zip(place(b)));
                }
            }
        }
        part
    }
}

fn relations(problem: &Problem, body_of: &[u32]) -> FxHashMap<u32, Vec<Relation>> {
    let first = |set: &Vec<BufferIndex>| set.first().copied();
    let aliases = problem.aliases.iter().map(first).enumerate();
    let contiguous = problem.contiguous.iter().map(first).enumerate();
    let pairs = problem.may_share.iter().map(|&(a, _)| Some(a)).enumerate();
    let all = aliases
        .map(|(number, first)| (first, Relation::Aliases(number)))
        .chain(contiguous.map(|(number, first)| (first, Relation::Contiguous(number))))
        .chain(pairs.map(|(number, first)| (first, Relation::Pair(number))));
    let mut relations: FxHashMap<u32, Vec<Relation>> = FxHashMap::default();
    for (first, relation) in all {
        if let Some(first) = first {
            relations.entry(body_of[first.get()]).or_default().push(relation);
        }
    }
    relations
}

/// A copy of `buffer` without its name.
pub(super) fn nameless(buffer: &Buffer) -> Buffer {
    let &Buffer { size, align, lifetime, pin, class, pool, .. } = buffer;
    Buffer { id: Box::default(), size, align, lifetime, gaps: buffer.gaps.clone(), pin, class, pool }
}

/// When the bytes that `buffer` holds by itself become more or fewer.
pub(super) fn deltas_alone(buffer: &Buffer) -> impl Iterator<Item = Delta> + '_ {
    let size = |bytes: Bytes| bytes.get() as i64;
    let Lifetime { lower, upper } = buffer.lifetime;
    let in_gaps = buffer.gaps.iter().flat_map(move |gap| {
        let freed = size(buffer.size) - gap.window.map_or(0, |window| size(window.upper - window.lower));
        [(gap.lifetime.lower, -freed), (gap.lifetime.upper, freed)]
    });
    [(lower, size(buffer.size)), (upper, -size(buffer.size))].into_iter().chain(in_gaps)
}

/// The bytes of `buffer`, from its start, that it holds at `time`.
fn held_range(buffer: &Buffer, time: i64) -> Option<(u64, u64)> {
    let within = |life: Lifetime| life.lower <= time && time < life.upper;
    if !within(buffer.lifetime) {
        return None;
    }
    let range = match buffer.gaps.iter().find(|gap| within(gap.lifetime)) {
        Some(gap) => gap.window.map(|window| (window.lower.get(), window.upper.get()))?,
        None => (0, buffer.size.get()),
    };
    (range.0 < range.1).then_some(range)
}

/// For each body in a pair, the smallest one that pairs connect it to.
fn connected(pairs: &FxHashSet<(u32, u32)>) -> FxHashMap<u32, u32> {
    let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(a, b) in pairs {
        neighbours.entry(a).or_default().push(b);
    }
    let mut group_of: FxHashMap<u32, u32> = FxHashMap::default();
    for &start in neighbours.keys() {
        let mut open = vec![start];
        while let Some(body) = open.pop() {
            if let Entry::Vacant(entry) = group_of.entry(body) {
                entry.insert(start);
                open.extend(&neighbours[&body]);
            }
        }
    }
    group_of
}
