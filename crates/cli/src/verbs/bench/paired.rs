//! Two programs that were measured in turn, in the same rounds: their ratio, and how far it can be trusted.

use serde::Serialize;

/// The geometric mean of the rounds' ratios, and the interval that has the true one in 95 of 100 such measurements.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Ratio {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Ratio {
    /// Of pairs of positive numbers; none of fewer than two.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let logarithms: Vec<f64> =
            pairs.map(|(own, other)| (own / other).ln()).filter(|number| number.is_finite()).collect();
        let rounds = logarithms.len();
        if rounds < 2 {
            return None;
        }
        let mean = logarithms.iter().sum::<f64>() / rounds as f64;
        let squares: f64 = logarithms.iter().map(|number| (number - mean).powi(2)).sum();
        let reach = quantile(rounds - 1) * (squares / ((rounds - 1) * rounds) as f64).sqrt();
        Some(Self { mean: mean.exp(), low: (mean - reach).exp(), high: (mean + reach).exp(), rounds })
    }

    /// How far its ends are from its middle, as a part of that.
    pub fn reach(&self) -> f64 {
        (self.high - self.low) / (2.0 * self.mean)
    }
}

/// What Student's distribution has 2.5% of its weight beyond.
fn quantile(freedom: usize) -> f64 {
    const FEW: [f64; 8] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306];
    if let Some(&known) = FEW.get(freedom - 1) {
        return known;
    }
    // By Cornish and Fisher, from the normal distribution's.
    let (z, n) = (1.959_964_f64, freedom as f64);
    z + (z.powi(3) + z) / (4.0 * n)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, known) in
            [(1, 12.706), (4, 2.776), (5, 2.571), (8, 2.306), (9, 2.262), (12, 2.179), (29, 2.045), (1000, 1.962)]
        {
            assert!((quantile(freedom) - known).abs() < 0.001, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    fn what_disturbs_both_of_a_round_does_not_widen_the_interval() {
        let ratio = Ratio::of([(1.0, 2.0), (10.0, 20.0), (3.0, 6.0)].into_iter()).unwrap();
        assert!((ratio.mean - 0.5).abs() < 1e-12 && ratio.reach() < 1e-12, "{ratio:?}");
        let ratio = Ratio::of([(1.0, 1.0), (1.1, 1.0), (1.0, 1.1), (1.0, 1.0)].into_iter()).unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-12 && ratio.low < 0.9 && ratio.high > 1.1, "{ratio:?}");
        assert_eq!(Ratio::of([(1.0, 1.0), (0.0, 0.0)].into_iter()), None);
    }
}
