//! The bytes alive over time, as a tree of maxima: what the highest moment of any stretch is, also after a change,
//! and where a level is passed.

use lowtide_core::Lifetime;

/// From a time on, this many bytes more or fewer.
pub(super) type Delta = (i64, i64);

/// The bytes alive over time.
pub(super) struct Curve {
    /// When each section begins.
    starts: Vec<i64>,
    /// Maxima: the root is at one, the children of `n` are `2n` and `2n + 1`, the last half are the sections.
    tree: Vec<u64>,
}

impl Curve {
    /// The curve that `deltas`, sorted by time, add up to.
    pub fn new(deltas: &[Delta]) -> Self {
        let (mut starts, mut loads) = (Vec::new(), Vec::new());
        let mut load = 0_i64;
        for moment in deltas.chunk_by(|a, b| a.0 == b.0) {
            let change: i64 = moment.iter().map(|&(_, change)| change).sum();
            if change != 0 {
                load += change;
                starts.push(moment[0].0);
                loads.push(load as u64);
            }
        }
        let leaves = loads.len().next_power_of_two();
        let mut tree = vec![0; 2 * leaves];
        tree[leaves..leaves + loads.len()].copy_from_slice(&loads);
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].max(tree[2 * node + 1]);
        }
        Self { starts, tree }
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    /// The sections that `time` has events in.
    fn sections(&self, time: Lifetime) -> std::ops::Range<usize> {
        let lower = self.starts.partition_point(|&start| start <= time.lower).saturating_sub(1);
        let upper = self.starts.partition_point(|&start| start < time.upper);
        if time.is_empty() { lower..lower } else { lower..upper.max(lower) }
    }

    /// The most bytes alive at once during `time`.
    pub fn highest(&self, time: Lifetime) -> u64 {
        let sections = self.sections(time);
        let (mut from, mut to) = (sections.start + self.leaves(), sections.end + self.leaves());
        let mut most = 0;
        while from < to {
            if from % 2 == 1 {
                most = most.max(self.tree[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                most = most.max(self.tree[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        most
    }

    /// The same, were `deltas`, sorted by time, added to the curve.
    pub fn highest_with(&self, time: Lifetime, deltas: &[Delta]) -> u64 {
        let (mut from, mut shift, mut most) = (time.lower, 0_i64, 0_i64);
        let mut count = |from: i64, to: i64, shift: i64| {
            if from < to {
                most = most.max(self.highest(Lifetime { lower: from, upper: to }) as i64 + shift);
            }
        };
        for &(at, change) in deltas {
            let until = at.clamp(from, time.upper);
            count(from, until, shift);
            (from, shift) = (until, shift + change);
        }
        count(from, time.upper, shift);
        most as u64
    }

    /// The first event of `time` at which more than `level` bytes are alive.
    pub fn first_above(&self, time: Lifetime, level: u64) -> Option<i64> {
        let section = self.find(1, 0..self.leaves(), &self.sections(time), level, false)?;
        Some(self.starts[section].max(time.lower))
    }

    /// The first event of `time` after the last at which more than `level` bytes are alive.
    pub fn last_above(&self, time: Lifetime, level: u64) -> Option<i64> {
        let section = self.find(1, 0..self.leaves(), &self.sections(time), level, true)?;
        Some(self.starts.get(section + 1).map_or(time.upper, |&next| next.min(time.upper)))
    }

    /// The first section, or the last, among `wanted` and below `node` that is above `level`.
    fn find(
        &self,
        node: usize,
        covers: std::ops::Range<usize>,
        wanted: &std::ops::Range<usize>,
        level: u64,
        last: bool,
    ) -> Option<usize> {
        if self.tree[node] <= level || covers.start >= wanted.end || wanted.start >= covers.end {
            return None;
        }
        if covers.len() == 1 {
            return Some(covers.start);
        }
        let middle = covers.start.midpoint(covers.end);
        let left = || self.find(2 * node, covers.start..middle, wanted, level, last);
        let right = || self.find(2 * node + 1, middle..covers.end, wanted, level, last);
        if last { right().or_else(left) } else { left().or_else(right) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(lower: i64, upper: i64) -> Lifetime {
        Lifetime { lower, upper }
    }

    /// 5 bytes from 0, 9 from 2, 3 from 4, 9 from 6, none from 8.
    fn curve() -> Curve {
        Curve::new(&[(0, 5), (2, 4), (4, -6), (6, 6), (8, -9)])
    }

    #[test]
    fn the_highest_moment_of_a_stretch_counts_its_events_only() {
        let curve = curve();
        let highest = |lower, upper| curve.highest(time(lower, upper));
        assert_eq!([highest(0, 2), highest(0, 3), highest(4, 6), highest(7, 20), highest(-3, 0)], [5, 9, 3, 9, 0]);
        assert_eq!(highest(2, 2), 0);
        assert_eq!(Curve::new(&[]).highest(time(0, 9)), 0);
    }

    #[test]
    fn a_change_is_added_where_it_is() {
        let curve = curve();
        assert_eq!(curve.highest_with(time(0, 8), &[(1, -4), (5, 4)]), 9);
        assert_eq!(curve.highest_with(time(0, 8), &[(1, -4), (8, 4)]), 5);
        assert_eq!(curve.highest_with(time(0, 4), &[(1, -4), (5, 4)]), 5);
        assert_eq!(curve.highest_with(time(2, 4), &[(-5, 2), (3, 2), (3, 2)]), 15);
    }

    #[test]
    fn a_level_is_passed_first_and_last_where_it_is() {
        let curve = curve();
        assert_eq!((curve.first_above(time(0, 8), 5), curve.last_above(time(0, 8), 5)), (Some(2), Some(8)));
        assert_eq!((curve.first_above(time(3, 7), 5), curve.last_above(time(3, 7), 5)), (Some(3), Some(7)));
        assert_eq!((curve.first_above(time(4, 6), 5), curve.last_above(time(4, 6), 5)), (None, None));
        assert_eq!(curve.last_above(time(0, 6), 4), Some(4));
    }
}
