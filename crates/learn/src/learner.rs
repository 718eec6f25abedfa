//! The learner itself: takes in a step at a time, has plans made for the patterns that recur, judges how they did, and
//! advises what to serve next.

use std::mem;
use std::sync::Arc;

use lowtide_core::{Align, Bytes};

use crate::advice::{Advice, Lane, Served, Ticket};
use crate::cache::Cache;
use crate::options::LearnerOptions;
use crate::patterns::history::{History, StepKind};
use crate::patterns::pattern::Pattern;
use crate::patterns::planned_pattern::{PlannedPattern, recognise};
use crate::plan::step_plan::{Key, StepPlan};
use crate::planning::planner::{Job, Planner};
use crate::planning::replan::{Carried, Replanning};
use crate::progress::Progress;
use crate::steps::recording::{End, Recording};

/// A step is what its plan was made for when this share of its allocations hits.
const GOOD: f64 = 0.9;

/// A plan is dropped when fewer than [`POOR`] hit in [`MOST_POOR`] steps in a row.
const POOR: f64 = 0.5;
const MOST_POOR: u32 = 3;

/// As many steps are watched after one that was not planned.
const ALERT: u64 = 16;

/// Where so many patterns were seen but once, others are planned only when they come again.
const ONCE: usize = 3;

/// Learns the steps of one program.
///
/// The owner tells it of [`alloc`](Self::alloc) and [`free`](Self::free) while it is [`watching`](Self::watching) and of
/// the end of every [`step`](Self::step), and does as advised. A plan can be wrong about a step that is not like those
/// before it, so that a place may be in use when its turn comes: serve that block online and count a miss.
#[derive(Debug)]
pub struct Learner {
    options: LearnerOptions,
    /// The number of the step under way, counted from one.
    step: u64,
    watching: bool,
    /// How many recordings there were.
    recordings: u32,
    current: Recording,
    /// The step before, where it was watched, and its pattern.
    previous: Option<(Recording, u32)>,
    /// The patterns, the one that came last first.
    patterns: Vec<PlannedPattern>,
    patterns_seen: u32,
    history: History,
    progress: Progress,
    planner: Planner,
    cache: Option<Cache>,
    /// What is served in the step under way, and its pattern.
    serving: Option<(u32, Arc<StepPlan>)>,
    candidates: Vec<Arc<StepPlan>>,
    warnings: Vec<String>,
}

impl Learner {
    /// A learner that has seen nothing but what its cache holds.
    pub fn new(options: LearnerOptions) -> Self {
        let cache = options.cache.clone().filter(|_| options.enabled).map(Cache::new);
        let (remembered, warnings) = cache.as_ref().map(|cache| cache.read(options.patterns)).unwrap_or_default();
        let patterns: Vec<PlannedPattern> = (0..)
            .zip(remembered)
            .map(|(id, plan)| {
                let pattern = Pattern::restored(plan.lanes, &plan.shape);
                PlannedPattern::remembered(id, pattern, plan.shape, plan.layout)
            })
            .collect();
        let serving = patterns.first().and_then(|planned| Some((planned.id, Arc::clone(planned.plan()?))));
        let mut learner = Self {
            step: 1,
            watching: options.enabled && options.start <= 1,
            recordings: 0,
            current: Recording::new(0),
            previous: None,
            patterns_seen: patterns.len() as u32,
            patterns,
            history: History::default(),
            progress: Progress::default(),
            planner: Planner::new(&options, cache.clone()),
            cache,
            serving,
            candidates: Vec::new(),
            warnings,
            options,
        };
        learner.list_candidates();
        learner
    }

    /// Whether [`alloc`](Self::alloc) and [`free`](Self::free) of this step need to be told: not while a plan is served
    /// that does well. Changes only in [`step`](Self::step), and in a step that is too long to be recorded.
    #[inline]
    pub fn watching(&self) -> bool {
        self.watching
    }

    /// Says that nothing of the step that was just begun will be told: what is served was met to the last block.
    pub fn rest(&mut self) {
        self.watching = false;
    }

    /// Forgets what was told since the last step was closed, and of that one what was not: it was no step of the program's.
    pub fn forget_step(&mut self) {
        self.begin_recording();
        self.previous = None;
    }

    /// Begins another recording: tickets of earlier ones end no block of it.
    fn begin_recording(&mut self) {
        self.recordings = self.recordings.wrapping_add(1);
        self.current = Recording::new(self.recordings);
    }

    /// Tells of an allocation. The ticket is for [`free`](Self::free).
    #[inline]
    pub fn alloc(&mut self, lane: Lane, bytes: Bytes, align: Align) -> Ticket {
        if !self.watching {
            return Ticket::NONE;
        }
        if self.current.allocs.len() >= self.options.longest.min(u32::MAX as usize - 1) {
            self.watching = false;
            self.begin_recording();
            return Ticket::NONE;
        }
        self.current.alloc(lane, Key { bytes, align })
    }

    /// Tells that a block was freed; one that is not watched, or no longer, is no matter.
    #[inline]
    pub fn free(&mut self, ticket: Ticket) {
        let before = self.current.allocs.len() as u32;
        if (ticket.0 >> 32) as u32 == self.current.number {
            self.current.free(ticket, End::Within(before));
        } else if let Some((previous, _)) = &mut self.previous
            && self.watching
        {
            previous.free(ticket, End::Next(before));
        }
    }

    /// Closes a step; `served` says how the plan did in it.
    ///
    /// Takes time in proportion to the step where it was watched, and up to the time limit where it plans by itself.
    pub fn step(&mut self, served: Served) -> Advice {
        if !self.options.enabled {
            return Advice::Wait;
        }
        self.take_plans();
        let seen = self.learn(served);
        if let Some(kind) = seen.map(StepKind::Known).or_else(|| self.guess(served)) {
            self.history.push(kind);
            self.progress.alert = if kind == StepKind::Unknown { ALERT } else { self.progress.alert.saturating_sub(1) };
        }
        let dropped = self.judge(served, seen);
        self.plan();
        self.step += 1;
        self.list_candidates();
        let advice = self.advise(dropped);
        self.watching = self.is_worth_watching();
        let room = if self.watching { self.previous.as_ref().map_or(0, |(last, _)| last.allocs.len()) } else { 0 };
        self.begin_recording();
        self.current.allocs.reserve(room);
        advice
    }

    /// Plans of all patterns that are planned, the one that came last first.
    pub fn candidates(&self) -> &[Arc<StepPlan>] {
        &self.candidates
    }

    /// The plan for the step that begins now: what was last advised. Before the first step, the plan of the cache that
    /// was used last.
    pub fn likely_next(&self) -> Option<Arc<StepPlan>> {
        self.serving.as_ref().map(|(_, plan)| Arc::clone(plan))
    }

    /// How `plan` is made anew with places that leave `carried` alone; none where its pattern was forgotten.
    pub fn replanning(&self, plan: &StepPlan, carried: Vec<Carried>) -> Option<Replanning> {
        let is_its_own = |planned: &&PlannedPattern| planned.plan().is_some_and(|own| own.signature == plan.signature);
        let planned = self.patterns.iter().find(is_its_own)?;
        let LearnerOptions { time_limit, threads, .. } = self.options;
        Some(Replanning {
            plan: Arc::clone(planned.plan()?),
            shape: Arc::clone(planned.planned_shape()?),
            lanes: planned.pattern.lanes().to_vec(),
            carried,
            time_limit,
            threads,
        })
    }

    /// What went wrong since the last call without being an error, a sentence each.
    pub fn warnings(&mut self) -> Vec<String> {
        mem::take(&mut self.warnings)
    }

    /// Takes in what was recorded; the step's pattern, or nothing where nothing was.
    fn learn(&mut self, served: Served) -> Option<u32> {
        let recording = mem::take(&mut self.current);
        let previous = self.previous.take();
        if !self.watching || recording.allocs.is_empty() {
            return None;
        }
        let is_first = self.progress.collected == 0;
        let mut is_new = true;
        if let Some((index, matching, is_like)) = recognise(&self.patterns, &recording, is_first) {
            let mut planned = self.patterns.remove(index);
            if is_like {
                let places = planned.pattern.merge(&recording, &matching);
                take_wraps(&mut planned, previous, &recording, &places);
                is_new = planned.take_recording();
            } else {
                planned.pattern.rename(&recording, &matching);
            }
            planned.rename();
            self.patterns.insert(0, planned);
        } else {
            let (pattern, places) = Pattern::new(&recording);
            let mut planned = PlannedPattern::new(self.patterns_seen, pattern);
            self.patterns_seen += 1;
            take_wraps(&mut planned, previous, &recording, &places);
            planned.take_recording();
            self.patterns.insert(0, planned);
            for forgotten in self.patterns.drain(self.options.patterns.max(1).min(self.patterns.len())..) {
                self.history.forget(forgotten.id);
            }
        }
        self.progress.collect(is_new, &self.options);
        self.settle(served, is_new);
        let id = self.patterns[0].id;
        self.previous = Some((recording, id));
        Some(id)
    }

    /// Notes whether there is more to learn about the pattern that was just seen.
    fn settle(&mut self, served: Served, is_new: bool) {
        let planned = &mut self.patterns[0];
        let is_served = self.serving.as_ref().is_some_and(|serving| serving.0 == planned.id);
        if let Some(rate) = served.rate()
            && is_served
            && !is_new
            && rate >= GOOD
            && planned.is_planned()
        {
            planned.settle(1.0 - rate);
        }
    }

    /// What a step was that was not watched: what its plan was made for, if that did well.
    fn guess(&mut self, served: Served) -> Option<StepKind> {
        let rate = served.rate()?;
        let (id, _) = self.serving.as_ref()?;
        let planned = self.patterns.iter_mut().find(|planned| planned.id == *id)?;
        planned.take_missed(1.0 - rate);
        Some(if rate >= GOOD { StepKind::Known(*id) } else { StepKind::Unknown })
    }

    /// Judges the plan that was served; whether it is dropped.
    fn judge(&mut self, served: Served, pattern: Option<u32>) -> bool {
        let (Some(rate), Some((id, _))) = (served.rate(), &self.serving) else { return false };
        let planned = self.patterns.iter_mut().find(|planned| planned.id == *id);
        if rate >= GOOD {
            self.progress.is_wary = false;
            if let Some(planned) = planned
                && !mem::replace(&mut planned.is_proven, true)
                && let (Some(cache), Some(plan)) = (&self.cache, planned.plan())
            {
                cache.touch(plan.signature);
            }
        } else if rate < POOR {
            self.progress.poor += 1;
            if self.progress.poor < MOST_POOR {
                return false;
            }
            // A plan that was made for other steps than these may still be right for its own.
            if let Some(planned) = planned
                && pattern.is_none_or(|pattern| pattern == planned.id)
            {
                planned.drop_plan(self.step);
            }
            (self.progress.poor, self.progress.is_wary) = (0, true);
            self.serving = None;
            return true;
        }
        self.progress.poor = 0;
        false
    }

    /// Has plans made for the patterns that are worth one, the one that came last first.
    fn plan(&mut self) {
        let is_choosy = self.patterns.iter().filter(|planned| planned.seen == 1).count() > ONCE;
        let is_last = self.progress.is_ready && !self.options.relearn;
        while self.planner.is_free()
            && let Some(planned) =
                self.patterns.iter_mut().find(|planned| planned.is_due(self.step, is_choosy, is_last))
        {
            let job = Job {
                pattern: planned.id,
                shape: planned.ask(self.step),
                lanes: planned.pattern.lanes().to_vec(),
                replaces: planned.plan().map(|plan| plan.signature),
            };
            self.planner.start(job);
            self.take_plans();
        }
    }

    /// Takes plans that are ready.
    fn take_plans(&mut self) {
        while let Some(made) = self.planner.finished() {
            self.warnings.extend(made.warnings);
            if let Some(layout) = made.layout
                && let Some(planned) = self.patterns.iter_mut().find(|planned| planned.id == made.pattern)
            {
                planned.take_plan(made.shape, layout);
            }
        }
    }

    /// What to serve next: the plan of the pattern that is expected.
    fn advise(&mut self, dropped: bool) -> Advice {
        let next = self.expected().filter(|planned| !self.progress.is_wary || planned.seen > 1);
        let next = next.and_then(|planned| Some((planned.id, Arc::clone(planned.plan()?))));
        match next.filter(|_| self.progress.is_ready) {
            Some((_, plan)) if self.serving.as_ref().is_some_and(|serving| Arc::ptr_eq(&serving.1, &plan)) => {
                Advice::Wait
            }
            Some((id, plan)) => {
                self.serving = Some((id, Arc::clone(&plan)));
                Advice::Serve(plan)
            }
            None if dropped => Advice::Drop,
            None => Advice::Wait,
        }
    }

    fn expected(&self) -> Option<&PlannedPattern> {
        let next = self.history.next()?;
        self.patterns.iter().find(|planned| StepKind::Known(planned.id) == next)
    }

    fn is_worth_watching(&self) -> bool {
        let has_ended = self.progress.is_ready && !self.options.relearn;
        self.step >= self.options.start
            && !has_ended
            && (self.serving.is_none()
                || self.progress.alert > 0
                || self.expected().is_none_or(|planned| !planned.is_settled))
    }

    fn list_candidates(&mut self) {
        self.candidates.clear();
        self.candidates.extend(self.patterns.iter().filter_map(|planned| planned.plan()).cloned());
    }
}

/// Takes into `planned` what became of blocks of the step before `recording`.
fn take_wraps(planned: &mut PlannedPattern, previous: Option<(Recording, u32)>, recording: &Recording, places: &[u32]) {
    if let Some((before, id)) = previous {
        planned.pattern.take_wraps(&before, recording, places, id == planned.id);
    }
}
