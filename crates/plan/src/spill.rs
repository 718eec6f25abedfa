//! What to leave out when not everything fits below a ceiling: as few bytes as a few greedy passes can manage.

use crate::greedy::{self, RECIPES};
use crate::overlaps::Overlaps;
use crate::room::Room;
use crate::strip::Strip;

/// An offset below `ceiling` for each body that stays; `None` for those that have to go. What is pinned stays.
pub(crate) fn choose(strip: &Strip, overlaps: &Overlaps, ceiling: u64) -> Vec<Option<u64>> {
    let passes = RECIPES.map(|recipe| {
        let mut room = Room::new(strip, overlaps);
        let mut kept: Vec<Option<u64>> = strip.bodies.iter().map(|body| body.pin).collect();
        let mut spilled = 0_u64;
        for body in greedy::order(strip, recipe.0) {
            let body = body as usize;
            if room.placed[body] {
                continue;
            }
            let offset = room.find(body, recipe.1);
            if offset + strip.bodies[body].size <= ceiling {
                room.place(body, offset);
                kept[body] = Some(offset);
            } else {
                spilled += strip.bodies[body].size;
            }
        }
        (spilled, kept)
    });
    let best = passes.into_iter().min_by_key(|&(spilled, _)| spilled);
    best.map_or_else(Vec::new, |(_, kept)| kept)
}
