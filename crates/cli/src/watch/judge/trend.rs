//! The trend of a floor: Theil and Sen's slope with an interval by ranks, widened where neighbours are alike; and
//! whether it bends, by a parabola of least squares.

use serde::Serialize;

use super::Point;

/// How fast something grows, and between which rates that lies with 95% confidence.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Trend {
    /// The median of the slopes between any two points.
    pub slope: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// How sure it is that the slope lies on its side of the rate that is called a leak, from 0.5 to 1.
    pub confidence: f64,
}

/// Standard deviations of a two-sided 95%.
const SIGMAS: f64 = 1.96;

impl Trend {
    /// The trend of `points`, of which there are some; `rate` is what its confidence is about.
    pub fn of(points: &[Point], rate: f64) -> Self {
        let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * points.len() / 2);
        for (place, first) in points.iter().enumerate() {
            let behind = points[place + 1..].iter().filter(|second| second.at > first.at);
            slopes.extend(behind.map(|second| (second.value - first.value) / (second.at - first.at)));
        }
        if slopes.is_empty() {
            return Self { slope: 0.0, low: 0.0, high: 0.0, confidence: 0.5 };
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let slope = median(&slopes);
        let residuals: Vec<f64> = points.iter().map(|point| point.value - slope * point.at).collect();
        let n = points.len() as f64;
        let spread = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * inflation(&residuals)).sqrt();
        let pairs = slopes.len() as f64;
        let rank = |place: f64| slopes[(place.round().max(0.0) as usize).min(slopes.len() - 1)];
        let low = rank((pairs - SIGMAS * spread) / 2.0 - 1.0);
        let high = rank(f64::midpoint(pairs, SIGMAS * spread));
        let error = (high - low) / (2.0 * SIGMAS);
        let distance = (slope - rate).abs();
        let confidence = if error > 0.0 { normal(distance / error) } else { 1.0 };
        Self { slope, low, high, confidence: confidence.min(0.999) }
    }
}

/// By how much the variance of a sum grows because neighbours are alike.
fn inflation(residuals: &[f64]) -> f64 {
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let variance: f64 = residuals.iter().map(|value| (value - mean).powi(2)).sum();
    let together: f64 = residuals.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    let alike = (together / variance).clamp(0.0, 0.9);
    (1.0 + alike) / (1.0 - alike)
}

/// Whether the last third grew far less than the trend says.
pub(super) fn has_stopped(points: &[Point], trend: &Trend) -> bool {
    let n = points.len();
    if n < 9 {
        return false;
    }
    let third = n * 2 / 3;
    let mean = |part: &[Point]| {
        let count = part.len() as f64;
        let (at, value) = part.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.at, sum.1 + point.value));
        (at / count, value / count)
    };
    let (from, to) = (mean(&points[third - 3..third]), mean(&points[n - 3..]));
    let expected = trend.slope * (to.0 - from.0);
    let grown = to.1 - from.1;
    let noise = Parabola::of(points).map_or(0.0, |parabola| parabola.noise);
    grown < 0.2 * expected && expected - grown > 1.6 * noise
}

/// Whether the growth surely slows down, so that it is at its end below three quarters of what it was.
pub(super) fn bends(points: &[Point]) -> bool {
    Parabola::of(points).is_some_and(|Parabola { slope, curve, curve_error, .. }| {
        curve < -4.0 * curve_error && slope + 2.0 * curve < 0.75 * slope
    })
}

/// A parabola over a time from 0 to 1, and how well it fits.
struct Parabola {
    slope: f64,
    curve: f64,
    curve_error: f64,
    noise: f64,
}

impl Parabola {
    fn of(points: &[Point]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let length = last.at - first.at;
        if points.len() < 5 || length <= 0.0 {
            return None;
        }
        // Polynomials that are orthogonal over these points: each coefficient then stands alone.
        let times: Vec<f64> = points.iter().map(|point| (point.at - first.at) / length).collect();
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let linear: Vec<f64> = times.iter().map(|time| time - mean).collect();
        let square = dot(&linear, &linear);
        let skew = linear.iter().map(|x| x.powi(3)).sum::<f64>() / square;
        let bent: Vec<f64> = linear.iter().map(|x| x * x - skew * x - square / n).collect();
        let bent_square = dot(&bent, &bent);
        if square <= 0.0 || bent_square <= 0.0 {
            return None;
        }
        let level = values.iter().sum::<f64>() / n;
        let rise = dot(&values, &linear) / square;
        let curve = dot(&values, &bent) / bent_square;
        let residuals: Vec<f64> =
            (0..times.len()).map(|at| values[at] - level - rise * linear[at] - curve * bent[at]).collect();
        let noise = (dot(&residuals, &residuals) / (n - 3.0)).sqrt();
        let curve_error = noise * (inflation(&residuals) / bent_square).sqrt();
        let slope = rise - curve * (2.0 * mean + skew);
        Some(Self { slope, curve, curve_error, noise })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The median of values in order.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// The share of a normal distribution below `deviations` (Abramowitz and Stegun 26.2.17).
fn normal(deviations: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * deviations);
    let tail = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum: f64 = tail.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    1.0 - (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
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
    fn a_parabola_is_found_again() {
        let parabola = Parabola::of(&points(|at| 3.0 + 4.0 * at / 29.0 - 1.5 * (at / 29.0).powi(2))).unwrap();
        assert!((parabola.slope - 4.0).abs() < 1e-9 && (parabola.curve + 1.5).abs() < 1e-9);
        assert!(parabola.noise < 1e-9);
    }

    #[test]
    fn only_what_slows_down_bends() {
        assert!(bends(&points(|at| (at + 30.0).ln())));
        assert!(!bends(&points(|at| at)) && !bends(&points(|at| at * at)));
    }

    #[test]
    fn the_normal_distribution_is_the_one_of_the_tables() {
        for (deviations, share) in [(0.0, 0.5), (1.0, 0.8413), (1.96, 0.975), (3.0, 0.99865)] {
            assert!((normal(deviations) - share).abs() < 1e-4);
        }
    }
}
