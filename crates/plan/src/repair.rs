//! Repair: everything must go below a ceiling; what does not fit pushes others out, and those find a new place.
//!
//! Each body carries a penalty that grows whenever it had to push. It goes where the bodies it pushes out
//! weigh least, so that the ones hard to place end up staying, and the search does not run in circles.

use crate::effort::Effort;
use crate::overlaps::Overlaps;
use crate::random::Random;
use crate::room::{Blocked, PIECES_PER_UNIT, Room};
use crate::strip::{Strip, align_up};

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
            if pinned(blocked.by) {
                f64::INFINITY
            } else {
                f64::from(penalty[blocked.by as usize]) * strip.bodies[blocked.by as usize].size as f64
            }
        };
        let (floor, shape) = (strip.floor, &strip.bodies[body]);
        let blocked = room.blocked(body);
        let units = blocked.len() as u64 / 4;
        let highest = ceiling.checked_sub(shape.size)?;
        let (offset, cost) =
            cheapest(blocked, align_up(floor, shape.align), highest, shape.align, weight, &mut random)?;
        if cost > 0.0 {
            if cost.is_infinite() {
                return None;
            }
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

/// The offset in `lowest..=highest` at which the blocks that deny it weigh least, and that weight; ties are
/// broken at random.
fn cheapest(
    blocked: &[Blocked],
    lowest: u64,
    highest: u64,
    align: u64,
    weight: impl Fn(&Blocked) -> f64,
    random: &mut Random,
) -> Option<(u64, f64)> {
    if lowest > highest {
        return None;
    }
    let mut ends: Vec<(u64, f64)> = blocked.iter().map(|block| (block.end, weight(block))).collect();
    ends.sort_unstable_by_key(|&(end, _)| end);
    let (mut started, mut ended, mut ties) = (0, 0, 0_u32);
    let (mut cost, mut infinite) = (0.0_f64, 0_u32);
    let mut best = (lowest, f64::INFINITY);
    let candidates = std::iter::once(lowest)
        .chain(ends.iter().map(|&(end, _)| align_up(end, align)).filter(|&offset| offset > lowest));
    let mut last = None;
    for offset in candidates.take_while(|&offset| offset <= highest) {
        if last == Some(offset) {
            continue;
        }
        last = Some(offset);
        while let Some(block) = blocked.get(started)
            && block.start <= offset
        {
            let weight = weight(block);
            if weight.is_finite() {
                cost += weight;
            } else {
                infinite += 1;
            }
            started += 1;
        }
        while let Some(&(end, weight)) = ends.get(ended)
            && end <= offset
        {
            if weight.is_finite() {
                cost -= weight;
            } else {
                infinite -= 1;
            }
            ended += 1;
        }
        let total = if infinite > 0 { f64::INFINITY } else { cost.max(0.0) };
        if total < best.1 {
            (best, ties) = ((offset, total), 1);
        } else if total <= best.1 {
            ties += 1;
            if random.below(u64::from(ties)) == 0 {
                best.0 = offset;
            }
        }
    }
    Some(best)
}
