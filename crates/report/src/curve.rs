//! Amounts over time that change at events and stay between them: what is alive, what is reserved.

use lowtide_core::{Bytes, Usage};

/// Bytes from each of its points on until the next; nothing before the first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Curve {
    /// Times, each later than the one before, with the bytes from then on.
    pub points: Vec<(i64, Bytes)>,
}

impl Curve {
    /// What an allocator had reserved, where that was recorded.
    pub fn reserved(usage: &Usage) -> Self {
        Self { points: usage.reserved.clone() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_level_stays_until_the_next_point() {
        let curve = Curve { points: [(0, 5), (2, 7), (4, 0)].map(|(time, level)| (time, Bytes::new(level))).into() };
        assert_eq!(curve.highest(), Some((2, Bytes::new(7))));
        assert_eq!([-1, 3, 9].map(|time| curve.at(time).get()), [0, 7, 0]);
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
