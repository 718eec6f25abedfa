//! A plan made anew around blocks that are alive when it is taken up.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lowtide_core::Bytes;

use crate::Lane;
use crate::patterns::shape::Shape;
use crate::plan::step_plan::StepPlan;
use crate::planning::timeline::{self, Effort};

/// Free memory between blocks is not worth a solve where it is at most this part of the plan's height.
const LITTLE: u64 = 1024;

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

/// A plan that is to be made anew with places that leave blocks alone: what stays is kept clear of, and a slot whose instance is
/// among them has its place. Where blocks of a slot are alive two at a time the new plan is for two steps.
///
/// Knows all that it needs, so that it can be made on any thread.
#[derive(Clone, Debug)]
pub struct Replanning {
    pub(crate) plan: Arc<StepPlan>,
    pub(crate) shape: Arc<Shape>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) carried: Vec<Carried>,
    pub(crate) time_limit: Duration,
    pub(crate) threads: NonZeroUsize,
}

impl Replanning {
    /// The plan, and what it is to be made around.
    pub fn question(&self) -> (&Arc<StepPlan>, &[Carried]) {
        (&self.plan, &self.carried)
    }

    /// Makes the plan, in at most the time limit of a solve; none where there is no such plan, or it was cancelled before there
    /// was any. The plan as it is, where nothing is in its way.
    pub fn run(&self, cancel: &AtomicBool) -> Option<Arc<StepPlan>> {
        let straddles = self.shape.straddles();
        if self.carried.is_empty() && !straddles {
            return Some(Arc::clone(&self.plan)).filter(|plan| plan.height > Bytes::ZERO);
        }
        if let Some(above) = self.above_what_stays().filter(|_| !straddles) {
            return Some(Arc::new(above));
        }
        let count = self.shape.slots.len() as u32;
        let doubled = straddles.then(|| self.shape.doubled());
        // The step that comes is the first of two, so that what is alive is of the second.
        let shift = if straddles { count } else { 0 };
        let carried: Vec<Carried> =
            self.carried.iter().map(|block| Carried { slot: block.slot.map(|slot| slot + shift), ..*block }).collect();
        let shape = doubled.as_ref().unwrap_or(&self.shape);
        let effort = Effort { time_limit: self.time_limit, threads: self.threads, cancel };
        let layout = timeline::place_around(shape, &carried, effort).ok()?;
        let layout = Some(layout).filter(|layout| timeline::holds(shape, layout))?;
        let made = shape.plan(&layout, &self.lanes);
        let steps = if straddles { 2 } else { 1 };
        let made = StepPlan { signature: self.plan.signature, steps, ..made };
        (layout.height > Bytes::ZERO).then(|| Arc::new(made))
    }

    /// The plan as it is, above blocks that all stay and leave next to nothing free between them.
    fn above_what_stays(&self) -> Option<StepPlan> {
        let end = self.carried.iter().map(|block| block.offset + block.bytes).max()?;
        let taken: Bytes = self.carried.iter().map(|block| block.bytes).sum();
        let align = self.plan.slots.iter().map(|slot| slot.align).max()?;
        let floor = end.checked_align_up(align)?;
        let is_little = floor.get() - taken.get().min(floor.get()) <= self.plan.height.get() / LITTLE;
        let stays = self.carried.iter().all(|block| block.slot.is_none());
        (stays && is_little && self.plan.height > Bytes::ZERO).then(|| self.plan.raised(floor))
    }
}
