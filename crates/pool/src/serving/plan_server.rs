//! Which plan is served, how plans have done, and what the learner advises when a step is closed. Knows nothing of memory:
//! whoever owns it is a [`PlanArena`](super::PlanArena).

use std::mem::{self, ManuallyDrop};
use std::sync::Arc;

use lowtide_learn::{Advice, Carried, Served, Signature, StepPlan, Ticket};
use rustc_hash::FxHashMap;

use super::observer::Observer;
use super::policy::{Backoff, ServingPolicy, StepCost};
use super::published::Published;
use super::replanner::{Replanned, Replanner};
use super::served_plan::ServedPlan;
use super::slot_table::SlotTable;
use crate::pool::Request;

/// Plans of more slots, or of more pairs of slots that share addresses, are not served: every slot knows all its rivals.
const MOST_SLOTS: usize = 1 << 16;
const MOST_PAIRS: u64 = 1 << 25;

/// The plan that is served, and what is known of how plans do.
#[derive(Debug)]
pub(crate) struct PlanServer {
    policy: ServingPolicy,
    observer: Option<Observer>,
    replanner: Replanner,
    published: Published,
    current: Option<Arc<ServedPlan>>,
    /// The plan that was taken up last, as the learner made it.
    origin: Option<Arc<StepPlan>>,
    /// How plans did in all steps that were closed.
    closed: Served,
    /// How plans did in the step that is open before they were dropped.
    dropped: Served,
    steps: u64,
    /// What the last step has cost in which no plan was served.
    online: Option<StepCost>,
    /// After which step more was in use than ever before.
    grew_at: u64,
    /// Whether a plan had to make room in the step that is open.
    yielded: bool,
    /// For how many steps that were found by their period none was.
    unserved: u32,
    backoff: Backoff,
    /// A plan that could not be laid out, and up to which step it is not tried again.
    refused: Option<(Signature, u64)>,
    /// A plan that could not be laid out yet, and how often.
    postponed: Option<(Signature, u32)>,
}

/// Whether a plan can be served at all: whoever serves it knows all pairs of slots that share addresses.
pub(super) fn is_small_enough(plan: &StepPlan) -> bool {
    plan.slots.len() <= MOST_SLOTS && SlotTable::pairs_of_rivals(plan) <= MOST_PAIRS
}

/// What became of a step that was closed.
#[derive(Debug)]
pub(super) struct ClosedStep {
    /// How plans did in it.
    pub(super) served: Served,
    /// What was served when it ended.
    pub(super) before: Option<Arc<ServedPlan>>,
    pub(super) proposal: Proposal,
}

/// What the learner would have served next.
#[derive(Debug)]
pub(super) enum Proposal {
    /// What is served now.
    Keep,
    /// Nothing.
    Drop,
    /// This plan, if there is room for it.
    Serve(Arc<StepPlan>),
}

impl PlanServer {
    /// A server of no plan; without an observer it will never have one.
    pub(crate) fn new(policy: ServingPolicy, observer: Option<Observer>, published: Published) -> Self {
        let background = observer.as_ref().is_some_and(Observer::is_background);
        Self {
            policy,
            observer,
            replanner: Replanner::new(background),
            published,
            current: None,
            origin: None,
            closed: Served::default(),
            dropped: Served::default(),
            steps: 0,
            online: None,
            grew_at: 0,
            yielded: false,
            unserved: 0,
            backoff: Backoff::default(),
            refused: None,
            postponed: None,
        }
    }

    /// The plan that is served.
    pub(crate) fn current(&self) -> Option<&Arc<ServedPlan>> {
        self.current.as_ref()
    }

    /// How many steps were closed.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// How plans did in all steps that were closed.
    pub(crate) fn closed(&self) -> Served {
        self.closed
    }

    /// How plans did so far, the step that is open included.
    pub(crate) fn so_far(&self) -> Served {
        let mut served = self.closed;
        served += self.dropped;
        if let Some(current) = &self.current {
            served += current.slots.served();
        }
        served
    }

    /// What the learner has to say since the last call, a sentence each.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        self.observer.as_mut().map(Observer::warnings).unwrap_or_default()
    }

    /// Whether a step ends before this request, where nobody marks steps.
    pub(crate) fn ends_step(&mut self, request: &Request) -> bool {
        self.observer.as_mut().is_some_and(|observer| observer.ends_step(request))
    }

    /// Whether anything is learnt at all.
    pub(crate) fn learns(&self) -> bool {
        self.observer.is_some()
    }

    /// The program marks the ends of its steps.
    pub(crate) fn mark(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.mark();
        }
    }

    /// No step ends for so long that none is to be expected.
    pub(crate) fn forget_step(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.forget_step();
        }
    }

    /// A block was handed out.
    pub(crate) fn note_alloc(&mut self, request: &Request, address: u64) -> Ticket {
        self.observer.as_mut().map_or(Ticket::NONE, |observer| observer.note(request, address))
    }

    /// Tells the learner of a free.
    pub(crate) fn note_free(&mut self, ticket: Ticket) {
        if let Some(observer) = &mut self.observer {
            observer.note_free(ticket);
        }
    }

    /// The same of a block that is known by its address alone.
    pub(crate) fn observe_alloc(&mut self, request: &Request, address: u64) {
        if let Some(observer) = &mut self.observer {
            observer.alloc(request, address);
        }
    }

    /// A block was taken back.
    pub(crate) fn observe_free(&mut self, address: u64) {
        if let Some(observer) = &mut self.observer {
            observer.free(address);
        }
    }

    /// Which slot of `plan` each address is an instance of, by the step that was closed last.
    pub(crate) fn instances(&self, plan: &StepPlan) -> FxHashMap<u64, u32> {
        self.observer.as_ref().map(|observer| observer.instances(plan)).unwrap_or_default()
    }

    /// `plan` made anew around blocks that stay where they are; it is begun only where it `may_begin`.
    pub(crate) fn plan_around(&mut self, plan: &StepPlan, carried: Vec<Carried>, may_begin: bool) -> Replanned {
        let work = self.observer.as_ref().and_then(|observer| observer.replanning(plan, carried));
        // Before the first step nobody waits for anything else.
        let is_beginning = self.steps == 0;
        work.map_or(Replanned::Impossible, |work| self.replanner.ask(work, is_beginning, may_begin))
    }

    /// Whether the program may be kept waiting for the sake of a plan: where plans are made while it waits anyway.
    pub(crate) fn may_wait(&self) -> bool {
        !self.replanner.is_background()
    }

    /// What is in use of the plan that is served.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        self.current.as_ref().map_or(0, |served| served.slots.in_use().map(|slot| slot.bytes.get()).sum())
    }

    /// Whether the step that is open does not follow its plan.
    pub(super) fn is_astray(&self) -> bool {
        self.current.as_ref().is_some_and(|served| self.policy.is_astray(served.slots.served()))
    }

    /// The plan that an earlier run has left for the first step.
    pub(super) fn remembered(&self) -> Option<Arc<StepPlan>> {
        self.observer.as_ref().and_then(Observer::likely_next)
    }

    /// Closes a step that has cost so much, where that is known: judges the plan that was served in it, and hears what the learner
    /// advises.
    pub(super) fn close_step(&mut self, cost: Option<StepCost>) -> ClosedStep {
        self.steps += 1;
        let yielded = mem::take(&mut self.yielded);
        let was_served = yielded || self.current.is_some() || self.dropped != Served::default();
        let mut served = mem::take(&mut self.dropped);
        if let Some(current) = &self.current {
            served += current.slots.restart();
        }
        self.closed += served;
        self.backoff.judge(served, self.steps, &self.policy);
        let loses = was_served && self.loses(cost, yielded, served);
        if !was_served {
            self.note_online(cost);
        }
        self.rest_from_finding(was_served);
        let proposal = self.proposal(served);
        let proposal = if loses { Proposal::Drop } else { proposal };
        ClosedStep { served, before: self.current.clone(), proposal }
    }

    /// Notes what a step costs without a plan.
    fn note_online(&mut self, cost: Option<StepCost>) {
        let Some(cost) = cost else { return };
        if self.online.is_none_or(|online| cost.most_in_use > online.most_in_use) {
            self.grew_at = self.steps;
        }
        self.online = Some(cost);
    }

    /// Whether the plan that was served costs more than none would, or had to make room.
    fn loses(&mut self, cost: Option<StepCost>, yielded: bool, served: Served) -> bool {
        let Some(cost) = cost else { return false };
        let loses = yielded || self.online.is_some_and(|online| cost.is_above(&online));
        if loses {
            let tries_again = self.observer.as_ref().is_some_and(Observer::relearns);
            self.backoff.lose(self.steps, tries_again);
        } else if served.hits > 0 && self.current.is_some() {
            self.backoff.win();
        }
        loses
    }

    /// Where steps are found by their period and no plan comes of it, they are looked for ever less often.
    fn rest_from_finding(&mut self, was_served: bool) {
        /// So many steps are found before that.
        const MOST_UNSERVED: u32 = 32;
        let Some(observer) = self.observer.as_mut().filter(|observer| observer.finds_steps()) else { return };
        self.unserved = if was_served { 0 } else { self.unserved + 1 };
        if self.unserved >= MOST_UNSERVED {
            self.unserved = 0;
            observer.rest_from_finding();
        }
    }

    fn proposal(&mut self, served: Served) -> Proposal {
        let Some(observer) = &mut self.observer else { return Proposal::Keep };
        let is_judged = served != Served::default() && (self.policy.judges_dropped || self.current.is_some());
        if let Some(origin) = self.origin.as_ref().filter(|_| is_judged) {
            observer.judge(origin.signature, served);
        }
        match observer.close(served) {
            Advice::Serve(plan) => Proposal::Serve(plan),
            // What a step did not follow, the next one hardly will.
            Advice::Wait if self.policy.insists || !self.policy.is_astray(served) => {
                observer.likely_next().map_or(Proposal::Keep, Proposal::Serve)
            }
            Advice::Wait => Proposal::Keep,
            Advice::Drop => Proposal::Drop,
        }
    }

    /// Whether another plan than the one that is served may be. What outlives its step is known after the second.
    pub(super) fn may_change_to(&self, plan: &Arc<StepPlan>) -> bool {
        let is_other = self.origin.as_ref().is_none_or(|origin| !Arc::ptr_eq(origin, plan));
        (is_other || self.current.is_none()) && self.steps > 1 && self.backoff.allows(self.steps)
    }

    /// Whether a plan covers enough of what is in use to make a difference, and that does not grow from step to step; where the program
    /// marks its steps, any does.
    pub(super) fn covers_enough(&self, plan: &StepPlan) -> bool {
        /// For so many steps.
        const STEADY: u64 = 8;
        let is_marked = self.observer.as_ref().is_some_and(Observer::is_marked);
        let least = self.policy.least_part.zip(self.online).filter(|_| !is_marked);
        least.is_none_or(|(part, online)| {
            plan.height.get() >= online.most_in_use / part && self.steps >= self.grew_at + STEADY
        })
    }

    /// Whether a plan is for a step that recurs. Takes time in proportion to the last step, and to others once for a new plan.
    pub(super) fn recurs(&self, plan: &StepPlan) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.recurs(plan))
    }

    /// Whether a plan can be served at all, and was not refused lately.
    pub(super) fn may_lay_out(&self, plan: &StepPlan) -> bool {
        let is_resting =
            self.refused.is_some_and(|(signature, until)| signature == plan.signature && self.steps < until);
        !is_resting && plan.height.get() > 0 && is_small_enough(plan)
    }

    /// A plan could not be laid out yet. One that never can is left alone for a while.
    pub(super) fn postpone(&mut self, plan: &StepPlan) {
        /// So often it is tried.
        const MOST: u32 = 16;
        let before = self.postponed.filter(|(signature, _)| *signature == plan.signature).map_or(0, |(_, times)| times);
        self.postponed = Some((plan.signature, before + 1));
        if before + 1 >= MOST {
            self.postponed = None;
            self.refuse(plan);
        }
    }

    /// A plan could not be laid out.
    pub(super) fn refuse(&mut self, plan: &StepPlan) {
        self.refused = Some((plan.signature, self.steps + self.policy.rest));
    }

    /// All threads are served from a plan that was laid out, which the learner made as `origin`.
    pub(super) fn publish(&mut self, origin: &Arc<StepPlan>, served: Arc<ServedPlan>) {
        self.origin = Some(Arc::clone(origin));
        self.postponed = None;
        self.published.store(Some(Arc::clone(&served)));
        self.current = Some(served);
    }

    /// Serves no plan any more. What was in use is the caller's from now on.
    pub(super) fn withdraw(&mut self) -> Option<Arc<ServedPlan>> {
        let served = self.current.take()?;
        served.slots.close();
        self.published.store(None);
        self.dropped += served.slots.served();
        Some(served)
    }

    /// The plan that was served had to make room for what it does not have.
    pub(super) fn note_yielded(&mut self) {
        self.yielded = true;
    }

    /// A step begins: all of it is watched, unless the same plan was met to the last block in the one before.
    pub(super) fn begin_step(&mut self, closed: &ClosedStep) {
        if let (Some(observer), Some(current)) = (&mut self.observer, &self.current) {
            observer.attend(current, closed.before.as_ref(), closed.served);
        }
    }

    /// The first step begins.
    pub(super) fn begin(&self) {
        if let (Some(observer), Some(current)) = (&self.observer, &self.current) {
            current.watch(observer.attends());
        }
    }

    /// Serves nothing until [`resume`](Self::resume): when this returns, nobody is about to take a slot.
    pub(crate) fn pause(&self) {
        if let Some(served) = &self.current {
            served.slots.pause();
        }
    }

    /// Serves again.
    pub(crate) fn resume(&self) {
        if let Some(served) = &self.current {
            served.slots.resume();
        }
    }

    /// In a forked child, after [`pause`](Self::pause) in its parent: no plan is served, and `observer` begins anew. The threads
    /// of both were the parent's: whoever was about to look at them has their locks, so that they are never dropped. What was
    /// in use is the caller's from now on.
    pub(crate) fn start_anew(&mut self, observer: Option<Observer>) -> Option<ManuallyDrop<Arc<ServedPlan>>> {
        let served = self.current.take().map(ManuallyDrop::new);
        if let Some(served) = &served {
            served.slots.close_alone();
            self.published.store(None);
        }
        let fresh = Self::new(self.policy.clone(), observer, Arc::clone(&self.published));
        mem::forget(mem::replace(self, fresh));
        served
    }

    /// Forgets the steps that were seen, so that a plan recurs only where it was followed.
    #[cfg(test)]
    pub(super) fn forget_steps(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.forget_steps();
        }
    }

    /// Learns no more, so that a test can see what the arena does without.
    #[cfg(test)]
    pub(crate) fn stop_learning(&mut self) {
        self.observer = None;
    }
}
