//! A change to some buffers, and what it does to the bytes alive: the buffers it reaches are counted as they were and
//! as they would be, and the difference is added to the curve.

use lowtide_core::{Buffer, BufferIndex, Bytes, Gap, Lifetime, Problem, Window};

use super::account::{Account, deltas_alone, nameless};
use super::curve::Delta;

/// Some buffers as they would be, and pairs that would be one.
#[derive(Default)]
pub(super) struct Edit {
    buffers: Vec<(BufferIndex, Buffer)>,
    joined: Vec<(BufferIndex, BufferIndex)>,
}

impl Edit {
    /// The buffer as it would be, to be changed further. Changes to one buffer follow each other.
    fn buffer(&mut self, problem: &Problem, index: BufferIndex) -> &mut Buffer {
        if self.buffers.last().is_none_or(|&(last, _)| last != index) {
            let copy = nameless(problem.buffer(index));
            self.buffers.push((index, copy));
        }
        let last = self.buffers.len() - 1;
        &mut self.buffers[last].1
    }

    /// `index` ends at `at`, which lies within its life.
    pub fn end(&mut self, problem: &Problem, index: BufferIndex, at: i64) {
        let buffer = self.buffer(problem, index);
        buffer.lifetime.upper = at;
        buffer.gaps.retain(|gap| gap.lifetime.lower < at);
        if let Some(last) = buffer.gaps.last_mut() {
            last.lifetime.upper = last.lifetime.upper.min(at);
        }
    }

    /// `index` holds nothing during `window`.
    pub fn leave(&mut self, problem: &Problem, index: BufferIndex, window: Lifetime) {
        let gaps = &mut self.buffer(problem, index).gaps;
        let absence = Gap { lifetime: window, window: None };
        if gaps.last().is_none_or(|last| last.lifetime.upper <= window.lower) {
            gaps.push(absence);
            return;
        }
        let mut kept = vec![absence];
        for gap in gaps.iter() {
            let Lifetime { lower, upper } = gap.lifetime;
            let before = Lifetime { lower, upper: upper.min(window.lower) };
            let after = Lifetime { lower: lower.max(window.upper), upper };
            let parts = [before, after].into_iter().filter(|part| !part.is_empty());
            kept.extend(parts.map(|part| Gap { lifetime: part, window: gap.window }));
        }
        kept.sort_by_key(|gap| gap.lifetime);
        *gaps = kept;
    }

    /// `index` holds one of `parts` equal shares at a time.
    pub fn divide(&mut self, problem: &Problem, index: BufferIndex, parts: u32) {
        let share = |bytes: Bytes| Bytes::new(bytes.get().div_ceil(u64::from(parts)));
        let buffer = self.buffer(problem, index);
        buffer.size = share(buffer.size);
        for window in buffer.gaps.iter_mut().filter_map(|gap| gap.window.as_mut()) {
            *window = Window { lower: Bytes::ZERO, upper: share(window.upper - window.lower) };
        }
    }

    /// `a` and `b` lie at one address.
    pub fn join(&mut self, a: BufferIndex, b: BufferIndex) {
        self.joined.push((a, b));
    }

    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty() && self.joined.is_empty()
    }

    /// What the bytes alive would be more or fewer by, sorted by time; `None` where relations forbid the change.
    pub fn deltas(&self, account: &Account) -> Option<Vec<Delta>> {
        let (alone, related): (Vec<_>, Vec<_>) =
            self.buffers.iter().partition(|(index, _)| self.joined.is_empty() && account.is_alone(*index));
        let mut deltas = Vec::new();
        for (index, after) in alone {
            deltas.extend(deltas_alone(account.problem.buffer(*index)).map(|(time, change)| (time, -change)));
            deltas.extend(deltas_alone(after));
        }
        if !related.is_empty() || !self.joined.is_empty() {
            self.add_related(account, &related, &mut deltas)?;
        }
        deltas.sort_unstable_by_key(|&(time, _)| time);
        Some(deltas)
    }

    /// The same for buffers whose bytes depend on those of others.
    fn add_related(
        &self,
        account: &Account,
        changed: &[&(BufferIndex, Buffer)],
        deltas: &mut Vec<Delta>,
    ) -> Option<()> {
        let joined = self.joined.iter().flat_map(|&(a, b)| [a, b]);
        let reached: Vec<BufferIndex> = changed.iter().map(|(index, _)| *index).chain(joined).collect();
        let members = account.with_related(&reached);
        let before = account.excerpt(&members);
        let mut after = before.clone();
        let place = |index: BufferIndex| members.binary_search(&index).ok();
        for (index, buffer) in changed {
            after.buffers[place(*index)?].clone_from(buffer);
        }
        for &(a, b) in &self.joined {
            after.aliases.push(vec![BufferIndex::new(place(a)?), BufferIndex::new(place(b)?)]);
        }
        deltas.extend(Account::new(&after).ok()?.deltas());
        deltas.extend(Account::new(&before).ok()?.deltas().into_iter().map(|(time, change)| (time, -change)));
        Some(())
    }
}
