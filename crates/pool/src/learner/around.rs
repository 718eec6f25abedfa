//! Plans made anew around blocks that are alive when the plan is taken up.

use std::sync::atomic::AtomicBool;

use lowtide_core::Bytes;

use super::Learner;
use super::step_plan::StepPlan;
use super::timeline::{self, Effort};

/// A block of an earlier step on the memory that a plan is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// The slot it is an instance of; none where it stays.
    pub slot: Option<u32>,
    /// Where it lies.
    pub offset: Bytes,
    /// How much it takes.
    pub bytes: Bytes,
}

impl Learner {
    /// `plan` with places that leave `carried` alone: what stays is kept clear of, and a slot whose instance is among them
    /// has its place. Where blocks of a slot are alive two at a time
    /// it is for two steps. Takes at most the time limit of a solve. None where there is no such plan.
    pub fn around(&self, plan: &StepPlan, carried: &[Carried]) -> Option<StepPlan> {
        let known = self.known.iter().find(|known| known.plan().is_some_and(|own| own.signature == plan.signature))?;
        let shape = known.planned_shape()?;
        let effort = Effort {
            time_limit: self.options.time_limit,
            threads: self.options.threads,
            cancel: &AtomicBool::new(false),
        };
        let straddles = shape.straddles();
        let count = shape.slots.len() as u32;
        let doubled = straddles.then(|| shape.doubled());
        // The step that comes is the first of two, so that what is alive is of the second.
        let shift = if straddles { count } else { 0 };
        let carried: Vec<Carried> =
            carried.iter().map(|block| Carried { slot: block.slot.map(|slot| slot + shift), ..*block }).collect();
        let shape = doubled.as_ref().unwrap_or(shape);
        let layout = timeline::place_around(shape, &carried, effort).ok()?;
        let layout = Some(layout).filter(|layout| timeline::holds(shape, layout))?;
        let made = shape.plan(&layout, known.pattern.lanes());
        let steps = if straddles { 2 } else { 1 };
        (layout.height > Bytes::ZERO).then_some(StepPlan { signature: plan.signature, steps, ..made })
    }
}
