//! In-place pairs: which of them to let share an address, and how low sharing could bring the peak.

use std::collections::BTreeMap;

use lowtide_core::random::Random;
use lowtide_core::{Align, BufferIndex, Bytes, Class, Lifetime, PoolIndex, Problem, ProblemError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::prepare::rigid::{self, Rigid, Ties};

/// Buffers at one address.
struct Group {
    pool: PoolIndex,
    class: Class,
    pin: Option<Bytes>,
    align: Align,
    /// Whether all of them lie at the same height.
    level: bool,
    /// When they live, by their beginnings.
    lives: Vec<(Lifetime, BufferIndex)>,
    /// The longest of these lives.
    longest: u64,
}

impl Group {
    fn new(problem: &Problem, members: &[(BufferIndex, i64)]) -> Self {
        let first = problem.buffer(members[0].0);
        let mut lives: Vec<(Lifetime, BufferIndex)> =
            members.iter().map(|&(member, _)| (problem.buffer(member).lifetime, member)).collect();
        lives.sort_unstable();
        let join = |align: Align, &(member, _): &(BufferIndex, i64)| {
            align.checked_common_multiple(problem.buffer(member).align).unwrap_or(align)
        };
        Self {
            pool: first.pool,
            class: first.class,
            pin: members.iter().find_map(|&(member, _)| problem.buffer(member).pin),
            align: members.iter().fold(Align::ONE, join),
            level: members.iter().all(|&(_, above)| above == 0),
            longest: lives.iter().map(|(life, _)| life.length()).max().unwrap_or(0),
            lives,
        }
    }

    /// The members that live at some time of `life`.
    fn alive_during(&self, life: Lifetime) -> impl Iterator<Item = BufferIndex> + '_ {
        let from =
            self.lives.partition_point(|(other, _)| other.lower.saturating_add_unsigned(self.longest) < life.lower);
        let begun = self.lives[from..].iter().take_while(move |(other, _)| other.lower < life.upper);
        begun.filter(move |(other, _)| other.overlaps(life)).map(|&(_, member)| member)
    }

    /// Takes in the members of another group.
    fn join(&mut self, other: Self) {
        self.align = self.align.checked_common_multiple(other.align).unwrap_or(self.align);
        self.longest = self.longest.max(other.longest);
        for life in other.lives {
            let at = self.lives.partition_point(|&earlier| earlier <= life);
            self.lives.insert(at, life);
        }
    }
}

/// The pairs of a problem, and what they may be tied to.
pub(crate) struct Sharing<'a> {
    problem: &'a Problem,
    /// Pairs by the bytes that sharing saves, largest first.
    pairs: Vec<(BufferIndex, BufferIndex)>,
    /// The buffer that stands for each one and its aliases.
    head: Vec<BufferIndex>,
    /// Pairs of such buffers, both ways round.
    allowed: FxHashSet<(BufferIndex, BufferIndex)>,
}

impl<'a> Sharing<'a> {
    pub fn new(problem: &'a Problem) -> Self {
        let mut pairs = problem.may_share.clone();
        let saves = |&(a, b): &(BufferIndex, BufferIndex)| problem.buffer(a).size.min(problem.buffer(b).size);
        pairs.sort_by_key(|pair| std::cmp::Reverse(saves(pair)));
        let mut head: Vec<BufferIndex> = problem.indices().collect();
        for set in &problem.aliases {
            for member in set {
                head[member.get()] = set[0];
            }
        }
        let heads = |&(a, b): &(BufferIndex, BufferIndex)| (head[a.get()], head[b.get()]);
        let allowed = problem.may_share.iter().map(heads).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        Self { problem, pairs, head, allowed }
    }

    /// The ties after letting pairs share, each unless `skip` says otherwise or it cannot.
    pub fn tied(&self, ties: &Ties, mut skip: impl FnMut() -> bool) -> Ties {
        let mut groups: FxHashMap<u32, Group> = FxHashMap::default();
        for members in ties.groups() {
            groups.insert(ties.root(members[0].0).0, Group::new(self.problem, &members));
        }
        let mut shared = ties.clone();
        for &(a, b) in &self.pairs {
            if skip() {
                continue;
            }
            let (root_a, root_b) = (shared.root(a).0, shared.root(b).0);
            let (kept, gone) = (root_a.min(root_b), root_a.max(root_b));
            let compatible = root_a != root_b && self.compatible(&groups[&kept], &groups[&gone]);
            if compatible
                && shared.tie(a, b, 0).is_some()
                && let Some(moved) = groups.remove(&gone)
                && let Some(group) = groups.get_mut(&kept)
            {
                group.join(moved);
            }
        }
        shared
    }

    /// Whether no two buffers of the groups are alive together without being a pair, and nothing else speaks
    /// against one address for all.
    fn compatible(&self, one: &Group, other: &Group) -> bool {
        let (few, many) = if one.lives.len() < other.lives.len() { (one, other) } else { (other, one) };
        let align = one.align.checked_common_multiple(other.align);
        let may_meet =
            |a: BufferIndex, b: BufferIndex| self.allowed.contains(&(self.head[a.get()], self.head[b.get()]));
        one.level
            && other.level
            && (one.pool, one.class, one.pin) == (other.pool, other.class, other.pin)
            && align.is_some_and(|align| align.get() < 1 << 40)
            && few.lives.iter().all(|&(life, a)| many.alive_during(life).all(|b| may_meet(a, b)))
    }

    /// Ties with each pair that could share left out with the given probability.
    pub fn sampled(&self, ties: &Ties, leave_out: f64, random: &mut Random) -> Ties {
        self.tied(ties, || random.fraction() < leave_out)
    }

    /// What each pool must hold whatever shares, and what all must hold together. Nothing is sure of a pool that
    /// buffers may leave.
    pub fn bounds(&self, ties: &Ties) -> Result<(Vec<Bytes>, Bytes), ProblemError> {
        let bodies = rigid::bodies(self.problem, ties)?;
        let savings = self.savings(&bodies);
        let pool_of = |rigid: &Rigid| self.problem.buffer(rigid.members[0].0).pool;
        let of_pool = |index: usize| {
            let pool = PoolIndex::new(index);
            if self.problem.pools[index].spill.is_some() {
                return Bytes::ZERO;
            }
            let alone = |rigid: &Rigid| rigid.body.size + rigid.body.pin.unwrap_or(0);
            let mine = || bodies.iter().filter(|rigid| pool_of(rigid) == pool);
            Bytes::new(mine().map(alone).max().unwrap_or(0).max(most_alive(mine(), &savings)))
        };
        let bounds: Vec<Bytes> = (0..self.problem.pools.len()).map(of_pool).collect();
        let together = bounds.iter().copied().sum::<Bytes>().max(Bytes::new(most_alive(bodies.iter(), &savings)));
        Ok((bounds, together))
    }

    /// Stretches of time with the most bytes that sharing could save in them: what bodies connected by pairs hold
    /// beyond the largest set of them in which no two may share.
    fn savings(&self, bodies: &[Rigid]) -> Vec<(Lifetime, u64)> {
        let mut body_of = vec![0_u32; self.problem.buffers.len()];
        for (index, rigid) in bodies.iter().enumerate() {
            for &(buffer, _) in &rigid.members {
                body_of[buffer.get()] = index as u32;
            }
        }
        let pairs: FxHashSet<(u32, u32)> = self
            .problem
            .may_share
            .iter()
            .map(|&(a, b)| (body_of[a.get()], body_of[b.get()]))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .collect();
        let components = components(&pairs);
        components.iter().flat_map(|component| savings_of(component, bodies, &pairs)).collect()
    }
}

/// The most that bodies hold at once, less what could be saved then.
fn most_alive<'a>(bodies: impl Iterator<Item = &'a Rigid>, savings: &[(Lifetime, u64)]) -> u64 {
    let held = bodies.flat_map(|rigid| &rigid.body.pieces).map(|piece| (piece.lower, piece.upper, piece.size as i64));
    let saved = savings.iter().map(|&(life, saved)| (life.lower, life.upper, -(saved as i64)));
    let mut steps: Vec<(i64, i64)> =
        held.chain(saved).flat_map(|(from, to, size)| [(from, size), (to, -size)]).collect();
    steps.sort_unstable_by_key(|&(time, _)| time);
    let (mut load, mut most) = (0_i64, 0_i64);
    for moment in steps.chunk_by(|a, b| a.0 == b.0) {
        load += moment.iter().map(|&(_, change)| change).sum::<i64>();
        most = most.max(load);
    }
    most as u64
}

/// What the bodies of one component could save when: a sweep over their beginnings and ends.
fn savings_of(component: &[u32], bodies: &[Rigid], pairs: &FxHashSet<(u32, u32)>) -> Vec<(Lifetime, u64)> {
    let mut events: Vec<(i64, bool, u64, u32)> = Vec::new();
    for &body in component {
        for piece in &bodies[body as usize].body.pieces {
            events.push((piece.lower, true, piece.size, body));
            events.push((piece.upper, false, piece.size, body));
        }
    }
    events.sort_unstable();
    let mut savings = Vec::new();
    let mut held: BTreeMap<u32, u64> = BTreeMap::new();
    let mut from = i64::MIN;
    for (time, begins, size, body) in events {
        if from < time {
            let saved = most_saved(&held, pairs);
            if saved > 0 {
                savings.push((Lifetime { lower: from, upper: time }, saved));
            }
        }
        from = time;
        let bytes = held.entry(body).or_insert(0);
        *bytes = if begins { *bytes + size } else { *bytes - size };
        if *bytes == 0 {
            held.remove(&body);
        }
    }
    savings
}

/// What is held less what must be: a set of bodies of which no two may share, picked greedily.
fn most_saved(held: &BTreeMap<u32, u64>, pairs: &FxHashSet<(u32, u32)>) -> u64 {
    let mut alive: Vec<(u64, u32)> = held.iter().map(|(&body, &bytes)| (bytes, body)).collect();
    alive.sort_unstable_by_key(|&(bytes, body)| (std::cmp::Reverse(bytes), body));
    let mut apart: Vec<u32> = Vec::new();
    let mut saved = 0;
    for (bytes, body) in alive {
        if apart.iter().any(|&other| pairs.contains(&(body, other))) {
            saved += bytes;
        } else {
            apart.push(body);
        }
    }
    saved
}

/// Bodies connected by pairs.
fn components(pairs: &FxHashSet<(u32, u32)>) -> Vec<Vec<u32>> {
    let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(a, b) in pairs {
        neighbours.entry(a).or_default().push(b);
    }
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut components = Vec::new();
    for &start in neighbours.keys() {
        if !seen.insert(start) {
            continue;
        }
        let mut component = vec![start];
        let mut at = 0;
        while at < component.len() {
            for &next in &neighbours[&component[at]] {
                if seen.insert(next) {
                    component.push(next);
                }
            }
            at += 1;
        }
        component.sort_unstable();
        components.push(component);
    }
    components
}
