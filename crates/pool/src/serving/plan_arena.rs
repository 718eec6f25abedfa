//! What an arena has to be able to do so that plans are served from its memory, and when it is asked to.

use std::sync::Arc;

use lowtide_learn::{Served, StepPlan};

use super::plan_server::{PlanServer, Proposal};
use super::policy::StepCost;
use super::served_plan::ServedPlan;

/// What came of giving a plan its memory.
#[derive(Debug)]
pub(crate) enum LayOut {
    /// It can be served.
    Done(Arc<ServedPlan>),
    /// It is being done, on another thread, at the ends of steps, or while the device is at work.
    Begun,
    /// Something is in the way that may be gone after the next step.
    NotNow,
    /// There is no room for it; it is left alone for a while.
    Refused,
}

/// An arena whose blocks may come from a plan. The required functions are about memory; when they are called is decided here.
pub(crate) trait PlanArena {
    /// Which plan is served.
    fn plans(&self) -> &PlanServer;

    /// The same, to change it.
    fn plans_mut(&mut self) -> &mut PlanServer;

    /// Whether `plan` would not cost more memory than it saves, as far as that can be known before it is laid out.
    fn is_worth_serving(&self, plan: &StepPlan) -> bool;

    /// Gives `plan` memory, while no other plan is served.
    fn lay_out(&mut self, plan: &Arc<StepPlan>) -> LayOut;

    /// Takes back the memory of a plan that is no longer served: what is in use of it becomes blocks, the rest is free.
    fn reclaim(&mut self, served: &ServedPlan);

    /// What the step that is open has cost so far, where that can be compared.
    fn cost(&self) -> Option<StepCost> {
        None
    }

    /// A step was closed in which plans did as `served` says. Called before another plan is taken up.
    fn step_closed(&mut self, _served: Served) {}

    /// Takes back what is no longer in use of the memory of earlier plans, where there is any.
    fn reclaim_idle(&mut self) {}

    /// Closes a step and follows what the learner advises.
    fn close_plan_step(&mut self) {
        let cost = self.cost();
        let closed = self.plans_mut().close_step(cost);
        self.step_closed(closed.served);
        match &closed.proposal {
            Proposal::Drop => self.drop_plan(),
            Proposal::Serve(plan) if self.is_to_be_served(plan) => self.take_up(plan),
            Proposal::Keep | Proposal::Serve(_) => {}
        }
        self.reclaim_idle();
        self.plans_mut().begin_step(&closed);
    }

    /// Whether another plan is to be served than now; what is cheap to know is asked first.
    fn is_to_be_served(&self, plan: &Arc<StepPlan>) -> bool {
        let plans = self.plans();
        plans.may_change_to(plan) && plans.covers_enough(plan) && self.is_worth_serving(plan) && plans.recurs(plan)
    }

    /// Serves a plan from the start where an earlier run has left one.
    fn serve_remembered(&mut self) {
        if let Some(plan) = self.plans().remembered() {
            self.take_up(&plan);
            self.plans_mut().begin();
        }
    }

    /// Serves `plan` from now on. Where memory does not allow it, blocks go on being placed online.
    fn take_up(&mut self, plan: &Arc<StepPlan>) {
        if !self.plans().may_lay_out(plan) {
            return;
        }
        self.drop_plan();
        match self.lay_out(plan) {
            LayOut::Done(served) => self.plans_mut().publish(plan, served),
            LayOut::Begun => {}
            LayOut::NotNow => self.plans_mut().postpone(plan),
            LayOut::Refused => self.plans_mut().refuse(plan),
        }
    }

    /// Serves no plan any more.
    fn drop_plan(&mut self) {
        if let Some(served) = self.plans_mut().withdraw() {
            self.reclaim(&served);
        }
    }

    /// Drops the plan where the step does not follow it, so that its memory serves what comes instead; says whether it did.
    fn yield_plan(&mut self) -> bool {
        let is_astray = self.plans().is_astray();
        if is_astray {
            self.make_room();
        }
        is_astray
    }

    /// Drops the plan, because its memory is needed for what it does not have.
    fn make_room(&mut self) {
        self.plans_mut().note_yielded();
        self.drop_plan();
    }
}
