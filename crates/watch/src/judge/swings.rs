//! Where a series falls far and rises again.

use super::Point;

/// The valleys of a series.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Swings {
    /// The lowest points between a fall and a rise; the last may still be falling.
    pub valleys: Vec<Point>,
    /// The place of the high point that a fall at the end began from.
    pub open: Option<usize>,
}

impl Swings {
    /// The swings of `points` that go down and up by `least` or more.
    pub fn of(points: &[Point], least: f64) -> Self {
        let mut valleys = Vec::new();
        let (mut high, mut low) = (0, None::<usize>);
        for (place, point) in points.iter().enumerate() {
            match low {
                None if point.value >= points[high].value => high = place,
                None => low = (points[high].value - point.value >= least).then_some(place),
                Some(lowest) if point.value < points[lowest].value => low = Some(place),
                Some(lowest) if point.value - points[lowest].value >= least => {
                    valleys.push(points[lowest]);
                    (high, low) = (place, None);
                }
                Some(_) => {}
            }
        }
        let open = low.map(|lowest| {
            valleys.push(points[lowest]);
            high
        });
        Self { valleys, open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_wiggles_are_no_swings() {
        let points: Vec<Point> = [0.0, 9.0, 8.5, 10.0, 2.0, 2.5, 8.0, 1.0]
            .iter()
            .enumerate()
            .map(|(at, &value)| Point { at: at as f64, value })
            .collect();
        let swings = Swings::of(&points, 3.0);
        assert_eq!(swings.valleys, [points[4], points[7]]);
        assert_eq!(swings.open, Some(6));
        assert_eq!(Swings::of(&points, 50.0), Swings { valleys: Vec::new(), open: None });
        assert!(Swings::of(&[], 1.0).valleys.is_empty());
    }
}
