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

use crate::effort::Effort;
use crate::options::Techniques;
use crate::random::{Random, mix};
use crate::skyline::{FAR, Mark, Refusal, Skyline};
use crate::spots::{Pit, Spot, Spots};
use crate::strip::{Strip, align_up};

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
pub(crate) struct Memory {
    /// Fingerprints of states that failed; a newer one takes the place of an older one.
    failed: Vec<u128>,
    /// How often each section was the one that could not be filled.
    trouble: Vec<f32>,
}

impl Memory {
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
    memory: &mut Memory,
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
            taste.length * length.max(1.0).ln() + taste.size * size.max(1.0).ln() + taste.chance * random.fraction()
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Done,
    Failed,
    Stopped,
}

/// What could rest on the ground of a section: how many bodies, and their sizes together.
#[derive(Clone, Copy, Default)]
struct Cover {
    bodies: i32,
    bytes: i64,
}

enum Survey {
    Unchanged,
    Raised,
    Hopeless,
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
    memory: &'e mut Memory,
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
    entry: Mark,
    here: Mark,
}

/// Stretches of time that nothing crosses, all of which must succeed.
struct Parts {
    /// The rest that is not yet solved.
    lower: u32,
    upper: u32,
    choices: usize,
    entry: Mark,
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
        entry: Mark,
    ) -> Advance {
        let memory = (!self.memory.failed.is_empty() && upper - lower <= WIDEST_REMEMBERED).then(|| {
            let print = self.skyline.fingerprint(lower, upper);
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

    /// Looks again at the pits that may have changed: raises what nothing can fill, and notes the best spot of each.
    fn survey_pits(&mut self, lower: u32, upper: u32) -> Survey {
        if !self.skyline.gapped.is_empty() {
            // A body with gaps ties distant pits together.
            (lower..upper).for_each(|section| self.skyline.stale.set(section, true));
        }
        let mut raised = false;
        let mut from = lower;
        while let Some(stale) = self.skyline.stale.first_in(from, upper) {
            // The run in front stands beside a wall that may have changed; so does the one behind.
            let mut run = self.skyline.run_around(stale.max(lower + 1) - 1);
            loop {
                let was_stale = self.skyline.stale.first_in(run.start, run.end).is_some();
                self.skyline.stale.clear(run.start, run.end);
                match self.survey_run(&run) {
                    Survey::Hopeless => {
                        self.skyline.stale.set(run.start, true);
                        return Survey::Hopeless;
                    }
                    Survey::Raised => {
                        // What was not raised of it is now another run.
                        run.clone().for_each(|section| self.skyline.stale.set(section, true));
                        raised = true;
                    }
                    Survey::Unchanged => {}
                }
                from = run.end;
                if from >= upper {
                    break;
                }
                run = self.skyline.run_around(from);
                if !was_stale && self.skyline.stale.first_in(run.start, run.end).is_none() {
                    break;
                }
            }
        }
        if raised { Survey::Raised } else { Survey::Unchanged }
    }

    /// Looks at one run of sections of the same height, and at what could fill it if it is a pit.
    fn survey_run(&mut self, run: &std::ops::Range<u32>) -> Survey {
        run.clone().for_each(|section| self.spots.set(section, None));
        self.looked_at += u64::from(run.end - run.start);
        let ground = self.skyline.floor[run.start as usize];
        let (left, right) = self.skyline.walls(run);
        if left < ground || right < ground {
            return Survey::Unchanged;
        }
        let pit = Pit { lower: run.start, upper: run.end, ground, rim: left.min(right) };
        if self.comes_too_early(pit) {
            return Survey::Unchanged;
        }
        let pit = self.with_full_rim(pit);
        let mut best = None;
        let survey = self.survey(pit, &mut best);
        if matches!(survey, Survey::Unchanged) {
            self.spots.set(run.start, best);
        }
        survey
    }

    /// Whether a body with gaps could rest on the ground of `pit` but has sections that are still lower: what goes
    /// below it there must be placed first. The lowest pit of all never comes too early.
    fn comes_too_early(&self, pit: Pit) -> bool {
        self.waiting_in(pit).any(|body| {
            let mut floors = self.skyline.sections(body).map(|section| self.skyline.floor[section]);
            self.skyline.ground(body) == pit.ground && floors.any(|floor| floor < pit.ground)
        })
    }

    /// The waiting bodies with gaps that reach into `pit`.
    fn waiting_in(&self, pit: Pit) -> impl Iterator<Item = u32> + '_ {
        let reaches = move |body: u32| {
            self.skyline.pieces(body).iter().any(|piece| piece.lower < pit.upper && pit.lower < piece.upper)
        };
        self.skyline.gapped.iter().copied().filter(move |&body| self.skyline.waits(body) && reaches(body))
    }

    /// Lowers the rim to the tops of obstacles over the pit, and to where bodies with gaps that reach into it could
    /// come to rest.
    fn with_full_rim(&self, mut pit: Pit) -> Pit {
        for section in pit.lower..pit.upper {
            if let Some((_, top)) = self.skyline.obstacle(section) {
                pit.rim = pit.rim.min(top);
            }
        }
        let rests = self.waiting_in(pit).map(|body| self.resting_height(body, pit));
        pit.rim = rests.fold(pit.rim, u64::min);
        pit
    }

    /// A height above the ground of `pit` that a body with gaps rests on at least, if not on that ground: what holds
    /// it up may stand, now or later, in any of its sections outside the pit.
    fn resting_height(&self, body: u32, pit: Pit) -> u64 {
        let ground = self.skyline.ground(body);
        if ground > pit.ground {
            return ground;
        }
        let pieces = self.skyline.pieces(body).iter();
        let outside =
            pieces.flat_map(|piece| piece.lower..piece.upper).filter(|at| !(pit.lower..pit.upper).contains(at));
        let unit = self.skyline.unit();
        outside
            .map(|section| {
                let thinnest =
                    if self.skyline.floor[section as usize] == pit.ground { self.skyline.thinnest } else { unit };
                let obstacle = self.skyline.obstacle(section).map_or(FAR, |(_, top)| top);
                (pit.ground + thinnest).min(obstacle.max(pit.ground + unit))
            })
            .min()
            .unwrap_or(FAR)
    }

    /// Counts, for each section of a pit, the bodies that could rest on its ground.
    fn survey(&mut self, pit: Pit, best: &mut Option<Spot>) -> Survey {
        let mut cover = std::mem::take(&mut self.cover);
        cover.clear();
        cover.resize((pit.upper - pit.lower) as usize + 1, Cover::default());
        let unit = self.skyline.unit();
        let (mut seen, mut lowest_top) = (0, FAR);
        self.for_each_fitting(pit, pit.upper, |skyline, body| {
            seen += 1;
            let shape = &skyline.shapes[body as usize];
            lowest_top = lowest_top.min(align_up(pit.ground, shape.align) + shape.thickness);
            let choice = i32::from(skyline.is_next(body));
            for piece in skyline.pieces(body) {
                let (lower, upper) = (piece.lower.max(pit.lower), piece.upper.min(pit.upper));
                if lower < upper {
                    let bytes = align_up(piece.size, unit) as i64;
                    let [from, to] = [lower, upper].map(|section| (section - pit.lower) as usize);
                    cover[from].bodies += choice;
                    cover[from].bytes += bytes;
                    cover[to].bodies -= choice;
                    cover[to].bytes -= bytes;
                }
            }
        });
        let result = self.judge(pit, &cover, lowest_top, best);
        self.cover = cover;
        self.looked_at += seen;
        result
    }

    /// Wastes what nothing covers, gives up where too little does, and looks for the best spot among the rest.
    fn judge(&mut self, pit: Pit, cover: &[Cover], lowest_top: u64, best: &mut Option<Spot>) -> Survey {
        let mut raised = false;
        let mut here = Cover::default();
        for section in pit.lower..pit.upper {
            let at = section as usize;
            let step = cover[(section - pit.lower) as usize];
            here = Cover { bodies: here.bodies + step.bodies, bytes: here.bytes + step.bytes };
            let lid = self.skyline.lid(section, pit.rim);
            let slack = self.skyline.slack[at];
            if lid != FAR {
                let missing = (lid - pit.ground) as i64 - here.bytes - slack;
                if missing > 0 {
                    self.memory.trouble[at] += 1.0;
                    self.skyline.note_shortfall(missing as u64);
                    return Survey::Hopeless;
                }
                if here.bodies == 0 {
                    self.skyline.raise(section, lid);
                    raised = true;
                }
            }
            if here.bodies > 0 {
                let choices = here.bodies as u32 + u32::from(slack > 0);
                let urgency = choices as f32 / (1.0 + self.memory.trouble[at]);
                let spot = Spot { pit, section, choices, urgency, lowest_top };
                if best.is_none_or(|best| spot.precedes(&best)) {
                    *best = Some(spot);
                }
            }
        }
        if raised { Survey::Raised } else { Survey::Unchanged }
    }

    /// Calls `visit` for the waiting bodies that could rest on the ground of a pit and begin in it before `end`.
    fn for_each_fitting(&self, pit: Pit, end: u32, mut visit: impl FnMut(&Skyline, u32)) {
        for section in pit.lower..end {
            for body in self.skyline.starting(section) {
                let shape = &self.skyline.shapes[body as usize];
                if shape.upper <= pit.upper
                    && !shape.gapped
                    && self.skyline.waits(body)
                    && self.skyline.passes_below_obstacles(body, pit.ground)
                {
                    visit(&self.skyline, body);
                }
            }
        }
        for body in self.waiting_in(pit) {
            if self.skyline.ground(body) == pit.ground && self.skyline.passes_below_obstacles(body, pit.ground) {
                visit(&self.skyline, body);
            }
        }
    }

    /// Collects the bodies that could rest on the ground at `spot`, best first, and says up to where the section
    /// is wasted if none does; `None` where wasting it cannot lead to a plan, or not to one that filling it
    /// would not.
    fn gather(&mut self, spot: &Spot) -> Option<u64> {
        let Spot { pit, section, .. } = *spot;
        let from = self.choices.len();
        let mut choices = std::mem::take(&mut self.choices);
        let mut height = self.skyline.lid(section, pit.rim);
        // The narrowest of those that could rest here and live nowhere else, for the test of dominance.
        let mut thinnest_here = FAR;
        // What begins later matters only to how much is wasted.
        let end = if self.skyline.slack[section as usize] > 0 { pit.upper } else { section + 1 };
        self.for_each_fitting(pit, end, |skyline, body| {
            let shape = &skyline.shapes[body as usize];
            let top = align_up(pit.ground, shape.align) + shape.thickness;
            let lives_here = skyline.pieces(body).iter().any(|piece| piece.lower <= section && section < piece.upper);
            if lives_here {
                if shape.upper - shape.lower == 1 {
                    thinnest_here = thinnest_here.min(top);
                }
                if skyline.is_next(body) {
                    choices.push(body);
                }
            } else {
                height = height.min(top);
            }
        });
        let scores = &self.scores;
        choices[from..].sort_unstable_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        self.choices = choices;
        let slack = self.skyline.slack[section as usize] as u64;
        if slack == 0 {
            // Not all that could lie beside was looked at: this is the least that wasting the section takes.
            let least = self.skyline.lid(section, pit.rim).min(spot.lowest_top);
            self.skyline.note_shortfall(least - pit.ground);
            return None;
        }
        if height == FAR || thinnest_here <= height {
            return None;
        }
        let wasted = height - pit.ground;
        if wasted > slack {
            self.skyline.note_shortfall(wasted - slack);
            return None;
        }
        Some(height)
    }
}
