//! Whether a [`Problem`] makes sense: the one place that says what a well-formed problem is.

use std::collections::HashSet;

use crate::{Align, Buffer, BufferIndex, Bytes, Lifetime, PoolIndex, Problem, ProblemError};

impl Problem {
    /// Whether the problem is well formed: names are unique, arithmetic cannot overflow, gaps lie inside
    /// lifetimes, indices exist and relations do not contradict each other.
    ///
    /// A solver may be given a problem only after this. Costs one pass and a hash set of the names.
    pub fn check(&self) -> Result<(), ProblemError> {
        self.check_pools()?;
        self.check_buffers()?;
        self.check_totals()?;
        self.check_relations()
    }

    fn check_pools(&self) -> Result<(), ProblemError> {
        if self.pools.is_empty() {
            return Err(ProblemError::BadPools("there is no pool".to_owned()));
        }
        let mut names = HashSet::new();
        for pool in &self.pools {
            if !names.insert(&*pool.name) {
                return Err(ProblemError::BadPools(format!("two pools are named `{}`", pool.name)));
            }
            if let Some(target) = pool.spill {
                self.known_pool(target, || format!("pool `{}`", pool.name))?;
            }
        }
        self.check_spills()
    }

    /// What spills must end somewhere: walks each chain once, up to a pool that an earlier walk passed.
    fn check_spills(&self) -> Result<(), ProblemError> {
        let mut passed_by = vec![None; self.pools.len()];
        for start in 0..self.pools.len() {
            let mut at = Some(PoolIndex::new(start));
            while let Some(pool) = at {
                match passed_by[pool.get()] {
                    Some(walk) if walk == start => {
                        let name = &self.pools[pool.get()].name;
                        return Err(ProblemError::BadPools(format!("what pool `{name}` spills comes back to it")));
                    }
                    Some(_) => break,
                    None => passed_by[pool.get()] = Some(start),
                }
                at = self.pools[pool.get()].spill;
            }
        }
        Ok(())
    }

    fn check_buffers(&self) -> Result<(), ProblemError> {
        let mut ids = HashSet::with_capacity(self.buffers.len());
        for (index, buffer) in self.indices().zip(&self.buffers) {
            let id = || buffer.id.clone();
            if !ids.insert(&*buffer.id) {
                return Err(ProblemError::DuplicateBuffer { id: id(), second: index });
            }
            let Lifetime { lower, upper } = buffer.lifetime;
            if lower > upper {
                return Err(ProblemError::BackwardLifetime { id: id(), buffer: index, lower, upper });
            }
            if let Some(gap) = bad_gap(buffer) {
                return Err(ProblemError::BadGap { id: id(), buffer: index, gap });
            }
            if let Some(pin) = buffer.pin.filter(|&pin| !buffer.align.holds(pin)) {
                return Err(ProblemError::MisalignedPin { id: id(), buffer: index, pin, align: buffer.align });
            }
            self.known_pool(buffer.pool, || format!("buffer `{}`", buffer.id))?;
        }
        Ok(())
    }

    /// Stacks everything with its worst padding on top of the highest pin: no placement can end higher, so
    /// none can overflow.
    fn check_totals(&self) -> Result<(), ProblemError> {
        let mut total = self.buffers.iter().filter_map(|buffer| buffer.pin).max().unwrap_or_default();
        for (index, buffer) in self.indices().zip(&self.buffers) {
            let padding = Bytes::new(buffer.align.get() - 1);
            total = total
                .checked_add(buffer.size)
                .and_then(|sum| sum.checked_add(padding))
                .filter(|sum| i64::try_from(sum.get()).is_ok())
                .ok_or_else(|| ProblemError::TooLarge { id: buffer.id.clone(), buffer: index })?;
        }
        Ok(())
    }

    fn check_relations(&self) -> Result<(), ProblemError> {
        self.check_sets("alias set", &self.aliases)?;
        self.check_sets("contiguous group", &self.contiguous)?;
        for (number, set) in self.aliases.iter().enumerate() {
            let what = || format!("alias set {number}");
            let mut pins = set.iter().filter_map(|&member| self.buffer(member).pin);
            if let Some(first) = pins.next()
                && pins.any(|pin| pin != first)
            {
                return Err(contradiction(what(), "its members are pinned at different offsets"));
            }
            self.one_pool_and_class(set, what)?;
            self.common_align(set, what)?;
        }
        for (number, group) in self.contiguous.iter().enumerate() {
            let what = || format!("contiguous group {number}");
            self.one_pool_and_class(group, what)?;
            self.common_align(group, what)?;
        }
        for (number, &(a, b)) in self.may_share.iter().enumerate() {
            let what = || format!("may-share pair {number}");
            self.known_buffer(a, what)?;
            self.known_buffer(b, what)?;
            if a == b {
                return Err(contradiction(what(), "it names one buffer twice"));
            }
        }
        Ok(())
    }

    /// Members exist, and no buffer is in two sets of a kind or twice in one.
    fn check_sets(&self, kind: &str, sets: &[Vec<BufferIndex>]) -> Result<(), ProblemError> {
        let mut seen = HashSet::new();
        for (number, set) in sets.iter().enumerate() {
            for &member in set {
                self.known_buffer(member, || format!("{kind} {number}"))?;
                if !seen.insert(member) {
                    let id = &self.buffer(member).id;
                    return Err(contradiction(format!("{kind} {number}"), &format!("buffer `{id}` is already in one")));
                }
            }
        }
        Ok(())
    }

    fn one_pool_and_class(&self, set: &[BufferIndex], what: impl Fn() -> String) -> Result<(), ProblemError> {
        let key = |&member: &BufferIndex| (self.buffer(member).pool, self.buffer(member).class);
        if set.windows(2).any(|pair| key(&pair[0]) != key(&pair[1])) {
            return Err(contradiction(what(), "its members are of different pools or classes"));
        }
        Ok(())
    }

    fn common_align(&self, set: &[BufferIndex], what: impl Fn() -> String) -> Result<(), ProblemError> {
        set.iter()
            .try_fold(Align::ONE, |common, &member| common.checked_common_multiple(self.buffer(member).align))
            .filter(|common| common.get() < 1 << 62)
            .map(|_| ())
            .ok_or_else(|| contradiction(what(), "its members' alignments have no common multiple in range"))
    }

    fn known_buffer(&self, index: BufferIndex, what: impl Fn() -> String) -> Result<(), ProblemError> {
        known(index.get(), self.buffers.len(), "buffer", what)
    }

    fn known_pool(&self, index: PoolIndex, what: impl Fn() -> String) -> Result<(), ProblemError> {
        known(index.get(), self.pools.len(), "pool", what)
    }
}

fn known(index: usize, count: usize, kind: &'static str, what: impl Fn() -> String) -> Result<(), ProblemError> {
    if index < count { Ok(()) } else { Err(ProblemError::UnknownIndex { what: what(), kind, index, count }) }
}

fn contradiction(what: String, why: &str) -> ProblemError {
    ProblemError::Contradiction { what, why: why.to_owned() }
}

/// The first gap that is empty, out of order, outside the buffer's life or with a window outside the buffer.
fn bad_gap(buffer: &Buffer) -> Option<Lifetime> {
    let mut free_from = buffer.lifetime.lower;
    for gap in &buffer.gaps {
        let Lifetime { lower, upper } = gap.lifetime;
        let window_fits = gap.window.is_none_or(|window| window.lower <= window.upper && window.upper <= buffer.size);
        if lower < free_from || lower >= upper || upper > buffer.lifetime.upper || !window_fits {
            return Some(gap.lifetime);
        }
        free_from = upper;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gap, Pool, Window};

    fn life(lower: i64, upper: i64) -> Lifetime {
        Lifetime { lower, upper }
    }

    fn three() -> Problem {
        Problem::new(["a", "b", "c"].map(|id| Buffer::new(id, life(0, 4), Bytes::new(8))).into())
    }

    fn at(position: usize) -> BufferIndex {
        BufferIndex::new(position)
    }

    #[test]
    fn a_plain_problem_is_well_formed() {
        assert_eq!(three().check(), Ok(()));
    }

    #[test]
    fn names_must_be_unique() {
        let mut problem = three();
        problem.buffers[2].id = "a".into();
        assert!(matches!(problem.check(), Err(ProblemError::DuplicateBuffer { second, .. }) if second == at(2)));
    }

    #[test]
    fn sizes_pins_and_padding_must_add_up_within_63_bits() {
        let mut problem = three();
        problem.buffers[1].size = Bytes::new(i64::MAX as u64);
        assert!(matches!(problem.check(), Err(ProblemError::TooLarge { buffer, .. }) if buffer == at(1)));
        let mut problem = three();
        problem.buffers[0].align = Align::new(u64::MAX).unwrap();
        assert!(matches!(problem.check(), Err(ProblemError::TooLarge { .. })));
        let mut problem = three();
        problem.buffers[0].pin = Some(Bytes::new(u64::MAX));
        assert!(matches!(problem.check(), Err(ProblemError::TooLarge { .. })));
    }

    #[test]
    fn gaps_lie_in_order_inside_the_life_and_keep_only_what_there_is() {
        let gap = |lower, upper, window| Gap { lifetime: life(lower, upper), window };
        let window = |lower, upper| Some(Window { lower: Bytes::new(lower), upper: Bytes::new(upper) });
        for (gaps, fine) in [
            (vec![gap(1, 2, None), gap(2, 3, window(0, 8))], true),
            (vec![gap(0, 5, None)], false),
            (vec![gap(2, 3, None), gap(1, 2, None)], false),
            (vec![gap(2, 2, None)], false),
            (vec![gap(1, 2, window(4, 9))], false),
        ] {
            let mut problem = three();
            problem.buffers[0].gaps = gaps;
            assert_eq!(problem.check().is_ok(), fine, "{problem:?}");
        }
    }

    #[test]
    fn relations_must_be_possible() {
        let mut problem = three();
        problem.aliases = vec![vec![at(0), at(1)], vec![at(1), at(2)]];
        assert!(matches!(problem.check(), Err(ProblemError::Contradiction { .. })));

        let mut problem = three();
        problem.contiguous = vec![vec![at(0), at(9)]];
        assert!(matches!(problem.check(), Err(ProblemError::UnknownIndex { index: 9, .. })));

        let mut problem = three();
        problem.aliases = vec![vec![at(0), at(1)]];
        problem.buffers[0].pin = Some(Bytes::new(0));
        problem.buffers[1].pin = Some(Bytes::new(8));
        assert!(matches!(problem.check(), Err(ProblemError::Contradiction { .. })));

        let mut problem = three();
        problem.may_share = vec![(at(1), at(1))];
        assert!(matches!(problem.check(), Err(ProblemError::Contradiction { .. })));
    }

    #[test]
    fn spills_may_not_go_in_a_circle() {
        let mut problem = three();
        problem.pools = vec![Pool::unlimited("fast"), Pool::unlimited("slow")];
        problem.pools[0].spill = Some(PoolIndex::new(1));
        assert_eq!(problem.check(), Ok(()));
        problem.pools[1].spill = Some(PoolIndex::new(0));
        assert!(matches!(problem.check(), Err(ProblemError::BadPools(_))));
    }
}
