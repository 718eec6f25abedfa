//! What to leave out when not everything fits below a ceiling: as few bytes as a few greedy passes can manage, less
//! what a search can bring back.

use std::time::Duration;

use crate::prepare::strip::Strip;
use crate::search::budget::Budget;
use crate::search::schedule::{self, Aim};
use crate::solvers::greedy::{self, RECIPES};
use crate::solvers::overlaps::Overlaps;
use crate::solvers::room::Room;

/// Searches of each kind at most.
const MOST_TRIES: usize = 32;

/// Bodies up to which one is looked for that could go alone.
const LARGEST_FOR_ONE: usize = 2_000;

/// What each of them may take.
const TRY_FOR: Duration = Duration::from_millis(50);
const TRY_WORK: u64 = 200_000;

/// An offset below `ceiling` for each body that stays; `None` for those that have to go. What is pinned stays.
pub(crate) fn choose(strip: &Strip, ceiling: u64, budget: &mut Budget) -> Vec<Option<u64>> {
    let mut kept = by_greedy_passes(strip, ceiling, budget);
    let size = |&body: &usize| strip.bodies[body].size;
    let mut gone: Vec<usize> = (0..strip.len()).filter(|&body| kept[body].is_none()).collect();
    gone.sort_by_key(|body| std::cmp::Reverse(size(body)));
    for body in gone.into_iter().take(MOST_TRIES) {
        let stays = |at: usize| at == body || kept[at].is_some();
        if let Some(better) = fit(strip, ceiling, stays, budget) {
            kept = better;
        }
    }
    if strip.len() > LARGEST_FOR_ONE {
        return kept;
    }
    // One body alone may do instead of several.
    let spilled: u64 = (0..strip.len()).filter(|&body| kept[body].is_none()).map(|body| size(&body)).sum();
    let mut lighter: Vec<usize> =
        (0..strip.len()).filter(|&body| strip.bodies[body].pin.is_none() && size(&body) < spilled).collect();
    lighter.sort_by_key(size);
    let mut tries = lighter.into_iter().filter(|&body| bound_without(strip, body) <= ceiling).take(MOST_TRIES);
    let alone = tries.find_map(|body| fit(strip, ceiling, |at| at != body, budget));
    alone.unwrap_or(kept)
}

fn bound_without(strip: &Strip, body: usize) -> u64 {
    let others: Vec<u32> = (0..strip.len() as u32).filter(|&at| at as usize != body).collect();
    strip.select(&others).lower_bound()
}

/// Offsets below `ceiling` for the bodies that stay, if a short search finds them.
fn fit(strip: &Strip, ceiling: u64, stays: impl Fn(usize) -> bool, budget: &mut Budget) -> Option<Vec<Option<u64>>> {
    let bodies: Vec<u32> = (0..strip.len() as u32).filter(|&at| stays(at as usize)).collect();
    let part = strip.select(&bodies);
    if part.lower_bound() > ceiling || budget.spent().is_some() {
        return None;
    }
    let solved =
        budget.aside(TRY_WORK, TRY_FOR, |budget| schedule::solve(&part, Aim::Below(ceiling), budget, &|_, _| {}));
    if solved.height > ceiling {
        return None;
    }
    let mut kept = vec![None; strip.len()];
    for (&at, offset) in bodies.iter().zip(solved.offsets) {
        kept[at as usize] = Some(offset);
    }
    Some(kept)
}

/// The best of the greedy passes that there is time for, and of one at least.
fn by_greedy_passes(strip: &Strip, ceiling: u64, budget: &Budget) -> Vec<Option<u64>> {
    let overlaps = Overlaps::new(strip);
    let in_time = RECIPES.into_iter().enumerate().take_while(|&(turn, _)| turn == 0 || budget.spent().is_none());
    let passes = in_time.map(|(_, recipe)| {
        let mut room = Room::new(strip, &overlaps);
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
    let best = passes.min_by_key(|&(spilled, _)| spilled);
    best.map_or_else(Vec::new, |(_, kept)| kept)
}
