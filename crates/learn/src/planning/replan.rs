//! A plan made anew around blocks that are alive when it is taken up.

use lowtide_core::Bytes;

use crate::patterns::planned_pattern::PlannedPattern;
use crate::plan::step_plan::StepPlan;
use crate::planning::timeline::{self, Effort};

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

/// The pattern's plan with places that leave `carried` alone; none where there is no such plan.
pub(crate) fn replan(planned: &PlannedPattern, carried: &[Carried], effort: Effort) -> Option<StepPlan> {
    let (shape, plan) = (planned.planned_shape()?, planned.plan()?);
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
    let made = shape.plan(&layout, planned.pattern.lanes());
    let steps = if straddles { 2 } else { 1 };
    (layout.height > Bytes::ZERO).then_some(StepPlan { signature: plan.signature, steps, ..made })
}
