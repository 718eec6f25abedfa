//! The state of the exact search: how high each section is filled, and how much of it may still be wasted.
//!
//! Every change is written to a trail, so that a search can go back to any mark at the cost of what it undoes.

mod shapes;

use lowtide_core::random::mix;

use shapes::{NOBODY, Shape, shapes};

use super::bits::Bits;
use super::rows::Rows;
use super::scatter::scatter;
use crate::prepare::strip::{Piece, Strip, align_up};

/// Higher than anything.
pub(crate) const FAR: u64 = u64::MAX;

/// What a section was before a change.
#[derive(Clone, Copy)]
struct TrailEntry {
    section: u32,
    obstacle: u32,
    floor: u64,
    slack: i64,
}

/// A point to go back to.
#[derive(Clone, Copy)]
pub(crate) struct TrailMark {
    changes: usize,
    placed: usize,
}

/// Sections, what is placed in them, and what is not yet.
pub(crate) struct Skyline<'a> {
    strip: &'a Strip,
    ceiling: u64,
    pub shapes: Vec<Shape>,
    /// The least that any unpinned body is high.
    pub thinnest: u64,
    /// Unpinned bodies by the section in which they begin.
    starts: Rows<u32>,
    /// Unpinned bodies with gaps.
    pub gapped: Vec<u32>,
    /// What is pinned in each section, from the bottom up.
    obstacles: Rows<(u64, u64)>,
    /// The obstacle of each section that lies next above its floor, as an index into `obstacles`.
    next_obstacle: Vec<u32>,
    pub floor: Vec<u64>,
    /// Bytes of each section that may still be wasted.
    pub slack: Vec<i64>,
    /// How many unplaced bodies live on both sides of the border in front of each section.
    crossing: Vec<u32>,
    placed: Vec<bool>,
    pub offsets: Vec<u64>,
    changes: Vec<TrailEntry>,
    /// Sections whose floor is not that of the section in front.
    steps: Bits,
    /// Sections such that no waiting body lives both in them and in the section in front.
    splits: Bits,
    /// Sections whose pit may have changed since it was looked at.
    pub stale: Bits,
    order_placed: Vec<u32>,
    /// The least by which a refused change exceeded the ceiling.
    pub shortfall: u64,
}

impl<'a> Skyline<'a> {
    /// Nothing placed but what is pinned; an error when the strip is not of the kind this can represent, two pins
    /// overlap, or a section holds more than lies below the ceiling.
    pub fn new(strip: &'a Strip, ceiling: u64) -> Result<Self, Refusal> {
        let sections = strip.sections as usize;
        let shapes = shapes(strip);
        let free = |body: usize| strip.bodies[body].pin.is_none();
        if !strip.is_flat() {
            return Err(Refusal::NotFlat);
        }
        let begins = (0..strip.len()).filter(|&body| free(body) && !strip.pieces(body).is_empty());
        let starts = Rows::new(sections, begins.clone().map(|body| (shapes[body].lower, body as u32)));
        let gapped = begins.clone().filter(|&body| shapes[body].gapped).map(|body| body as u32).collect();
        let mut crossing = vec![0; sections + 1];
        for body in begins.clone() {
            for border in &mut crossing[shapes[body].lower as usize + 1..shapes[body].upper as usize] {
                *border += 1;
            }
        }
        let obstacles = obstacles(strip, ceiling)?;
        let next_obstacle = (0..sections).map(|section| obstacles.range(section as u32).start as u32).collect();
        let thinnest = begins.clone().map(|body| shapes[body].thickness).min().unwrap_or(strip.unit);
        let mut skyline = Self {
            thinnest,
            strip,
            ceiling,
            starts,
            gapped,
            obstacles,
            next_obstacle,
            floor: vec![strip.floor; sections],
            slack: Vec::new(),
            crossing,
            placed: strip.bodies.iter().map(|body| body.pin.is_some()).collect(),
            offsets: strip.bodies.iter().map(|body| body.pin.unwrap_or(align_up(strip.floor, body.align))).collect(),
            shapes,
            changes: Vec::new(),
            steps: Bits::new(sections + 1),
            splits: Bits::new(sections + 1),
            stale: Bits::new(sections + 1),
            order_placed: Vec::new(),
            shortfall: FAR,
        };
        skyline.fill_slack()?;
        for section in 0..strip.sections {
            skyline.splits.set(section, skyline.crossing[section as usize] == 0);
            skyline.touch(section);
        }
        Ok(skyline)
    }

    fn fill_slack(&mut self) -> Result<(), Refusal> {
        let (floor, ceiling) = (self.strip.floor, self.ceiling);
        let needs = self.strip.loads();
        self.slack = needs.iter().map(|&need| ceiling as i64 - floor as i64 - need as i64).collect();
        for section in 0..self.strip.sections {
            for index in self.obstacles.range(section) {
                let (bottom, top) = self.obstacles.items[index];
                let between = top.min(ceiling).saturating_sub(bottom.max(floor));
                self.slack[section as usize] -= between as i64;
            }
            self.lift(section);
        }
        match self.slack.iter().min() {
            Some(&worst) if worst < 0 => Err(Refusal::Overfull { short: worst.unsigned_abs() }),
            _ => Ok(()),
        }
    }

    /// Moves a floor that has reached the bottom of an obstacle to its top.
    fn lift(&mut self, section: u32) {
        let at = section as usize;
        let end = self.obstacles.range(section).end;
        while (self.next_obstacle[at] as usize) < end {
            let (bottom, top) = self.obstacles.items[self.next_obstacle[at] as usize];
            if bottom > self.floor[at] {
                break;
            }
            self.floor[at] = self.floor[at].max(top);
            self.next_obstacle[at] += 1;
        }
    }

    /// The bottom of the obstacle next above the floor of `section`, and its top.
    pub fn obstacle(&self, section: u32) -> Option<(u64, u64)> {
        let next = self.next_obstacle[section as usize] as usize;
        (next < self.obstacles.range(section).end).then(|| self.obstacles.items[next])
    }

    /// How far `section` is wasted at least when nothing rests on its ground: to the obstacle above it, or to the
    /// `rim` of its pit.
    pub fn lid(&self, section: u32, rim: u64) -> u64 {
        self.obstacle(section).map_or(rim, |(bottom, _)| rim.min(bottom))
    }

    /// Bodies that begin in `section`, placed or not.
    pub fn starting(&self, section: u32) -> impl Iterator<Item = u32> + '_ {
        self.starts.items[self.starts.range(section)].iter().copied()
    }

    /// All offsets are multiples of this.
    pub fn unit(&self) -> u64 {
        self.strip.unit
    }

    /// The pieces of a body.
    pub fn pieces(&self, body: u32) -> &'a [Piece] {
        self.strip.pieces(body as usize)
    }

    /// Whether a body is still to be placed.
    pub fn waits(&self, body: u32) -> bool {
        !self.placed[body as usize]
    }

    /// Whether a body is to be placed and no identical one must go first.
    pub fn is_next(&self, body: u32) -> bool {
        let twin = self.shapes[body as usize].twin;
        self.waits(body) && (twin == NOBODY || !self.waits(twin))
    }

    /// The first section after `lower` and before `upper` such that no waiting body lives on both sides of the
    /// border in front of it.
    pub fn next_split(&self, lower: u32, upper: u32) -> Option<u32> {
        self.splits.first_in(lower + 1, upper)
    }

    /// The sections around `section` that are as high as it is and that waiting bodies connect to it.
    pub fn run_around(&self, section: u32) -> std::ops::Range<u32> {
        let ends = |bits: &Bits| bits.first_in(section + 1, self.strip.sections).unwrap_or(self.strip.sections);
        let starts = |bits: &Bits| bits.last_in(0, section).unwrap_or(0);
        starts(&self.steps).max(starts(&self.splits))..ends(&self.steps).min(ends(&self.splits))
    }

    /// The heights of what stands on both sides of a run; beyond a border that nothing crosses stands a wall
    /// without end.
    pub fn walls(&self, run: &std::ops::Range<u32>) -> (u64, u64) {
        let is_split = |border: u32| self.splits.first_in(border, border + 1).is_some();
        let left = if is_split(run.start) { FAR } else { self.floor[run.start as usize - 1] };
        let right =
            if run.end == self.strip.sections || is_split(run.end) { FAR } else { self.floor[run.end as usize] };
        (left, right)
    }

    /// Notes that the floor of `section` was changed.
    fn touch(&mut self, section: u32) {
        let at = section as usize;
        if at > 0 {
            self.steps.set(section, self.floor[at] != self.floor[at - 1]);
        }
        if at + 1 < self.floor.len() {
            self.steps.set(section + 1, self.floor[at] != self.floor[at + 1]);
        }
        self.stale.set(section, true);
    }

    /// Notes that a body began (or ceased) to wait.
    fn count_crossings(&mut self, body: u32, waits: bool) {
        let shape = &self.shapes[body as usize];
        for border in shape.lower + 1..shape.upper {
            let count = &mut self.crossing[border as usize];
            let was = *count;
            *count = if waits { was + 1 } else { was - 1 };
            if was == 0 || *count == 0 {
                self.splits.set(border, *count == 0);
                self.stale.set(border - 1, true);
                self.stale.set(border, true);
            }
        }
    }

    /// Whether some body that lives in these sections only is still to be placed.
    pub fn anyone_waits(&self, lower: u32, upper: u32) -> bool {
        (upper - lower > 1 && self.crossing[lower as usize + 1] > 0)
            || (lower..upper).any(|section| self.starting(section).any(|body| self.waits(body)))
    }

    /// The highest floor under a body.
    pub fn ground(&self, body: u32) -> u64 {
        self.sections(body).map(|section| self.floor[section]).max().unwrap_or(self.strip.floor)
    }

    /// The sections in which a body takes bytes.
    pub fn sections(&self, body: u32) -> impl Iterator<Item = usize> + use<'a> {
        self.pieces(body).iter().flat_map(|piece| piece.lower as usize..piece.upper as usize)
    }

    /// Whether a body that rests on `ground` stays below what is pinned above it.
    pub fn passes_below_obstacles(&self, body: u32, ground: u64) -> bool {
        let offset = align_up(ground, self.shapes[body as usize].align);
        self.obstacles.items.is_empty()
            || self.pieces(body).iter().all(|piece| {
                (piece.lower..piece.upper)
                    .all(|section| self.obstacle(section).is_none_or(|(bottom, _)| offset + piece.size <= bottom))
            })
    }

    /// Puts a body on `ground`; false when it ends above the ceiling or wastes more than some section has to waste.
    pub fn place(&mut self, body: u32, ground: u64) -> bool {
        let shape = &self.shapes[body as usize];
        let offset = align_up(ground, shape.align);
        let mut worst = self.ceiling as i64 - (offset + shape.size) as i64;
        self.count_crossings(body, false);
        self.placed[body as usize] = true;
        self.offsets[body as usize] = offset;
        self.order_placed.push(body);
        let unit = self.strip.unit;
        for piece in self.strip.pieces(body as usize) {
            let top = offset + align_up(piece.size, unit);
            for section in piece.lower..piece.upper {
                let slack = self.set_floor(section, top, offset);
                worst = worst.min(slack);
            }
        }
        self.within_slack(worst)
    }

    /// Gives up the bytes of `section` below `height`; false when they are more than it has to waste.
    pub fn raise(&mut self, section: u32, height: u64) -> bool {
        let slack = self.set_floor(section, height, height);
        self.within_slack(slack)
    }

    /// Fills a section up to `floor`, of which what lies below `wasted_to` is waste.
    fn set_floor(&mut self, section: u32, floor: u64, wasted_to: u64) -> i64 {
        let at = section as usize;
        let change =
            TrailEntry { section, obstacle: self.next_obstacle[at], floor: self.floor[at], slack: self.slack[at] };
        self.changes.push(change);
        self.slack[at] -= (wasted_to - self.floor[at]) as i64;
        self.floor[at] = floor;
        if !self.obstacles.items.is_empty() {
            self.lift(section);
        }
        self.touch(section);
        self.slack[at]
    }

    fn within_slack(&mut self, slack: i64) -> bool {
        if slack < 0 {
            self.note_shortfall(slack.unsigned_abs());
        }
        slack >= 0
    }

    /// Notes that a choice was refused for want of this many bytes.
    pub fn note_shortfall(&mut self, bytes: u64) {
        self.shortfall = self.shortfall.min(bytes);
    }

    pub fn mark(&self) -> TrailMark {
        TrailMark { changes: self.changes.len(), placed: self.order_placed.len() }
    }

    /// Takes back everything since `mark`.
    pub fn undo(&mut self, mark: TrailMark) {
        while self.changes.len() > mark.changes
            && let Some(change) = self.changes.pop()
        {
            let at = change.section as usize;
            self.floor[at] = change.floor;
            self.slack[at] = change.slack;
            self.next_obstacle[at] = change.obstacle;
            self.touch(change.section);
        }
        while self.order_placed.len() > mark.placed
            && let Some(body) = self.order_placed.pop()
        {
            self.placed[body as usize] = false;
            self.count_crossings(body, true);
        }
    }

    /// A fingerprint of all that decides whether the waiting bodies of these sections fit below the ceiling: 128
    /// bits, so that two states that differ are taken for one with a probability that can be neglected.
    pub fn fingerprint(&self, lower: u32, upper: u32) -> u128 {
        let mut print = scatter(((u64::from(lower) << 32) | u64::from(upper)) ^ mix(self.ceiling));
        for section in lower..upper {
            let floor = self.floor[section as usize];
            print = print.wrapping_add(scatter(mix(floor) ^ (u64::from(section) << 40)));
            for body in self.starting(section).filter(|&body| self.waits(body)) {
                print = print.wrapping_add(self.shapes[body as usize].key);
            }
        }
        print
    }
}

/// Why a search cannot begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Some body's pieces begin at different heights.
    NotFlat,
    /// Two pinned bodies overlap.
    PinsOverlap,
    /// A section lacks this many bytes.
    Overfull {
        /// The bytes.
        short: u64,
    },
}

/// What is pinned below the ceiling, section by section.
fn obstacles(strip: &Strip, ceiling: u64) -> Result<Rows<(u64, u64)>, Refusal> {
    let mut entries = Vec::new();
    for (index, body) in strip.bodies.iter().enumerate() {
        if let Some(pin) = body.pin {
            for piece in strip.pieces(index).iter().filter(|piece| pin + piece.rise < ceiling) {
                let bottom = pin + piece.rise;
                // What of it lies above the ceiling is nobody's concern: nothing has to reach up to there.
                let top = align_up(bottom + piece.size, strip.unit).min(ceiling);
                entries.extend((piece.lower..piece.upper).map(|section| (section, (bottom, top))));
            }
        }
    }
    entries.sort_unstable();
    let overlap = |pair: &[(u32, (u64, u64))]| pair[0].0 == pair[1].0 && pair[0].1.1 > pair[1].1.0;
    if entries.windows(2).any(overlap) {
        return Err(Refusal::PinsOverlap);
    }
    Ok(Rows::new(strip.sections as usize, entries.iter().copied()))
}
