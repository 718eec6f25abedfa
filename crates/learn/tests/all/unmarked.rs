//! Steps that nobody marks.

use lowtide_core::Bytes;
use lowtide_learn::PeriodFinder;

use crate::player::lane;

/// Where steps end in `sizes`.
fn borders(sizes: impl IntoIterator<Item = u64>) -> Vec<usize> {
    let mut finder = PeriodFinder::new();
    let ends = sizes.into_iter().enumerate().filter(|&(_, size)| finder.push(lane(0), Bytes::new(size)));
    ends.map(|(place, _)| place).collect()
}

/// A step of `layers` equal layers there and back, with a beginning and an end of its own.
fn step(layers: u64, seed: u64) -> Vec<u64> {
    let there = (0..layers).flat_map(|_| (0..20).map(|size| 100 + size * 7));
    let back = (0..layers).flat_map(|_| (0..35).map(|size| 500 + size * 11 % 13));
    (0..5)
        .map(|size| 10_000 + seed + size)
        .chain(there)
        .chain(back)
        .chain((0..9).map(|size| 20_000 + seed + size))
        .collect()
}

#[test]
fn borders_come_at_the_same_place_of_every_period() {
    for period in [4_u64, 5, 64, 1000, 20_000, 200_000] {
        let set_up = (0..300_u64).map(|size| 1_000_000 + size.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_003);
        let steps = (0..8).flat_map(|_| (0..period).map(|size| size * 7 % period + 1));
        let ends = borders(set_up.chain(steps));
        assert!(ends.len() >= 4, "period {period}: {ends:?}");
        assert!(ends.windows(2).all(|two| (two[1] - two[0]) as u64 == period), "period {period}: {ends:?}");
        assert_eq!((ends[0] as u64 - 300) % period, 0, "the step begins behind the set-up");
    }
}

#[test]
fn layers_are_not_taken_for_steps() {
    let length = step(32, 0).len();
    let ends = borders((0..500).map(|size| size * 3 + 7).chain((0..12).flat_map(|_| step(32, 0))));
    let late: Vec<usize> = ends.into_iter().filter(|&end| end >= 500 + 3 * length).collect();
    assert!(late.len() >= 8, "{late:?}");
    assert!(late.windows(2).all(|two| two[1] - two[0] == length), "{late:?}");
}

#[test]
fn the_period_is_found_again_after_shapes_change() {
    let length = step(12, 0).len();
    let changed = (0..30).flat_map(|number| step(12, number / 10 * 3));
    let ends = borders(changed);
    for phase in 0..3 {
        let last = (phase * 10 + 5) * length..(phase * 10 + 10) * length;
        let found = ends.iter().filter(|end| last.contains(end)).count();
        assert_eq!(found, 5, "phase {phase}: {ends:?}");
    }
}

#[test]
fn the_lane_with_the_longest_period_decides() {
    let mut finder = PeriodFinder::new();
    let mut ends = Vec::new();
    for number in 0..20_000_u64 {
        // Two lanes with an order that never repeats.
        let helper = (number * number / 7) % 3 == 0;
        if helper {
            finder.push(lane(2), Bytes::new(1 + number / 3 % 4));
        }
        if finder.push(lane(1), Bytes::new(1 + number % 500)) {
            ends.push(number);
        }
    }
    let late = &ends[ends.len() - 30..];
    assert!(late.windows(2).all(|two| two[1] - two[0] == 500), "{late:?}");
}

#[test]
fn what_never_repeats_has_no_steps() {
    assert!(borders((0..100_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).is_empty());
}
