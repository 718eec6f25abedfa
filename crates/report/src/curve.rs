//! Amounts over time that change at events and stay between them: what is alive, what is held.

use lowtide_core::{Buffer, Bytes, Problem, Usage};

/// Bytes from each of its points on until the next; nothing before the first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Curve {
    /// Times, each later than the one before, with the bytes from then on.
    pub points: Vec<(i64, Bytes)>,
}

impl Curve {
    /// What is alive. Aliases count once, as much as the largest that is alive; what a buffer lets go of in a gap
    /// does not count.
    pub fn live(problem: &Problem) -> Self {
        let mut is_alias = vec![false; problem.buffers.len()];
        problem.aliases.iter().flatten().for_each(|member| is_alias[member.get()] = true);
        let mut changes: Vec<(i64, i64)> = Vec::with_capacity(2 * problem.buffers.len());
        for (buffer, _) in problem.buffers.iter().zip(is_alias).filter(|&(_, is_alias)| !is_alias) {
            changes_of(buffer, &mut |time, change| changes.push((time, change)));
        }
        for set in &problem.aliases {
            alias_changes(set.iter().map(|&member| problem.buffer(member)), &mut changes);
        }
        Self::of_changes(changes)
    }

    /// What an allocator held, where that was recorded.
    pub fn reserved(usage: &Usage) -> Self {
        Self { points: usage.reserved.clone() }
    }

    fn of_changes(mut changes: Vec<(i64, i64)>) -> Self {
        changes.sort_unstable_by_key(|&(time, _)| time);
        let mut points: Vec<(i64, Bytes)> = Vec::new();
        let mut level = 0_i64;
        for of_one_time in changes.chunk_by(|a, b| a.0 == b.0) {
            let before = level;
            level += of_one_time.iter().map(|&(_, change)| change).sum::<i64>();
            if level != before {
                points.push((of_one_time[0].0, Bytes::new(level.max(0) as u64)));
            }
        }
        Self { points }
    }

    /// The highest point; the earliest where several are as high.
    pub fn highest(&self) -> Option<(i64, Bytes)> {
        self.points.iter().copied().reduce(|best, point| if point.1 > best.1 { point } else { best })
    }

    /// The level at `time`.
    pub fn at(&self, time: i64) -> Bytes {
        let after = self.points.partition_point(|&(point, _)| point <= time);
        self.points[..after].last().map_or(Bytes::ZERO, |&(_, bytes)| bytes)
    }

    /// The same shape with about `most` points: of those that lie close together the highest and the last stay, so
    /// that no peak is lost.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        if self.points.len() <= most {
            return self.clone();
        }
        let (first, last) = (self.points[0].0, self.points[self.points.len() - 1].0);
        let width = last.abs_diff(first) / (most as u64 / 2).max(1) + 1;
        let column = |time: i64| time.abs_diff(first) / width;
        let of_column = self.points.chunk_by(|a, b| column(a.0) == column(b.0));
        let points = of_column.flat_map(|points| {
            let highest = points.iter().copied().reduce(|best, point| if point.1 > best.1 { point } else { best });
            let end = points.last().copied();
            highest.into_iter().chain(end.filter(|end| highest != Some(*end)))
        });
        Self { points: points.collect() }
    }
}

/// What comes and what goes with `buffer`.
fn changes_of(buffer: &Buffer, tell: &mut impl FnMut(i64, i64)) {
    if buffer.lifetime.is_empty() {
        return;
    }
    let size = buffer.size.get() as i64;
    tell(buffer.lifetime.lower, size);
    for gap in &buffer.gaps {
        let stays = gap.window.map_or(0, |window| (window.upper.get() - window.lower.get()) as i64);
        tell(gap.lifetime.lower, stays - size);
        tell(gap.lifetime.upper, size - stays);
    }
    tell(buffer.lifetime.upper, -size);
}

/// The changes of what the largest alive member holds.
fn alias_changes<'a>(members: impl Iterator<Item = &'a Buffer>, changes: &mut Vec<(i64, i64)>) {
    let mut own: Vec<(i64, usize, i64)> = Vec::new();
    let mut count = 0;
    for (member, buffer) in members.enumerate() {
        changes_of(buffer, &mut |time, change| own.push((time, member, change)));
        count = member + 1;
    }
    own.sort_unstable_by_key(|&(time, ..)| time);
    let mut levels = vec![0_i64; count];
    let mut highest = 0;
    for of_one_time in own.chunk_by(|a, b| a.0 == b.0) {
        for &(_, member, change) in of_one_time {
            levels[member] += change;
        }
        let now = levels.iter().copied().max().unwrap_or(0);
        changes.push((of_one_time[0].0, now - highest));
        highest = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{BufferIndex, Gap, Lifetime, Window};
    use proptest::prelude::*;

    fn buffer(lower: i64, upper: i64, size: u64) -> Buffer {
        Buffer::new(format!("{lower}-{upper}-{size}"), Lifetime { lower, upper }, Bytes::new(size))
    }

    fn points(curve: &Curve) -> Vec<(i64, u64)> {
        curve.points.iter().map(|&(time, bytes)| (time, bytes.get())).collect()
    }

    #[test]
    fn what_ends_makes_room_for_what_begins_at_the_same_event() {
        let curve = Curve::live(&Problem::new(vec![buffer(0, 2, 5), buffer(2, 4, 7), buffer(1, 1, 99)]));
        assert_eq!(points(&curve), [(0, 5), (2, 7), (4, 0)]);
        assert_eq!(curve.highest(), Some((2, Bytes::new(7))));
        assert_eq!((curve.at(-1), curve.at(3), curve.at(9)), (Bytes::ZERO, Bytes::new(7), Bytes::ZERO));
    }

    #[test]
    fn gaps_and_aliases_count_for_what_they_hold() {
        let mut swapped = buffer(0, 9, 10);
        let window = Some(Window { lower: Bytes::new(2), upper: Bytes::new(5) });
        swapped.gaps.push(Gap { lifetime: Lifetime { lower: 3, upper: 6 }, window });
        let mut problem = Problem::new(vec![swapped, buffer(4, 5, 100), buffer(0, 8, 60)]);
        problem.aliases.push(vec![BufferIndex::new(1), BufferIndex::new(2)]);
        assert_eq!(points(&Curve::live(&problem)), [(0, 70), (3, 63), (4, 103), (5, 63), (6, 70), (8, 10), (9, 0)]);
    }

    proptest! {
        #[test]
        fn a_thinned_curve_keeps_the_peak_and_few_points(levels in prop::collection::vec(0_u64..1000, 1..400)) {
            let points = levels.iter().enumerate().map(|(time, &level)| (time as i64 * 3, Bytes::new(level))).collect();
            let curve = Curve { points };
            let thin = curve.thinned(40);
            prop_assert!(thin.points.len() <= 42);
            prop_assert_eq!(thin.highest().map(|point| point.1), curve.highest().map(|point| point.1));
            prop_assert_eq!(thin.points.last(), curve.points.last());
            prop_assert!(thin.points.iter().all(|point| curve.points.contains(point)));
        }
    }
}
