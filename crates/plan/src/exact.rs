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

/// Deeper than any search that could end in time; keeps the stack below two megabytes.
const DEEPEST: u32 = 5_000;

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
        Err(Refusal::NotFlat) => return Found::Unknown,
        Err(Refusal::PinsOverlap) => return Found::NothingBelow(FAR),
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
        memory,
        depth: 0,
    };
    match search.solve(0, strip.sections) {
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

/// A run of sections at one height, lower than what lies beside it.
#[derive(Clone, Copy)]
struct Pit {
    lower: u32,
    upper: u32,
    ground: u64,
    /// The lowest height above the ground that something which does not fit into the pit could rest on.
    rim: u64,
}

/// A section of a pit, and how many ways there are to go on in it.
#[derive(Clone, Copy)]
struct Spot {
    pit: Pit,
    section: u32,
    choices: u32,
    /// Choices, fewer for a section that gave trouble.
    urgency: f32,
}

impl Spot {
    /// Whether to go on here rather than at `other`: what is forced first, then the more urgent, then the lower.
    fn precedes(&self, other: &Self) -> bool {
        if self.choices <= 1 || other.choices <= 1 {
            (self.choices, self.pit.ground) < (other.choices, other.pit.ground)
        } else {
            self.urgency < other.urgency || (self.urgency <= other.urgency && self.pit.ground < other.pit.ground)
        }
    }
}

/// What could rest on the ground of a section: how many bodies, and their sizes together.
#[derive(Clone, Copy, Default)]
struct Cover {
    bodies: i32,
    bytes: i64,
}

/// A way to go on at a spot.
enum Choice {
    /// Put the body at this place in [`Search::choices`] on the ground.
    Place(usize),
    /// Give up the section up to this height.
    Waste(u64),
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
    memory: &'e mut Memory,
    depth: u32,
}

impl Search<'_, '_, '_> {
    /// Places every waiting body that lives in these sections; no body waits that crosses their ends. On failure
    /// everything is as it was.
    fn solve(&mut self, lower: u32, upper: u32) -> Status {
        let mark = self.skyline.mark();
        loop {
            if !self.effort.spend(1 + u64::from(upper - lower) / 16) {
                return Status::Stopped;
            }
            if self.techniques.decompose
                && let Some(border) = self.next_split(lower, upper)
            {
                return self.solve_parts(lower, border, upper, mark);
            }
            if !self.skyline.anyone_waits(lower, upper) {
                return Status::Done;
            }
            let mut best = None;
            match self.survey_pits(lower, upper, &mut best) {
                Survey::Hopeless => return self.fail(mark),
                Survey::Raised => continue,
                Survey::Unchanged => {}
            }
            let Some(spot) = best else { return self.fail(mark) };
            let from = self.choices.len();
            let wasted_to = self.gather(&spot);
            match self.choices.len() - from + usize::from(wasted_to.is_some()) {
                0 => return self.fail(mark),
                1 => {
                    let fits = match wasted_to {
                        Some(height) => self.skyline.raise(spot.section, height),
                        None => self.skyline.place(self.choices[from], spot.pit.ground),
                    };
                    self.choices.truncate(from);
                    if !fits {
                        return self.fail(mark);
                    }
                }
                _ => return self.branch(lower, upper, &spot, from, wasted_to, mark),
            }
        }
    }

    fn fail(&mut self, mark: Mark) -> Status {
        self.skyline.undo(mark);
        Status::Failed
    }

    fn next_split(&self, lower: u32, upper: u32) -> Option<u32> {
        (lower + 1..upper).find(|&border| self.skyline.splits_at(border))
    }

    /// Solves the parts between borders that nothing crosses, each on its own.
    fn solve_parts(&mut self, lower: u32, first_border: u32, upper: u32, mark: Mark) -> Status {
        let (mut from, mut border) = (lower, first_border);
        loop {
            if self.skyline.anyone_waits(from, border) {
                match self.solve_deeper(from, border) {
                    Status::Done => {}
                    Status::Failed => return self.fail(mark),
                    Status::Stopped => return Status::Stopped,
                }
            }
            if border == upper {
                return Status::Done;
            }
            from = border;
            border = self.next_split(from, upper).unwrap_or(upper);
        }
    }

    fn solve_deeper(&mut self, lower: u32, upper: u32) -> Status {
        if self.depth >= DEEPEST {
            return Status::Stopped;
        }
        self.depth += 1;
        let status = self.solve(lower, upper);
        self.depth -= 1;
        status
    }

    /// Tries every choice at `spot`, wasting it last.
    fn branch(
        &mut self,
        lower: u32,
        upper: u32,
        spot: &Spot,
        from: usize,
        wasted_to: Option<u64>,
        mark: Mark,
    ) -> Status {
        let memory = (!self.memory.failed.is_empty()).then(|| {
            let print = self.skyline.fingerprint(lower, upper);
            (print, print as usize & (self.memory.failed.len() - 1))
        });
        let known = memory.is_some_and(|(print, slot)| self.memory.failed[slot] == print);
        let bodies = (from..self.choices.len()).map(Choice::Place);
        let ways = bodies.chain(wasted_to.map(Choice::Waste));
        for choice in ways.take(if known { 0 } else { usize::MAX }) {
            let here = self.skyline.mark();
            let fits = match choice {
                Choice::Place(index) => self.skyline.place(self.choices[index], spot.pit.ground),
                Choice::Waste(height) => self.skyline.raise(spot.section, height),
            };
            if fits {
                match self.solve_deeper(lower, upper) {
                    Status::Failed => {}
                    ended => return ended,
                }
            }
            self.skyline.undo(here);
        }
        self.choices.truncate(from);
        if let Some((print, slot)) = memory {
            self.memory.failed[slot] = print;
        }
        self.fail(mark)
    }

    /// Finds the pits, raises what nothing can fill, and leaves in `best` the spot with the fewest choices.
    fn survey_pits(&mut self, lower: u32, upper: u32, best: &mut Option<Spot>) -> Survey {
        let mut raised = false;
        let mut left = FAR;
        let mut from = lower;
        while from < upper {
            let ground = self.skyline.floor[from as usize];
            let run = self.skyline.floor[from as usize..upper as usize].iter();
            let to = from + run.take_while(|&&floor| floor == ground).count() as u32;
            let right = if to < upper { self.skyline.floor[to as usize] } else { FAR };
            if left > ground && right > ground {
                let pit = Pit { lower: from, upper: to, ground, rim: left.min(right) };
                match self.survey(self.with_full_rim(pit), best) {
                    Survey::Hopeless => return Survey::Hopeless,
                    Survey::Raised => raised = true,
                    Survey::Unchanged => {}
                }
            }
            left = ground;
            from = to;
        }
        if raised { Survey::Raised } else { Survey::Unchanged }
    }

    /// Lowers the rim to the tops of obstacles over the pit, and to the ground of bodies with gaps that reach
    /// into it.
    fn with_full_rim(&self, mut pit: Pit) -> Pit {
        for section in pit.lower..pit.upper {
            if let Some((_, top)) = self.skyline.obstacle(section) {
                pit.rim = pit.rim.min(top);
            }
        }
        for &body in self.skyline.gapped.iter().filter(|&&body| self.skyline.waits(body)) {
            if self.skyline.pieces(body).iter().any(|piece| piece.lower < pit.upper && pit.lower < piece.upper) {
                let ground = self.skyline.ground(body);
                if ground > pit.ground {
                    pit.rim = pit.rim.min(ground);
                }
            }
        }
        pit
    }

    /// Counts, for each section of a pit, the bodies that could rest on its ground.
    fn survey(&mut self, pit: Pit, best: &mut Option<Spot>) -> Survey {
        let mut cover = std::mem::take(&mut self.cover);
        cover.clear();
        cover.resize((pit.upper - pit.lower) as usize + 1, Cover::default());
        self.for_each_fitting(pit, |skyline, body| {
            let choice = i32::from(skyline.is_next(body));
            for piece in skyline.pieces(body) {
                let (lower, upper) = (piece.lower.max(pit.lower), piece.upper.min(pit.upper));
                if lower < upper {
                    let [from, to] = [lower, upper].map(|section| (section - pit.lower) as usize);
                    cover[from].bodies += choice;
                    cover[from].bytes += piece.size as i64;
                    cover[to].bodies -= choice;
                    cover[to].bytes -= piece.size as i64;
                }
            }
        });
        let result = self.judge(pit, &cover, best);
        self.cover = cover;
        result
    }

    /// Wastes what nothing covers, gives up where too little does, and looks for the best spot among the rest.
    fn judge(&mut self, pit: Pit, cover: &[Cover], best: &mut Option<Spot>) -> Survey {
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
                let spot = Spot { pit, section, choices, urgency };
                if best.is_none_or(|best| spot.precedes(&best)) {
                    *best = Some(spot);
                }
            }
        }
        if raised { Survey::Raised } else { Survey::Unchanged }
    }

    /// Calls `visit` for the waiting bodies that could rest on the ground of a pit.
    fn for_each_fitting(&self, pit: Pit, mut visit: impl FnMut(&Skyline, u32)) {
        for section in pit.lower..pit.upper {
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
        for &body in self.skyline.gapped.iter().filter(|&&body| self.skyline.waits(body)) {
            let meets =
                self.skyline.pieces(body).iter().any(|piece| piece.lower < pit.upper && pit.lower < piece.upper);
            if meets && self.skyline.ground(body) == pit.ground && self.skyline.passes_below_obstacles(body, pit.ground)
            {
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
        self.for_each_fitting(pit, |skyline, body| {
            let shape = &skyline.shapes[body as usize];
            let top = align_up(pit.ground, shape.align) + shape.thickness;
            let lives_here = skyline.pieces(body).iter().any(|piece| piece.lower <= section && section < piece.upper);
            if !lives_here {
                height = height.min(top);
            } else {
                if shape.upper - shape.lower == 1 {
                    thinnest_here = thinnest_here.min(top);
                }
                if skyline.is_next(body) {
                    choices.push(body);
                }
            }
        });
        let scores = &self.scores;
        choices[from..].sort_unstable_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        self.choices = choices;
        if height == FAR || thinnest_here <= height {
            return None;
        }
        let wasted = height - pit.ground;
        let slack = self.skyline.slack[section as usize] as u64;
        if wasted > slack {
            self.skyline.note_shortfall(wasted - slack);
            return None;
        }
        Some(height)
    }
}
