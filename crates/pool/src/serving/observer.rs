//! What an arena reports to its learner, and what it remembers of the last steps to know their blocks again in a plan.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use lowtide_core::{Align, Bytes};
use lowtide_learn::{
    Advice, Carried, Cursor, Lane, Learner, LearnerOptions, PeriodFinder, Replanning, Served, Signature, StepPlan,
    Ticket,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::policy::ServingPolicy;
use super::served_plan::ServedPlan;
use crate::pool::Request;

/// A learner and its place in the program.
#[derive(Debug)]
pub(crate) struct Observer {
    learner: Learner,
    background: bool,
    relearns: bool,
    /// How often steps were no longer looked for because no plan came of them.
    rests: u32,
    /// How often in a row nothing was found where a step would have been far too long.
    fruitless_searches: u32,
    finder: PeriodFinder,
    finding: Finding,
    tickets: FxHashMap<u64, Ticket>,
    /// The allocations of the step that is open, and of the last ones, the latest first.
    log: Log,
    earlier: VecDeque<PastStep>,
    /// How many of those are remembered to see whether a step recurs.
    remembered: usize,
    /// Whether what is freed between allocations tells steps apart as well, and how much that was since the last.
    counts_frees: bool,
    frees: u64,
    /// Plans that were served and followed.
    trusted: FxHashSet<Signature>,
}

/// Whether steps are found by their period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Finding {
    /// No: the program says where they end.
    Never,
    /// After so many more allocations, if nobody has said it by then.
    After(u64),
    /// After so many more allocations; until then nothing is learned either.
    RestsFor(u64),
    Now,
}

impl Finding {
    /// What it is after another allocation.
    fn after_one(self) -> Self {
        match self {
            Self::After(0 | 1) | Self::RestsFor(0 | 1) => Self::Now,
            Self::After(wait) => Self::After(wait - 1),
            Self::RestsFor(wait) => Self::RestsFor(wait - 1),
            Self::Never | Self::Now => self,
        }
    }

    fn is_resting(self) -> bool {
        matches!(self, Self::RestsFor(_))
    }
}

/// The allocations of a step in order, with the addresses they got.
type Log = Vec<Logged>;

/// An allocation and its address.
type Logged = (Lane, Bytes, Align, u64);

/// A step that was closed, and the plans of which it is known whether it follows them: the same few are asked for after every step.
#[derive(Debug)]
struct PastStep {
    log: Log,
    known: RefCell<Vec<Known>>,
}

/// Whether a step follows a plan for some lanes.
#[derive(Debug)]
struct Known {
    plan: Signature,
    lanes: Vec<Lane>,
    follows: bool,
}

impl Known {
    fn is_of(&self, plan: &StepPlan) -> bool {
        self.plan == plan.signature && plan.lanes().eq(self.lanes.iter().copied())
    }
}

impl PastStep {
    fn new(log: Log) -> Self {
        Self { log, known: RefCell::default() }
    }

    /// Whether it has most slots of a plan. Takes time in proportion to the step where that is not known yet.
    fn follows(&self, plan: &StepPlan) -> bool {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.iter().find(|known| known.is_of(plan)) {
            return known.follows;
        }
        let enough = |found: usize| 100 * found >= FOLLOWS * plan.slots.len();
        // Of another batch most sizes are others: then nothing has to be matched one by one.
        let sizes: FxHashSet<Bytes> = plan.slots.iter().map(|slot| slot.bytes).collect();
        let of_a_size = self.log.iter().filter(|(_, bytes, ..)| sizes.contains(bytes)).count();
        // A first step has the set-up before it.
        let behind = &self.log[self.log.len().saturating_sub(plan.slots.len())..];
        let follows = enough(of_a_size)
            && (enough(instances(&self.log, plan).len())
                || behind.len() < self.log.len() && enough(instances(behind, plan).len()));
        if known.len() < MOST_KNOWN {
            known.push(Known { plan: plan.signature, lanes: plan.lanes().collect(), follows });
        }
        follows
    }
}

/// Of so many plans it is kept whether a step follows them.
const MOST_KNOWN: usize = 64;

/// No block has so many bytes that its size would reach up to here.
const FREES_AT: u32 = 56;
const MOST_FREES: u64 = 63;

/// More plans than are ever served in turn.
const MOST_TRUSTED: usize = 1024;

/// A step follows a plan if it has this share of the plan's slots, in parts of a hundred.
const FOLLOWS: usize = 60;

impl Observer {
    /// A learner that has seen nothing; steps are found by their period after `finds` allocations, where there is such a number.
    pub(crate) fn new(options: LearnerOptions, finds: Option<u64>, policy: &ServingPolicy) -> Self {
        Self {
            background: options.background,
            relearns: options.relearn,
            rests: 0,
            fruitless_searches: 0,
            learner: Learner::new(options),
            finder: policy.sizes_kept.map_or_else(PeriodFinder::new, PeriodFinder::keeping),
            finding: match finds {
                None => Finding::Never,
                Some(0) => Finding::Now,
                Some(wait) => Finding::After(wait),
            },
            tickets: FxHashMap::default(),
            log: Log::new(),
            earlier: VecDeque::new(),
            remembered: policy.remembered_steps,
            counts_frees: policy.counts_frees,
            frees: 0,
            trusted: FxHashSet::default(),
        }
    }

    /// Whether plans are made on a thread of their own.
    pub(crate) fn is_background(&self) -> bool {
        self.background
    }

    /// Whether it goes on learning once plans were served.
    pub(crate) fn relearns(&self) -> bool {
        self.relearns
    }

    /// Whether steps are found by their period.
    pub(crate) fn finds_steps(&self) -> bool {
        self.finding == Finding::Now
    }

    /// Whether the program has closed a step itself.
    pub(crate) fn is_marked(&self) -> bool {
        self.finding == Finding::Never
    }

    /// No step ends for so long that none is to be expected: what was recorded is forgotten, and where steps are looked for in vain, that
    /// is given up for a while.
    pub(crate) fn forget_step(&mut self) {
        /// So often steps are looked for.
        const MOST_FRUITLESS: u32 = 2;
        self.log.clear();
        self.tickets.clear();
        self.learner.forget_step();
        if self.is_marked() {
            // What follows until the program closes the step is only its end.
            self.learner.rest();
        }
        self.fruitless_searches += u32::from(self.finds_steps());
        if self.fruitless_searches >= MOST_FRUITLESS {
            self.fruitless_searches = 0;
            self.rest_from_finding();
        }
    }

    /// Looks for no steps and learns nothing for a while, each time for longer.
    pub(crate) fn rest_from_finding(&mut self) {
        /// The first rest, in allocations, and how often it is doubled at most.
        const REST: (u64, u32) = (1 << 16, 12);
        self.finding = Finding::RestsFor(REST.0 << self.rests.min(REST.1));
        self.rests += 1;
        self.finder.forget();
        self.tickets.clear();
        self.log.clear();
        self.learner.rest();
    }

    /// Whether every allocation and free has to come by.
    pub(crate) fn attends(&self) -> bool {
        !self.is_marked() || self.learner.watching()
    }

    /// Whether a step ends before this request, where nobody says so.
    pub(crate) fn ends_step(&mut self, request: &Request) -> bool {
        if self.finding != Finding::Now {
            self.finding = self.finding.after_one();
            return false;
        }
        // A program whose blocks are all of one size repeats what it frees between them.
        let frees = std::mem::take(&mut self.frees).min(MOST_FREES);
        self.finder.push(lane(request), Bytes::new(request.bytes.get() | frees << FREES_AT))
    }

    /// The program closes a step itself.
    pub(crate) fn mark(&mut self) {
        if !self.is_marked() {
            self.finding = Finding::Never;
            self.finder.forget();
        }
    }

    /// Notes an allocation. The ticket is for [`note_free`](Self::note_free).
    pub(crate) fn note(&mut self, request: &Request, address: u64) -> Ticket {
        if !self.learner.watching() {
            return Ticket::NONE;
        }
        self.log.push((lane(request), request.bytes, request.align, address));
        self.learner.alloc(lane(request), request.bytes, request.align)
    }

    pub(crate) fn note_free(&mut self, ticket: Ticket) {
        self.frees += u64::from(self.counts_frees);
        if ticket != Ticket::NONE {
            self.learner.free(ticket);
        }
    }

    /// Notes an allocation whose ticket is found by its address.
    pub(crate) fn alloc(&mut self, request: &Request, address: u64) {
        let ticket = self.note(request, address);
        if ticket != Ticket::NONE {
            self.tickets.insert(address, ticket);
        }
    }

    pub(crate) fn free(&mut self, address: u64) {
        let ticket = self.tickets.remove(&address).unwrap_or(Ticket::NONE);
        self.note_free(ticket);
    }

    /// Closes a step in which a plan did as `served` says.
    pub(crate) fn close(&mut self, served: Served) -> Advice {
        if self.learner.watching() {
            self.earlier.push_front(PastStep::new(std::mem::take(&mut self.log)));
            self.earlier.truncate(self.remembered);
        }
        self.log.clear();
        self.fruitless_searches = 0;
        let advice = self.learner.step(served);
        if self.finding.is_resting() {
            self.learner.rest();
        }
        advice
    }

    /// Notes whether a plan that was served was followed.
    pub(crate) fn judge(&mut self, signature: Signature, served: Served) {
        if served.hits > served.misses {
            if self.trusted.len() >= MOST_TRUSTED {
                self.trusted.clear();
            }
            self.trusted.insert(signature);
        } else {
            self.trusted.remove(&signature);
        }
    }

    /// A step begins in which `serving` serves: all of it is watched, unless the same plan was met to the last block before.
    pub(crate) fn attend(&mut self, serving: &Arc<ServedPlan>, before: Option<&Arc<ServedPlan>>, served: Served) {
        let stays = before.is_some_and(|before| Arc::ptr_eq(before, serving));
        if stays && served.misses == 0 && served.hits > 0 {
            self.learner.rest();
        }
        serving.watch(self.attends());
    }

    /// The plan for the step that begins now, where the learner has one.
    pub(crate) fn likely_next(&self) -> Option<Arc<StepPlan>> {
        self.learner.likely_next()
    }

    /// How `plan` is made anew around blocks that stay where they are.
    pub(crate) fn replanning(&self, plan: &StepPlan, carried: Vec<Carried>) -> Option<Replanning> {
        self.learner.replanning(plan, carried)
    }

    /// What the learner has to say since the last call, a sentence each.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        self.learner.warnings()
    }

    /// Whether a plan is for a step that recurs: it was followed before, or would have been twice.
    pub(crate) fn recurs(&self, plan: &StepPlan) -> bool {
        let mut following = self.earlier.iter().filter(|step| step.follows(plan));
        self.trusted.contains(&plan.signature) || following.nth(1).is_some()
    }

    #[cfg(test)]
    pub(super) fn forget_steps(&mut self) {
        self.earlier.clear();
    }

    /// Which slot of `plan` each address is an instance of, by the step that was closed.
    pub(crate) fn instances(&self, plan: &StepPlan) -> FxHashMap<u64, u32> {
        let mut by_address = FxHashMap::default();
        for (address, slot) in self.earlier.front().map(|step| instances(&step.log, plan)).unwrap_or_default() {
            by_address.insert(address, slot);
        }
        by_address
    }
}

/// The allocations of a step that are in a plan: their addresses and slots, in order.
fn instances(log: &[Logged], plan: &StepPlan) -> Vec<(u64, u32)> {
    let mut cursors: Vec<(Lane, Cursor)> = plan.lanes().map(|lane| (lane, Cursor::new(plan, lane))).collect();
    let mut found = Vec::with_capacity(log.len());
    for &(lane, bytes, align, address) in log {
        let cursor = cursors.iter_mut().find(|(other, _)| *other == lane);
        if let Some(slot) = cursor.and_then(|(_, cursor)| cursor.next(plan, bytes, align)) {
            found.push((address, slot));
        }
    }
    found
}

fn lane(request: &Request) -> Lane {
    Lane { thread: request.thread, stream: request.stream }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_looked_for_in_vain_are_given_up_for_ever_longer() {
        let options = LearnerOptions { background: false, ..LearnerOptions::default() };
        let mut observer = Observer::new(options, Some(0), &ServingPolicy::DEVICE);
        let request = Request::new(Bytes::new(512));
        let mut rests = Vec::new();
        for _ in 0..3 {
            observer.forget_step();
            assert!(observer.finds_steps(), "once is not enough");
            observer.forget_step();
            let mut rest = 0;
            while !observer.finds_steps() {
                assert!(!observer.ends_step(&request));
                observer.alloc(&request, rest);
                assert!(observer.log.is_empty() && observer.tickets.is_empty(), "what rests records nothing");
                rest += 1;
            }
            rests.push(rest);
            observer.close(Served::default());
        }
        assert_eq!(rests, [1 << 16, 1 << 17, 1 << 18]);
    }
}
