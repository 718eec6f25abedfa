//! Complete search: does everything fit below a ceiling?
//!
//! A plan can be pushed down until every body rests on another one or on the floor, so only such plans are
//! searched, from the bottom up. A pit is a run of sections that is lower than both its neighbours. Whatever
//! lands next in a section of a pit either fits into the pit and rests on its ground, or the ground of that
//! section is wasted at least up to the next height that something could rest on. The search
//!
//! - wastes at once what nothing can fill, and gives up where more is wasted than a section has to spare,
//! - branches on the section with the fewest choices for how often it was the one that could not be filled,
//! - splits time wherever no waiting body crosses, and solves the parts on their own,
//! - remembers the states that failed.
//!
//! When it fails, it knows the smallest ceiling at which it would have gone on: a new lower bound.

mod bits;
mod rows;
mod scatter;
mod skyline;
mod spots;
mod survey;

use lowtide_core::random::{Random, mix};

use scatter::scatter;
use skyline::{FAR, Refusal, Skyline, TrailMark};
use spots::{Spot, Spots};
use survey::{Cover, Survey};

use crate::options::Techniques;
use crate::prepare::strip::Strip;
use crate::search::effort::Effort;

/// What a search found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Offsets that end at or below the ceiling.
    Fits(Vec<u64>),
    /// Nothing fits below this height; `u64::MAX` when nothing fits at all.
    NothingBelow(u64),
    /// The effort ran out, or the strip is not of the kind that can be searched.
    Unknown,
}

/// How much length and size make a body the first choice, and how much chance does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Taste {
    pub length: f64,
    pub size: f64,
    pub chance: f64,
}

/// Tastes to take turns with: no single one suits all problems.
pub(crate) const TASTES: [Taste; 8] = [
    Taste { length: 1.0, size: 0.01, chance: 0.0 },
    Taste { length: 0.01, size: 1.0, chance: 0.0 },
    Taste { length: 1.0, size: 1.0, chance: 0.0 },
    Taste { length: 1.0, size: 0.3, chance: 0.5 },
    Taste { length: 1.0, size: 0.5, chance: 1.0 },
    Taste { length: 1.0, size: 0.1, chance: 0.2 },
    Taste { length: 0.5, size: 1.0, chance: 1.0 },
    Taste { length: 0.5, size: 0.5, chance: 2.0 },
];

/// Sections and bodies that are looked at for one unit of work.
const LOOKS_PER_UNIT: u64 = 16;

/// Sections of the widest state that is remembered: wider ones hardly come again, and take long to fingerprint.
const WIDEST_REMEMBERED: u32 = 512;

/// States remembered at most, as a power of two: 16 bytes each.
const MEMORY_BITS: u32 = 18;

/// What one search leaves for the next on the same strip.
#[derive(Default)]
pub(crate) struct Learned {
    /// Fingerprints of states that failed, salted with the search they failed in: a state that failed in another
    /// search may have done so for a want of bytes that this one has not noted. A newer one takes the place of an
    /// older one.
    failed: Vec<u128>,
    /// How often each section was the one that could not be filled.
    trouble: Vec<f32>,
}

impl Learned {
    /// Makes room for a strip, and lets old trouble fade or, for a fresh look, forgets it.
    fn prepare(&mut self, sections: usize, remember: bool, fresh: bool) {
        self.failed.resize(if remember { 1 << MEMORY_BITS } else { 0 }, 0);
        self.trouble.resize(sections, 0.0);
        for trouble in &mut self.trouble {
            *trouble = if fresh { 0.0 } else { *trouble / 2.0 };
        }
    }
}

/// How one search differs from another on the same strip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Manner {
    pub taste: Taste,
    pub seed: u64,
    /// Whether to forget which sections gave trouble before.
    pub fresh: bool,
}

/// Searches for offsets below `ceiling`.
pub(crate) fn search(
    strip: &Strip,
    ceiling: u64,
    manner: Manner,
    techniques: Techniques,
    memory: &mut Learned,
    effort: &mut Effort,
) -> Found {
    let skyline = match Skyline::new(strip, ceiling) {
        Ok(skyline) => skyline,
        // Pins that overlap although they may are beyond what obstacles can represent.
        Err(Refusal::NotFlat | Refusal::PinsOverlap) => return Found::Unknown,
        Err(Refusal::Overfull { short }) => return Found::NothingBelow(ceiling + short),
    };
    memory.prepare(strip.sections as usize, techniques.memory, manner.fresh);
    let mut search = Search {
        salt: scatter(manner.seed),
        scores: scores(strip, manner.taste, manner.seed),
        skyline,
        techniques,
        effort,
        choices: Vec::new(),
        cover: Vec::new(),
        spots: Spots::new(strip.sections as usize),
        looked_at: 0,
        memory,
    };
    match search.run(strip.sections) {
        Status::Done => Found::Fits(search.skyline.offsets),
        Status::Failed if search.skyline.shortfall == FAR => Found::NothingBelow(FAR),
        Status::Failed => Found::NothingBelow(ceiling + search.skyline.shortfall),
        Status::Stopped => Found::Unknown,
    }
}

fn scores(strip: &Strip, taste: Taste, seed: u64) -> Vec<f64> {
    let mut random = Random::new(mix(seed));
    (0..strip.len())
        .map(|body| {
            let length = strip.hull(body).len() as f64;
            let size = strip.bodies[body].size as f64;
            // The system's logarithm is another on each system, and a library that every program under Lowtide would load.
            let [length, size] = [length, size].map(|number| libm::log(number.max(1.0)));
            taste.length * length + taste.size * size + taste.chance * random.fraction()
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Done,
    Failed,
    Stopped,
}

struct Search<'a, 'e, 'f> {
    skyline: Skyline<'a>,
    scores: Vec<f64>,
    techniques: Techniques,
    effort: &'e mut Effort<'f>,
    /// Bodies to try, a stretch for each level of the search.
    choices: Vec<u32>,
    cover: Vec<Cover>,
    spots: Spots,
    /// Sections and bodies looked at since work was last spent.
    looked_at: u64,
    memory: &'e mut Learned,
    salt: u128,
}

/// A level of the search: what is still to be tried, or still to be solved.
enum Level {
    Branch(Branch),
    Parts(Parts),
}

/// The choices at a spot, of which one must succeed.
struct Branch {
    lower: u32,
    upper: u32,
    spot: Spot,
    /// Bodies not yet tried, in [`Search::choices`].
    bodies: std::ops::Range<usize>,
    /// Where its own stretch of choices begins.
    first: usize,
    /// The height up to which to waste the spot, tried last.
    wasted_to: Option<u64>,
    /// Where to remember the state when all choices failed.
    memory: Option<(usize, u128)>,
    /// Before the level was entered, and before a choice was made.
    entry: TrailMark,
    here: TrailMark,
}

/// Stretches of time that nothing crosses, all of which must succeed.
struct Parts {
    /// The rest that is not yet solved.
    lower: u32,
    upper: u32,
    choices: usize,
    entry: TrailMark,
}

/// What solving a range came to.
enum Advance {
    Ended(Status),
    Level(Level),
}

/// What a level has to be done next.
enum Next {
    Solve(u32, u32),
    Ended(Status),
}

impl Search<'_, '_, '_> {
    /// Places every body. Levels are kept in a list, not on the stack: a search may be as deep as there are
    /// bodies, and the stack it runs on may be small.
    fn run(&mut self, sections: u32) -> Status {
        let mut levels: Vec<Level> = Vec::new();
        let (mut lower, mut upper) = (0, sections);
        loop {
            let mut status = match self.advance(lower, upper) {
                Advance::Ended(status) => status,
                // As if something before the first choice had failed, or the part before the first were done.
                Advance::Level(level) => {
                    let before = if matches!(level, Level::Branch(_)) { Status::Failed } else { Status::Done };
                    levels.push(level);
                    before
                }
            };
            loop {
                if status == Status::Stopped {
                    return status;
                }
                let next = match levels.last_mut() {
                    None => return status,
                    Some(Level::Branch(branch)) => self.next_choice(branch, status),
                    Some(Level::Parts(parts)) => self.next_part(parts, status),
                };
                match next {
                    Next::Solve(from, to) => {
                        (lower, upper) = (from, to);
                        break;
                    }
                    Next::Ended(ended) => {
                        status = ended;
                        levels.pop();
                    }
                }
            }
        }
    }

    /// Goes on in these sections, which no waiting body leaves, as long as there is nothing to choose. On failure
    /// everything is as it was.
    fn advance(&mut self, lower: u32, upper: u32) -> Advance {
        let entry = self.skyline.mark();
        let failed = |search: &mut Self| {
            search.skyline.undo(entry);
            Advance::Ended(Status::Failed)
        };
        loop {
            if !self.effort.spend(1 + std::mem::take(&mut self.looked_at) / LOOKS_PER_UNIT) {
                return Advance::Ended(Status::Stopped);
            }
            if self.techniques.decompose && self.skyline.next_split(lower, upper).is_some() {
                return Advance::Level(Level::Parts(Parts { lower, upper, choices: self.choices.len(), entry }));
            }
            if !self.skyline.anyone_waits(lower, upper) {
                return Advance::Ended(Status::Done);
            }
            match self.survey_pits(lower, upper) {
                Survey::Hopeless => return failed(self),
                Survey::Raised => continue,
                Survey::Unchanged => {}
            }
            let Some(spot) = self.spots.best(lower, upper) else { return failed(self) };
            let first = self.choices.len();
            let wasted_to = self.gather(&spot);
            let fits = match self.choices.len() - first + usize::from(wasted_to.is_some()) {
                0 => false,
                1 => match wasted_to {
                    Some(height) => self.skyline.raise(spot.section, height),
                    None => self.skyline.place(self.choices[first], spot.pit.ground),
                },
                _ => return self.branch(lower, upper, spot, first, wasted_to, entry),
            };
            self.choices.truncate(first);
            if !fits {
                return failed(self);
            }
        }
    }

    /// The level for a spot with several choices, unless this state is known to fail.
    fn branch(
        &mut self,
        lower: u32,
        upper: u32,
        spot: Spot,
        first: usize,
        wasted_to: Option<u64>,
        entry: TrailMark,
    ) -> Advance {
        let memory = (!self.memory.failed.is_empty() && upper - lower <= WIDEST_REMEMBERED).then(|| {
            let print = self.skyline.fingerprint(lower, upper) ^ self.salt;
            (print as usize & (self.memory.failed.len() - 1), print)
        });
        if memory.is_some_and(|(slot, print)| self.memory.failed[slot] == print) {
            self.choices.truncate(first);
            self.skyline.undo(entry);
            return Advance::Ended(Status::Failed);
        }
        let bodies = first..self.choices.len();
        let here = self.skyline.mark();
        Advance::Level(Level::Branch(Branch { lower, upper, spot, bodies, first, wasted_to, memory, entry, here }))
    }

    /// Makes the next choice that is possible, the one before having ended with `status`.
    fn next_choice(&mut self, branch: &mut Branch, status: Status) -> Next {
        if status == Status::Done {
            return Next::Ended(Status::Done);
        }
        loop {
            self.skyline.undo(branch.here);
            let fits = if let Some(index) = branch.bodies.next() {
                self.skyline.place(self.choices[index], branch.spot.pit.ground)
            } else if let Some(height) = branch.wasted_to.take() {
                self.skyline.raise(branch.spot.section, height)
            } else {
                break;
            };
            if fits {
                return Next::Solve(branch.lower, branch.upper);
            }
        }
        self.choices.truncate(branch.first);
        if let Some((slot, print)) = branch.memory {
            self.memory.failed[slot] = print;
        }
        self.skyline.undo(branch.entry);
        Next::Ended(Status::Failed)
    }

    /// Turns to the next part with something to place, the one before having ended with `status`.
    fn next_part(&mut self, parts: &mut Parts, status: Status) -> Next {
        if status == Status::Failed {
            self.choices.truncate(parts.choices);
            self.skyline.undo(parts.entry);
            return Next::Ended(Status::Failed);
        }
        while parts.lower < parts.upper {
            let from = parts.lower;
            parts.lower = self.skyline.next_split(from, parts.upper).unwrap_or(parts.upper);
            if self.skyline.anyone_waits(from, parts.lower) {
                return Next::Solve(from, parts.lower);
            }
        }
        Next::Ended(Status::Done)
    }
}
