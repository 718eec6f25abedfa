//! Which allocations of one step are which of another: the longest common part of two lanes' sizes (Myers' greedy
//! difference), between what they share at both ends, and which lane is which where threads have come and gone.

use rustc_hash::FxHashMap;

use crate::Lane;
use crate::plan::step_plan::Key;
use crate::steps::recording::Track;

/// More differences than this are not told apart: memory grows with their square.
const MOST_EDITS: usize = 2048;

/// Pairs of places of equal keys, in order in both; as many as possible where at most `most` keys are in one alone.
/// With more differences, only what the ends share.
pub(crate) fn common(a: &[Key], b: &[Key], most: usize) -> Vec<(u32, u32)> {
    let front = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a[front..], &b[front..]);
    let back = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a_middle, b_middle) = (&a_rest[..a_rest.len() - back], &b_rest[..b_rest.len() - back]);
    let mut pairs: Vec<(u32, u32)> = (0..front as u32).map(|place| (place, place)).collect();
    if !a_middle.is_empty() && !b_middle.is_empty() {
        let lift = |(x, y): (usize, usize)| ((x + front) as u32, (y + front) as u32);
        pairs.extend(difference(a_middle, b_middle, most.min(MOST_EDITS)).into_iter().map(lift));
    }
    let ends = |from_end: usize| ((a.len() - from_end) as u32, (b.len() - from_end) as u32);
    pairs.extend((1..=back).rev().map(ends));
    pairs
}

/// How many keys are in one of the two alone at least, by how often each key is in them: told in one pass.
pub(crate) fn least_apart(a: &[Key], b: &[Key]) -> usize {
    let mut surplus: FxHashMap<Key, i64> = FxHashMap::default();
    for &key in a {
        *surplus.entry(key).or_default() += 1;
    }
    for &key in b {
        *surplus.entry(key).or_default() -= 1;
    }
    surplus.values().map(|count| count.unsigned_abs() as usize).sum()
}

/// The common part of `a` and `b` if it leaves at most `most` keys.
fn difference(a: &[Key], b: &[Key], most: usize) -> Vec<(usize, usize)> {
    let (end, most) = (a.len() as isize - b.len() as isize, most as isize);
    // How far each diagonal x - y was followed, and a copy of it per number of edits.
    let mut furthest = vec![0_u32; 2 * most as usize + 3];
    let at = |diagonal: isize| (diagonal + most + 1) as usize;
    let mut trail: Vec<Box<[u32]>> = Vec::new();
    for edits in 0..=most {
        for diagonal in (-edits..=edits).step_by(2) {
            let mut x = enter(&furthest, edits, diagonal, at);
            while let (Some(left), Some(right)) = (a.get(x), b.get((x as isize - diagonal) as usize))
                && left == right
            {
                x += 1;
            }
            furthest[at(diagonal)] = x as u32;
            if diagonal == end && x >= a.len() {
                return walk_back(&trail, (a.len(), b.len()), edits);
            }
        }
        trail.push(furthest[at(-edits)..=at(edits)].into());
    }
    Vec::new()
}

/// Where a path of `edits` enters `diagonal`: from the neighbour that came further.
fn enter(furthest: &[u32], edits: isize, diagonal: isize, at: impl Fn(isize) -> usize) -> usize {
    if edits == 0 {
        return 0;
    }
    let (below, above) = (furthest[at(diagonal - 1)], furthest[at(diagonal + 1)]);
    if diagonal == -edits || (diagonal != edits && below < above) { above as usize } else { below as usize + 1 }
}

fn walk_back(trail: &[Box<[u32]>], end: (usize, usize), edits: isize) -> Vec<(usize, usize)> {
    let (mut x, mut y) = (end.0 as isize, end.1 as isize);
    let mut pairs = Vec::new();
    for edits in (0..=edits).rev() {
        let diagonal = x - y;
        let from = if edits == 0 {
            (0, 0)
        } else {
            let row = &trail[edits as usize - 1];
            let before = |diagonal: isize| {
                let place = diagonal + edits - 1;
                usize::try_from(place).ok().and_then(|place| row.get(place)).map_or(-1, |&x| x as isize)
            };
            let (below, above) = (before(diagonal - 1), before(diagonal + 1));
            if diagonal == -edits || (diagonal != edits && below < above) {
                (above, above - (diagonal + 1))
            } else {
                (below, below - (diagonal - 1))
            }
        };
        while x > from.0 && y > from.1 {
            (x, y) = (x - 1, y - 1);
            pairs.push((x as usize, y as usize));
        }
        (x, y) = from;
    }
    pairs.reverse();
    pairs
}

/// For each lane of `b`, the lane of `a` that it is, if any: of the same allocations, else of the same name, else the
/// first that is left. None of `b` is left over while one of `a` is.
pub(crate) fn pair_lanes(a: (&[Lane], &[Track]), b: (&[Lane], &[Track])) -> Vec<Option<usize>> {
    let mut taken = vec![false; a.0.len()];
    let mut paired = vec![None; b.0.len()];
    let named = |other: usize, own: usize| a.0[other] == b.0[own];
    let alike = |other: usize, own: usize| a.1[other].keys == b.1[own].keys;
    let both = |other: usize, own: usize| named(other, own) && alike(other, own);
    let rules: [&dyn Fn(usize, usize) -> bool; 4] = [&both, &alike, &named, &|_, _| true];
    for rule in rules {
        for (own, paired) in paired.iter_mut().enumerate().filter(|(_, paired)| paired.is_none()) {
            *paired = (0..a.0.len()).find(|&other| !taken[other] && rule(other, own));
            if let Some(other) = *paired {
                taken[other] = true;
            }
        }
    }
    paired
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Align, Bytes};
    use proptest::prelude::*;

    use super::*;

    fn keys(sizes: &[u64]) -> Vec<Key> {
        sizes.iter().map(|&size| Key { bytes: Bytes::new(size), align: Align::ONE }).collect()
    }

    /// The length of the longest common part, by its textbook definition.
    fn longest(a: &[u64], b: &[u64]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (place, y) in b.iter().enumerate() {
                let above = row[place + 1];
                row[place + 1] = if x == y { corner + 1 } else { above.max(row[place]) };
                corner = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn pairs_are_equal_in_order_and_as_many_as_possible(
            a in prop::collection::vec(0_u64..4, 0..30),
            b in prop::collection::vec(0_u64..4, 0..30),
        ) {
            let pairs = common(&keys(&a), &keys(&b), 100);
            prop_assert!(pairs.iter().all(|&(x, y)| a[x as usize] == b[y as usize]));
            prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            prop_assert_eq!(pairs.len(), longest(&a, &b));
            prop_assert!(least_apart(&keys(&a), &keys(&b)) <= a.len() + b.len() - 2 * pairs.len());
            let few = common(&keys(&a), &keys(&b), 2);
            prop_assert!(few.iter().all(|&(x, y)| a[x as usize] == b[y as usize]));
        }
    }
}
