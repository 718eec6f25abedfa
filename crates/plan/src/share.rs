//! In-place pairs: which of them to let share an address, and how low sharing could bring the peak.

use std::collections::BTreeMap;

use lowtide_core::{BufferIndex, Lifetime, Problem};
use rustc_hash::FxHashSet;

use crate::random::Random;
use crate::rigid::{Rigid, Ties};

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
        let mut members: Vec<Vec<BufferIndex>> = vec![Vec::new(); self.problem.buffers.len()];
        for group in ties.groups() {
            let root = ties.root(group[0].0).0;
            members[root as usize] = group.into_iter().map(|(buffer, _)| buffer).collect();
        }
        let mut shared = ties.clone();
        for &(a, b) in &self.pairs {
            if skip() || self.problem.buffer(a).pool != self.problem.buffer(b).pool {
                continue;
            }
            let (root_a, root_b) = (shared.root(a).0, shared.root(b).0);
            if root_a == root_b || !self.compatible(ties, &members[root_a as usize], &members[root_b as usize]) {
                continue;
            }
            if shared.tie(a, b, 0).is_some() {
                let (kept, gone) = if root_a < root_b { (root_a, root_b) } else { (root_b, root_a) };
                let moved = std::mem::take(&mut members[gone as usize]);
                members[kept as usize].extend(moved);
            }
        }
        shared
    }

    /// Whether no two buffers of the groups are alive together without being a pair, and nothing else speaks
    /// against one address for all.
    fn compatible(&self, ties: &Ties, one: &[BufferIndex], other: &[BufferIndex]) -> bool {
        one.iter().all(|&a| {
            other.iter().all(|&b| {
                let (above_a, above_b) = (ties.root(a).1, ties.root(b).1);
                let (first, second) = (self.problem.buffer(a), self.problem.buffer(b));
                above_a == 0
                    && above_b == 0
                    && first.class == second.class
                    && first.pin == second.pin
                    && first.align.checked_common_multiple(second.align).is_some_and(|align| align.get() < 1 << 40)
                    && (!first.lifetime.overlaps(second.lifetime)
                        || self.allowed.contains(&(self.head[a.get()], self.head[b.get()])))
            })
        })
    }

    /// Ties with each pair that could share left out with the given probability.
    pub fn sampled(&self, ties: &Ties, leave_out: f64, random: &mut Random) -> Ties {
        self.tied(ties, || random.fraction() < leave_out)
    }

    /// Stretches of time with the most bytes that sharing could save in them: what bodies connected by pairs hold
    /// beyond the largest set of them in which no two may share.
    pub fn savings(&self, bodies: &[Rigid]) -> Vec<(Lifetime, u64)> {
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

/// What the bodies of one component could save when.
fn savings_of(component: &[u32], bodies: &[Rigid], pairs: &FxHashSet<(u32, u32)>) -> Vec<(Lifetime, u64)> {
    let pieces = |body: u32| &bodies[body as usize].body.pieces;
    let ends = component.iter().flat_map(|&body| pieces(body)).flat_map(|piece| [piece.lower, piece.upper]);
    let mut times: Vec<i64> = ends.collect();
    times.sort_unstable();
    times.dedup();
    let mut savings = Vec::new();
    for window in times.windows(2) {
        let stretch = Lifetime { lower: window[0], upper: window[1] };
        let held = |body: u32| -> u64 {
            let alive =
                pieces(body).iter().filter(|piece| piece.lower <= stretch.lower && stretch.upper <= piece.upper);
            alive.map(|piece| piece.size).sum()
        };
        let mut alive: Vec<(u64, u32)> =
            component.iter().map(|&body| (held(body), body)).filter(|&(held, _)| held > 0).collect();
        alive.sort_unstable_by_key(|&(held, body)| (std::cmp::Reverse(held), body));
        let mut apart: Vec<u32> = Vec::new();
        let mut saved = 0;
        for (held, body) in alive {
            if apart.iter().any(|&other| pairs.contains(&(body, other))) {
                saved += held;
            } else {
                apart.push(body);
            }
        }
        if saved > 0 {
            savings.push((stretch, saved));
        }
    }
    savings
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
