//! Learns the memory steps of a program: watches its allocations, plans a step that recurs, and says when to serve the
//! plan. It knows sizes and order alone, and no address: whoever owns a [`Learner`] holds the memory, serves its
//! [`StepPlan`]s with a [`Cursor`] per lane, and places online whatever a plan does not have.
//!
//! A recording of a step (`steps`) is merged into the pattern that it is like (`patterns`). What a pattern looks like
//! after that is solved (`planning`) and becomes a plan (`plan`), which is remembered on disk where the options name a
//! folder (`cache`).
//!
//! ```
//! use lowtide_core::{Align, Bytes};
//! use lowtide_learn::{Advice, Lane, Learner, LearnerOptions, Served};
//!
//! let mut learner = Learner::new(LearnerOptions { background: false, ..LearnerOptions::default() });
//! let mut advice = Advice::Wait;
//! while !matches!(advice, Advice::Serve(_)) {
//!     for bytes in [4096, 1 << 20] {
//!         let ticket = learner.alloc(Lane::default(), Bytes::new(bytes), Align::ONE);
//!         learner.free(ticket);
//!     }
//!     advice = learner.step(Served::default());
//! }
//! // Both blocks can have the same addresses: each is freed before the next is allocated.
//! assert_eq!(learner.likely_next().expect("it was advised").height, Bytes::new(1 << 20));
//! ```

#![forbid(unsafe_code)]

mod advice;
mod cache;
mod learner;
mod options;
mod patterns;
mod plan;
mod planning;
mod progress;
mod steps;
#[cfg(test)]
mod tests;

pub use advice::{Advice, Lane, Served, Ticket};
pub use learner::Learner;
pub use options::LearnerOptions;
pub use plan::cursor::Cursor;
pub use plan::step_plan::{Signature, Slot, StepPlan};
pub use planning::replan::{Carried, Replanning};
pub use steps::period::PeriodFinder;
