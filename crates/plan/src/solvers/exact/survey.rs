//! Looking at pits: what could fill them, what must be wasted, and where the complete search goes on best.

use super::Search;
use crate::prepare::strip::align_up;
use crate::solvers::exact::skyline::{FAR, Skyline};
use crate::solvers::exact::spots::{Pit, Spot};

/// What could rest on the ground of a section: how many bodies, and their sizes together.
#[derive(Clone, Copy, Default)]
pub(super) struct Cover {
    bodies: i32,
    bytes: i64,
}

/// What a look at pits came to.
pub(super) enum Survey {
    /// Nothing had to be wasted.
    Unchanged,
    /// Something was wasted, so that there are other pits now.
    Raised,
    /// Some section can neither be filled nor wasted.
    Hopeless,
}

impl Search<'_, '_, '_> {
    /// Looks again at the pits that may have changed: raises what nothing can fill, and notes the best spot of each.
    pub(super) fn survey_pits(&mut self, lower: u32, upper: u32) -> Survey {
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
        // Bodies with gaps are looked at for every pit, several times.
        self.looked_at += u64::from(run.end - run.start) + 16 * self.skyline.gapped.len() as u64;
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
                let trouble = if self.techniques.experience { self.memory.trouble[at] } else { 0.0 };
                let urgency = choices as f32 / (1.0 + trouble);
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
    pub(super) fn gather(&mut self, spot: &Spot) -> Option<u64> {
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
