//! In-place pairs: which of them to let share an address, and how low sharing could bring the peak.

use std::collections::BTreeMap;

use lowtide_core::{BufferIndex, Lifetime, Problem};
use rustc_hash::FxHashSet;

use crate::random::Random;
use crate::rigid::Ties;

/// The pairs of a problem, and what they may be tied to.
pub(crate) struct Sharing<'a> {
    problem: &'a Problem,
    /// Pairs by the bytes that sharing saves, largest first.
    pairs: Vec<(BufferIndex, BufferIndex)>,
    /// The same by the buffers that stand for what each is tied to.
    allowed: FxHashSet<(u32, u32)>,
    /// Pairs as the problem lists them.
    listed: FxHashSet<(BufferIndex, BufferIndex)>,
}

impl<'a> Sharing<'a> {
    /// `ties` are those of the problem without any sharing.
    pub fn new(problem: &'a Problem, ties: &Ties) -> Self {
        let mut pairs = problem.may_share.clone();
        let saves = |&(a, b): &(BufferIndex, BufferIndex)| problem.buffer(a).size.min(problem.buffer(b).size);
        pairs.sort_by_key(|pair| std::cmp::Reverse(saves(pair)));
        let head = |buffer| ties.root(buffer);
        let allowed = problem
            .may_share
            .iter()
            .filter(|&&(a, b)| head(a).1 == 0 && head(b).1 == 0)
            .flat_map(|&(a, b)| [(head(a).0, head(b).0), (head(b).0, head(a).0)])
            .collect();
        Self { problem, pairs, allowed, listed: problem.may_share.iter().copied().collect() }
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
                let (root_a, above_a) = ties.root(a);
                let (root_b, above_b) = ties.root(b);
                let (first, second) = (self.problem.buffer(a), self.problem.buffer(b));
                above_a == 0
                    && above_b == 0
                    && first.class == second.class
                    && first.pin.is_none_or(|pin| second.pin.is_none_or(|other| other == pin))
                    && first.align.checked_common_multiple(second.align).is_some_and(|align| align.get() < 1 << 40)
                    && (!first.lifetime.overlaps(second.lifetime) || self.allowed.contains(&(root_a, root_b)))
            })
        })
    }

    /// Ties with each pair that could share left out with the given probability.
    pub fn sampled(&self, ties: &Ties, leave_out: f64, random: &mut Random) -> Ties {
        self.tied(ties, || random.fraction() < leave_out)
    }

    /// Stretches of time with the most bytes that sharing could save in them: what pairs hold beyond the largest
    /// set of them in which no two may share.
    pub fn savings(&self) -> Vec<(Lifetime, u64)> {
        let mut savings = Vec::new();
        for component in self.components() {
            let mut times: Vec<i64> = component
                .iter()
                .flat_map(|&buffer| {
                    let Lifetime { lower, upper } = self.problem.buffer(buffer).lifetime;
                    [lower, upper]
                })
                .collect();
            times.sort_unstable();
            times.dedup();
            for window in times.windows(2) {
                let stretch = Lifetime { lower: window[0], upper: window[1] };
                let alive: Vec<BufferIndex> = component
                    .iter()
                    .copied()
                    .filter(|&buffer| self.problem.buffer(buffer).lifetime.contains(stretch))
                    .collect();
                let saved = self.most_saved(&alive);
                if saved > 0 {
                    savings.push((stretch, saved));
                }
            }
        }
        savings
    }

    /// What `alive` holds together less what it must hold: a set of which no two may share, picked greedily.
    fn most_saved(&self, alive: &[BufferIndex]) -> u64 {
        let mut by_size = alive.to_vec();
        by_size.sort_by_key(|&buffer| (std::cmp::Reverse(self.problem.buffer(buffer).size), buffer));
        let mut apart: Vec<BufferIndex> = Vec::new();
        for buffer in by_size {
            if apart.iter().all(|&other| !self.is_pair(buffer, other)) {
                apart.push(buffer);
            }
        }
        let sum = |buffers: &[BufferIndex]| -> u64 {
            buffers.iter().map(|&buffer| self.problem.buffer(buffer).size.get()).sum()
        };
        sum(alive) - sum(&apart)
    }

    fn is_pair(&self, a: BufferIndex, b: BufferIndex) -> bool {
        self.listed.contains(&(a, b)) || self.listed.contains(&(b, a))
    }

    /// Buffers connected by pairs.
    fn components(&self) -> Vec<Vec<BufferIndex>> {
        fn find(parent: &BTreeMap<BufferIndex, BufferIndex>, mut at: BufferIndex) -> BufferIndex {
            while let Some(&next) = parent.get(&at)
                && next != at
            {
                at = next;
            }
            at
        }
        let mut parent: BTreeMap<BufferIndex, BufferIndex> = BTreeMap::new();
        for &(a, b) in &self.problem.may_share {
            parent.entry(a).or_insert(a);
            parent.entry(b).or_insert(b);
            let (root_a, root_b) = (find(&parent, a), find(&parent, b));
            if root_a != root_b {
                parent.insert(root_a.max(root_b), root_a.min(root_b));
            }
        }
        let mut components: BTreeMap<BufferIndex, Vec<BufferIndex>> = BTreeMap::new();
        for &buffer in parent.keys() {
            components.entry(find(&parent, buffer)).or_default().push(buffer);
        }
        components.into_values().collect()
    }
}
