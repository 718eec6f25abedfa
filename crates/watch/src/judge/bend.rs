//! Whether growth slows down or has stopped, by a parabola of least squares.

use super::Point;
use super::trend::{Trend, dot, inflation};

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

/// Whether it cannot be ruled out that the growth slows down, so that it is at its end below half of what it was.
pub(super) fn may_bend(points: &[Point]) -> bool {
    Parabola::of(points)
        .is_some_and(|Parabola { slope, curve, curve_error, .. }| slope + 2.0 * (curve - curve_error) < 0.5 * slope)
}

/// The one that lies closer to a parabola.
pub(super) fn smoother(one: Vec<Point>, other: Vec<Point>) -> Vec<Point> {
    let noise = |points: &[Point]| Parabola::of(points).map_or(f64::INFINITY, |parabola| parabola.noise);
    if noise(&other) < noise(&one) { other } else { one }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn points(value: impl Fn(f64) -> f64) -> Vec<Point> {
        (0..30).map(|at| Point { at: f64::from(at), value: value(f64::from(at)) }).collect()
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
    fn what_is_noisy_may_bend() {
        let noise = |at: f64| if (at as u32).is_multiple_of(2) { 4.0 } else { -4.0 };
        assert!(may_bend(&points(|at| 0.2 * at + noise(at))) && !may_bend(&points(|at| 5.0 * at + noise(at))));
    }
}
