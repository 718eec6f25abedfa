//! A pattern with its plan, and when it is worth another.

use std::sync::Arc;

use lowtide_core::Bytes;
use rustc_hash::FxHashMap;

use crate::patterns::matching::Matching;
use crate::patterns::pattern::Pattern;
use crate::patterns::shape::Shape;
use crate::plan::step_plan::{Key, StepPlan};
use crate::planning::timeline::Layout;
use crate::steps::recording::Recording;

/// For the first recordings of a pattern, whatever they add is planned at once.
const FRESH: u64 = 3;

/// Afterwards, when so many recordings in a row were not what the plan was made for.
const RESTLESS: u64 = 2;

/// A pattern that was seen once is not planned while nobody knows how long more than this of it lives: it would lie
/// beside the plan, and the next step tells.
const MOST_UNKNOWN: Bytes = Bytes::new(32 << 20);

/// Lanes get new names in a plan this often; where they go on changing, cursors find them by their sizes.
const MOST_RENAMINGS: u32 = 3;

/// Steps for which a pattern is not planned again after its plan was dropped for the first time.
const REST: u64 = 8;

/// A step may miss this much more than those before it, and so many steps in a row may miss less than that more.
const TOLERANCE: f64 = 0.01;
const MOST_STRAYED: u32 = 2;

/// A pattern with its plan.
#[derive(Debug)]
pub(crate) struct PlannedPattern {
    pub id: u32,
    pub pattern: Pattern,
    /// In how many steps it was seen.
    pub seen: u64,
    /// Whether nothing is to be learned about it for now.
    pub is_settled: bool,
    /// The share of misses with which it settled.
    tolerated: f64,
    /// Steps in a row with more misses since.
    strayed: u32,
    /// Whether it was remembered from an earlier run.
    pub is_remembered: bool,
    /// Whether its plan has shown its worth in this run.
    pub is_proven: bool,
    /// What it looks like now.
    shape: Arc<Shape>,
    /// What a plan was last asked for.
    asked: Option<Arc<Shape>>,
    plan: Option<(Arc<Shape>, Layout, Arc<StepPlan>)>,
    restless: u64,
    plans: u32,
    asked_at: u64,
    rests_until: u64,
    drops: u32,
    renamings: u32,
}

impl PlannedPattern {
    /// A pattern that was just seen for the first time.
    pub fn new(id: u32, pattern: Pattern) -> Self {
        let shape = Arc::new(pattern.shape());
        Self {
            id,
            pattern,
            seen: 0,
            is_settled: false,
            tolerated: 0.0,
            strayed: 0,
            is_remembered: false,
            is_proven: false,
            shape,
            asked: None,
            plan: None,
            restless: 0,
            plans: 0,
            asked_at: 0,
            rests_until: 0,
            drops: 0,
            renamings: 0,
        }
    }

    /// A pattern whose plan an earlier run has made.
    pub fn remembered(id: u32, pattern: Pattern, shape: Shape, layout: Layout) -> Self {
        let shape = Arc::new(shape);
        let mut known = Self::new(id, pattern);
        (known.shape, known.asked, known.is_remembered) = (Arc::clone(&shape), Some(Arc::clone(&shape)), true);
        known.take_plan(shape, layout);
        known
    }

    /// Its plan, where there is one.
    pub fn plan(&self) -> Option<&Arc<StepPlan>> {
        self.plan.as_ref().map(|plan| &plan.2)
    }

    /// What its plan is for.
    pub fn planned_shape(&self) -> Option<&Arc<Shape>> {
        self.plan.as_ref().map(|plan| &plan.0)
    }

    /// Looks at the pattern again after a recording was taken in; whether it is not what a plan was asked for.
    pub fn take_recording(&mut self) -> bool {
        self.seen += 1;
        let shape = self.pattern.shape();
        let is_new = self.asked.as_deref() != Some(&shape);
        if *self.shape != shape {
            self.shape = Arc::new(shape);
        }
        self.restless = if is_new { self.restless + 1 } else { 0 };
        self.is_settled &= !is_new;
        is_new
    }

    /// Whether it is worth a plan in step `now`. A pattern that was seen once is not, where `is_choosy`; any that is not
    /// what its plan was made for is, when this `is_last` chance.
    pub fn is_due(&self, now: u64, is_choosy: bool, is_last: bool) -> bool {
        let fits = self.asked.as_ref() == Some(&self.shape);
        if fits || now < self.rests_until || self.seen == 0 {
            return false;
        }
        let waited = now >= self.asked_at + (1 << self.plans.saturating_sub(FRESH as u32).min(6));
        match self.asked {
            None => self.seen > 1 || !is_choosy && self.pattern.unknown() <= MOST_UNKNOWN,
            Some(_) => is_last || self.seen <= FRESH || self.restless >= RESTLESS && waited,
        }
    }

    /// What a plan is to be made for, which is then taken as asked.
    pub fn ask(&mut self, now: u64) -> Arc<Shape> {
        self.asked = Some(Arc::clone(&self.shape));
        self.asked_at = now;
        self.plans += 1;
        Arc::clone(&self.shape)
    }

    /// Takes a plan that was made.
    pub fn take_plan(&mut self, shape: Arc<Shape>, layout: Layout) {
        let plan = Arc::new(shape.plan(&layout, self.pattern.lanes()));
        self.plan = Some((shape, layout, plan));
    }

    /// Gives lanes the names that they have in `recording`, where the plan has others.
    pub fn rename(&mut self) {
        let Some((shape, layout, plan)) = &self.plan else { return };
        let lanes = self.pattern.lanes();
        let is_named = shape.slots.iter().zip(&plan.slots).all(|(slot, named)| lanes[slot.lane as usize] == named.lane);
        if !is_named && self.renamings < MOST_RENAMINGS {
            self.renamings += 1;
            let (shape, layout) = (Arc::clone(shape), layout.clone());
            self.take_plan(shape, layout);
        }
    }

    /// Notes that there is nothing to learn about it for now, while its plan misses no larger share than `missed`.
    pub fn settle(&mut self, missed: f64) {
        (self.is_settled, self.tolerated, self.strayed) = (true, missed, 0);
    }

    /// Notes the share of misses of a step that was not watched. What goes on missing more, or misses much more, is worth
    /// another look.
    pub fn take_missed(&mut self, missed: f64) {
        self.strayed = if missed > self.tolerated { self.strayed + 1 } else { 0 };
        if self.strayed >= MOST_STRAYED || missed > self.tolerated + TOLERANCE {
            self.is_settled = false;
        }
    }

    /// Whether its plan is for what it looks like now.
    pub fn is_planned(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.0 == self.shape)
    }

    /// Gives its plan up; it is planned again some time later.
    pub fn drop_plan(&mut self, now: u64) {
        self.plan = None;
        self.asked = None;
        self.is_settled = false;
        self.rests_until = now + (REST << self.drops.min(16));
        self.drops += 1;
    }
}

/// The pattern among `known` that `recording` is, if any, and which of its slots the allocations are.
pub(crate) fn recognise(
    known: &[PlannedPattern],
    recording: &Recording,
    is_first: bool,
) -> Option<(usize, Matching, bool)> {
    let tracks = recording.tracks();
    let mut sizes: FxHashMap<Key, u32> = FxHashMap::default();
    for &key in tracks.iter().flat_map(|track| &track.keys) {
        *sizes.entry(key).or_default() += 1;
    }
    let mut best: Option<(usize, Matching, bool)> = None;
    for (index, known) in known.iter().enumerate().filter(|(_, known)| known.pattern.can_match(&sizes)) {
        let matching = known.pattern.matching(recording, &tracks);
        let is_like = known.pattern.is_like(&matching);
        // The first step of a run may have its set-up before it.
        let is_within = is_first && known.is_remembered && known.pattern.is_within(&matching);
        if (is_like || is_within) && best.as_ref().is_none_or(|best| best.1.count < matching.count) {
            let is_all = matching.count == recording.allocs.len();
            best = Some((index, matching, is_like));
            if is_all {
                break;
            }
        }
    }
    best
}
