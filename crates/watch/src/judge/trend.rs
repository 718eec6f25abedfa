//! The trend of a floor: Theil and Sen's slope, with an interval by ranks that is widened where neighbours are alike, or by
//! the steps from one value to the next where that is narrower.

use std::f64::consts::SQRT_2;

use super::Point;

/// How fast something grows, and between which rates that lies with 95% confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trend {
    /// The median of the slopes between any two points.
    pub slope: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// How sure it is that the slope lies on its side of the rate that is called a leak, from 0.5 to 1.
    pub confidence: f64,
    /// Which side that is.
    pub is_above: bool,
    /// The lower end of an interval of 99.5%, by which a leak is told.
    pub surely: f64,
}

/// Standard deviations of a two-sided 95%.
const SIGMAS: f64 = 1.96;
/// Standard deviations of a two-sided 99.5%.
const SURE_SIGMAS: f64 = 2.81;

impl Trend {
    /// The trend of `points`, of which there are some; `rate` is what its confidence is about.
    pub fn of(points: &[Point], rate: f64) -> Self {
        let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * points.len() / 2);
        for (place, first) in points.iter().enumerate() {
            let behind = points[place + 1..].iter().filter(|second| second.at > first.at);
            slopes.extend(behind.map(|second| (second.value - first.value) / (second.at - first.at)));
        }
        if slopes.is_empty() {
            return Self { slope: 0.0, low: 0.0, high: 0.0, confidence: 0.5, is_above: rate < 0.0, surely: 0.0 };
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let slope = median(&slopes).unwrap_or_default();
        let interval = |sigmas: f64| {
            let (by_rank, by_step) = (ranked(points, &slopes, slope, sigmas), stepped(points, sigmas));
            let narrower = if by_step.1 - by_step.0 < by_rank.1 - by_rank.0 { by_step } else { by_rank };
            (narrower.0.min(slope), narrower.1.max(slope))
        };
        let ((low, high), (surely, _)) = (interval(SIGMAS), interval(SURE_SIGMAS));
        let error = (high - low) / (2.0 * SIGMAS);
        let distance = (slope - rate).abs();
        let confidence = if error > 0.0 { normal(distance / error) } else { 1.0 };
        Self { slope, low, high, confidence: confidence.min(0.999), is_above: slope > rate, surely }
    }
}

/// The interval by ranks of `slopes`, which are in order, for values that lie by chance around a line.
fn ranked(points: &[Point], slopes: &[f64], slope: f64, sigmas: f64) -> (f64, f64) {
    let residuals: Vec<f64> = points.iter().map(|point| point.value - slope * point.at).collect();
    let (n, pairs, inflation) = (points.len() as f64, slopes.len() as f64, inflation(&residuals));
    let spread = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * inflation).sqrt();
    // Where neighbours are alike there are fewer values than it seems.
    let width = student(sigmas, n / inflation - 2.0) * spread;
    let rank = |place: f64| slopes[(place.round().max(0.0) as usize).min(slopes.len() - 1)];
    (rank((pairs - width) / 2.0 - 1.0), rank(f64::midpoint(pairs, width)))
}

/// The interval for values each of which is the one before and a step: what wanders is told from what grows by how even
/// its steps are.
fn stepped(points: &[Point], sigmas: f64) -> (f64, f64) {
    let freedom = points.len() as f64 - 2.0;
    let length = points.last().zip(points.first()).map_or(0.0, |(last, first)| last.at - first.at);
    if length <= 0.0 || freedom < 1.0 {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let drift = (points[points.len() - 1].value - points[0].value) / length;
    let steps: Vec<f64> =
        points.windows(2).map(|pair| pair[1].value - pair[0].value - drift * (pair[1].at - pair[0].at)).collect();
    let error = (dot(&steps, &steps) * (1.0 + 1.0 / freedom) * inflation(&steps)).sqrt() / length;
    let width = student(sigmas, freedom) * error;
    (drift - width, drift + width)
}

/// How many deviations leave the same tail where the deviation is itself an estimate: Student's t with so many degrees of
/// freedom, by the first term of Cornish and Fisher's series. The exact quantiles of `statrs` find fewer of the tests'
/// leaks for as many false alarms.
fn student(sigmas: f64, freedom: f64) -> f64 {
    sigmas * (1.0 + (sigmas * sigmas + 1.0) / (4.0 * freedom.max(1.0)))
}

/// By how much the variance of a sum grows because neighbours are alike.
pub(super) fn inflation(residuals: &[f64]) -> f64 {
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let variance: f64 = residuals.iter().map(|value| (value - mean).powi(2)).sum();
    let together: f64 = residuals.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    // What is left over a line looks less alike than it is, the more so the fewer there are.
    let (alike, n) = (together / variance, residuals.len() as f64);
    let alike = (alike + (2.0 + 4.0 * alike) / n).clamp(0.0, 0.95);
    (1.0 + alike) / (1.0 - alike)
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The share of a normal distribution below `deviations`.
fn normal(deviations: f64) -> f64 {
    libm::erfc(-deviations / SQRT_2) / 2.0
}

/// The middle of numbers in order, or the mean of the two in the middle.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[low], sorted[high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(value: impl Fn(f64) -> f64) -> Vec<Point> {
        (0..30).map(|at| Point { at: f64::from(at), value: value(f64::from(at)) }).collect()
    }

    #[test]
    fn a_line_has_its_slope_and_no_doubt() {
        let trend = Trend::of(&points(|at| 5.0 + 2.0 * at), 1.0);
        assert!((trend.slope - 2.0).abs() < 1e-9 && (trend.high - trend.low).abs() < 1e-9);
        assert!(trend.confidence > 0.99);
    }

    #[test]
    fn one_wild_value_changes_nothing() {
        let trend = Trend::of(&points(|at| if at as u32 == 7 { 1e9 } else { 2.0 * at }), 1.0);
        assert!((trend.slope - 2.0).abs() < 1e-9, "{trend:?}");
    }

    #[test]
    fn the_normal_distribution_is_the_one_of_the_tables() {
        for (deviations, share) in [(0.0, 0.5), (1.0, 0.8413), (1.96, 0.975), (3.0, 0.99865)] {
            assert!((normal(deviations) - share).abs() < 1e-4);
        }
    }

    #[test]
    fn a_median_stands_in_the_middle_or_between_two() {
        assert_eq!(
            [&[][..], &[4.0], &[1.0, 2.0], &[1.0, 3.0, 9.0]].map(median),
            [None, Some(4.0), Some(1.5), Some(3.0)]
        );
    }
}
