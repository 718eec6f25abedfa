//! The plan that is served, where all threads find it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use super::served_plan::ServedPlan;

pub(crate) type Published = Arc<PublishedPlan>;

/// The plan that is served, if one is. Who comes while it changes may still find the one before it.
#[derive(Debug, Default)]
pub(crate) struct PublishedPlan {
    plan: ArcSwapOption<ServedPlan>,
    /// Whether there is one, but for a moment while it changes: whoever comes then asks under the arena's lock. Much cheaper to ask than the plan.
    exists: AtomicBool,
}

impl PublishedPlan {
    /// Whether it is worth looking for a plan.
    pub(crate) fn exists(&self) -> bool {
        self.exists.load(Ordering::Relaxed)
    }

    /// The plan.
    pub(crate) fn load(&self) -> Guard<Option<Arc<ServedPlan>>> {
        self.plan.load()
    }

    /// Serves another plan from now on, or none.
    pub(crate) fn store(&self, plan: Option<Arc<ServedPlan>>) {
        self.exists.store(plan.is_some(), Ordering::Relaxed);
        self.plan.store(plan);
    }
}
