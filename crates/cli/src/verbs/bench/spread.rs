//! What several measurements of one thing come to.

use serde::Serialize;

use crate::arguments::numbers::median;

/// The middle of several numbers, and how far they spread.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(super) struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// Of any numbers; zero where there are none.
    pub fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (numbers.first(), numbers.last()) else { return Self::default() };
        Self { median: median(&numbers).unwrap_or_default(), low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_between_the_extremes() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 9.0]), Spread { median: 3.0, low: 1.0, high: 9.0 });
        assert_eq!(Spread::of(vec![2.0, 1.0]), Spread { median: 1.5, low: 1.0, high: 2.0 });
        assert_eq!(Spread::of(vec![]), Spread::default());
    }
}
