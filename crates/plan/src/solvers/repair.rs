//! Repair: everything must go below a ceiling; what does not fit pushes others out, and those find a new place.
//!
//! Each body carries a penalty that grows whenever it had to push. It goes where the bodies it pushes out
//! weigh least, so that the ones hard to place end up staying, and the search does not run in circles.

use lowtide_core::random::Random;

use crate::prepare::strip::{Strip, align_up};
use crate::search::effort::Effort;
use crate::solvers::overlaps::Overlaps;
use crate::solvers::room::{Blocked, PIECES_PER_UNIT, Room};

/// Moves the bodies of a plan until all end at or below `ceiling`; `None` when the effort ran out first.
pub(crate) fn repair(
    strip: &Strip,
    overlaps: &Overlaps,
    start: &[u64],
    ceiling: u64,
    seed: u64,
    effort: &mut Effort,
) -> Option<Vec<u64>> {
    let mut room = Room::new(strip, overlaps);
    let mut homeless = Homeless::default();
    for (body, &offset) in start.iter().enumerate() {
        if strip.bodies[body].pin.is_some() {
            continue;
        }
        if offset + strip.bodies[body].size <= ceiling {
            room.place(body, offset);
        } else {
            homeless.push(strip, body as u32);
        }
    }
    let mut random = Random::new(seed);
    let mut penalty = vec![1_u32; strip.len()];
    while let Some(body) = homeless.pop() {
        let body = body as usize;
        let pinned = |other: u32| strip.bodies[other as usize].pin.is_some();
        let weight = |blocked: &Blocked| {
            let size = strip.bodies[blocked.by as usize].size.max(1);
            (!pinned(blocked.by)).then(|| u128::from(penalty[blocked.by as usize]) * u128::from(size))
        };
        let (floor, shape) = (strip.floor, &strip.bodies[body]);
        let blocked = room.blocked(body);
        let units = blocked.len() as u64 / 4;
        let highest = ceiling.checked_sub(shape.size)?;
        let range = align_up(floor, shape.align)..=highest;
        let (offset, cost) = cheapest(blocked, range, shape.align, weight, &mut random)?;
        if cost > 0 {
            let pushed: Vec<u32> = blocked
                .iter()
                .filter(|blocked| blocked.start <= offset && offset < blocked.end)
                .map(|blocked| blocked.by)
                .collect();
            for other in pushed {
                if std::mem::replace(&mut room.placed[other as usize], false) {
                    homeless.push(strip, other);
                }
            }
            penalty[body] = penalty[body].saturating_add(1);
        }
        room.place(body, offset);
        if !effort.spend(1 + units + std::mem::take(&mut room.work) / PIECES_PER_UNIT) {
            return None;
        }
    }
    Some(room.offsets)
}

/// Bodies without a place, the largest first.
#[derive(Default)]
struct Homeless {
    heap: std::collections::BinaryHeap<(u64, std::cmp::Reverse<u32>)>,
}

impl Homeless {
    fn push(&mut self, strip: &Strip, body: u32) {
        self.heap.push((strip.bodies[body as usize].size, std::cmp::Reverse(body)));
    }

    fn pop(&mut self) -> Option<u32> {
        self.heap.pop().map(|(_, std::cmp::Reverse(body))| body)
    }
}

/// The offset in `range` at which the blocks that deny it weigh least, and that weight; ties are broken at random.
/// `None` where every offset is denied by a block without a weight: one that cannot be pushed out.
fn cheapest(
    blocked: &[Blocked],
    range: std::ops::RangeInclusive<u64>,
    align: u64,
    weight: impl Fn(&Blocked) -> Option<u128>,
    random: &mut Random,
) -> Option<(u64, u128)> {
    let mut ends: Vec<(u64, Option<u128>)> = blocked.iter().map(|block| (block.end, weight(block))).collect();
    ends.sort_unstable_by_key(|&(end, _)| end);
    let mut candidates: Vec<u64> = std::iter::once(*range.start())
        .chain(ends.iter().map(|&(end, _)| align_up(end, align)))
        .filter(|offset| range.contains(offset))
        .collect();
    candidates.dedup();
    let (mut started, mut ended, mut ties) = (0, 0, 0_u64);
    let (mut cost, mut immovable) = (0_u128, 0_u32);
    let mut best = None;
    for offset in candidates {
        while let Some(block) = blocked.get(started).filter(|block| block.start <= offset) {
            match weight(block) {
                Some(weight) => cost += weight,
                None => immovable += 1,
            }
            started += 1;
        }
        while let Some(&(_, weight)) = ends.get(ended).filter(|&&(end, _)| end <= offset) {
            match weight {
                Some(weight) => cost -= weight,
                None => immovable -= 1,
            }
            ended += 1;
        }
        if immovable > 0 || best.is_some_and(|(_, least)| cost > least) {
            continue;
        }
        ties = if best.is_some_and(|(_, least)| cost == least) { ties + 1 } else { 1 };
        if random.below(ties) == 0 {
            best = Some((offset, cost));
        }
    }
    best
}
