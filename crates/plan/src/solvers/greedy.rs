//! One pass over the bodies in some order, each put where it fits: quick, and the start of everything better.

use crate::prepare::strip::Strip;
use crate::search::effort::Effort;
use crate::solvers::overlaps::Overlaps;
use crate::solvers::room::{Fit, PIECES_PER_UNIT, Room};

/// What makes a body come early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// Many bytes.
    Size,
    /// Many bytes for long.
    Area,
    /// A long life.
    Length,
    /// Many bodies alive beside it.
    Conflicts,
    /// Few bytes of the fullest section that it could lie on.
    PeakReuse,
    /// A life that touches full sections.
    Pressure,
}

/// The orders and fits that are tried, the most often best first.
pub(crate) const RECIPES: [(Rank, Fit); 9] = [
    (Rank::Pressure, Fit::First),
    (Rank::Conflicts, Fit::Best),
    (Rank::PeakReuse, Fit::Best),
    (Rank::Size, Fit::First),
    (Rank::Area, Fit::First),
    (Rank::Length, Fit::First),
    (Rank::Size, Fit::Best),
    (Rank::Conflicts, Fit::First),
    (Rank::Area, Fit::Best),
];

/// Places every body in order of `rank`; `None` when it would not end below `limit` or the effort ran out.
pub(crate) fn place(
    strip: &Strip,
    overlaps: &Overlaps,
    (rank, fit): (Rank, Fit),
    limit: u64,
    effort: &mut Effort,
) -> Option<Vec<u64>> {
    let mut room = Room::new(strip, overlaps);
    for body in order(strip, rank) {
        let body = body as usize;
        if room.placed[body] {
            continue;
        }
        let offset = room.find(body, fit);
        if offset + strip.bodies[body].size >= limit
            || !effort.spend(1 + std::mem::take(&mut room.work) / PIECES_PER_UNIT)
        {
            return None;
        }
        room.place(body, offset);
    }
    Some(room.offsets)
}

/// Bodies by descending rank; ties by descending size, for pressure then by length, then in the order given.
pub(crate) fn order(strip: &Strip, rank: Rank) -> Vec<u32> {
    let keys = keys(strip, rank);
    let mut order: Vec<u32> = (0..strip.len() as u32).collect();
    let length = |body: u32| if rank == Rank::Pressure { strip.hull(body as usize).len() } else { 0 };
    order.sort_by_key(|&body| std::cmp::Reverse((keys[body as usize], strip.bodies[body as usize].size, length(body))));
    order
}

fn keys(strip: &Strip, rank: Rank) -> Vec<u128> {
    let each = |key: &dyn Fn(usize) -> u128| (0..strip.len()).map(key).collect();
    let size = |body: usize| u128::from(strip.bodies[body].size);
    let length = |body: usize| strip.hull(body).len() as u128;
    match rank {
        Rank::Size => each(&size),
        Rank::Length => each(&length),
        Rank::Area => each(&|body| size(body) * length(body)),
        Rank::Conflicts => {
            let (begun, ended) = begun_and_ended(strip);
            each(&|body| {
                let hull = strip.hull(body);
                u128::from(begun[hull.end as usize] - ended[hull.start as usize])
            })
        }
        Rank::PeakReuse => {
            let meets = met_at_peak(strip);
            each(&|body| meets[body])
        }
        Rank::Pressure => {
            let loads = MaxLoads::new(strip.loads());
            each(&|body| u128::from(loads.over(strip.hull(body))))
        }
    }
}

/// The units of work that one pass takes: every body looks at all that live beside it.
pub(crate) fn units(strip: &Strip) -> u64 {
    let (begun, ended) = begun_and_ended(strip);
    let beside = |body: usize| {
        let hull = strip.hull(body);
        u64::from(begun[hull.end as usize] - ended[hull.start as usize])
    };
    (0..strip.len()).map(beside).sum::<u64>() / PIECES_PER_UNIT
}

/// For each section, how many bodies began before it and how many ended at or before it.
fn begun_and_ended(strip: &Strip) -> (Vec<u32>, Vec<u32>) {
    let mut begun = vec![0_u32; strip.sections as usize + 2];
    let mut ended = begun.clone();
    for body in 0..strip.len() {
        let hull = strip.hull(body);
        if !hull.is_empty() {
            begun[hull.start as usize + 1] += 1;
            ended[hull.end as usize] += 1;
        }
    }
    for section in 1..begun.len() {
        begun[section] += begun[section - 1];
        ended[section] += ended[section - 1];
    }
    (begun, ended)
}

/// For each body, the bytes alive in the fullest section that also meet the body.
fn met_at_peak(strip: &Strip) -> Vec<u128> {
    let loads = strip.loads();
    let Some(peak) = (0..loads.len()).max_by_key(|&section| (loads[section], std::cmp::Reverse(section))) else {
        return vec![0; strip.len()];
    };
    let peak = peak as u32;
    // Prefix sums over those alive at the peak, by where they begin and by where they end.
    let mut begun = vec![0_u64; strip.sections as usize + 2];
    let mut lasting = begun.clone();
    for piece in strip.pieces.iter().filter(|piece| piece.lower <= peak && peak < piece.upper) {
        begun[piece.lower as usize + 1] += piece.size;
        lasting[piece.upper as usize] += piece.size;
    }
    for section in 1..begun.len() {
        begun[section] += begun[section - 1];
    }
    for section in (0..lasting.len() - 1).rev() {
        lasting[section] += lasting[section + 1];
    }
    (0..strip.len())
        .map(|body| {
            let hull = strip.hull(body);
            let met = if hull.is_empty() {
                0
            } else if hull.end <= peak {
                begun[hull.end as usize]
            } else if hull.start > peak {
                lasting[hull.start as usize + 1]
            } else {
                loads[peak as usize]
            };
            u128::from(met)
        })
        .collect()
}

/// The largest load over a range of sections, by a sparse table over blocks.
struct MaxLoads {
    levels: Vec<Vec<u64>>,
}

impl MaxLoads {
    fn new(loads: Vec<u64>) -> Self {
        let mut levels = vec![loads];
        let mut width = 1;
        while let Some(last) = levels.last()
            && last.len() > width
        {
            let next = last.iter().zip(&last[width..]).map(|(a, b)| *a.max(b)).collect();
            levels.push(next);
            width *= 2;
        }
        Self { levels }
    }

    fn over(&self, range: std::ops::Range<u32>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let level = range.len().ilog2() as usize;
        let row = &self.levels[level];
        row[range.start as usize].max(row[range.end as usize - (1 << level)])
    }
}
