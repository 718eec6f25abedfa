//! From the shape of a pattern to its plan: a [`timeline`] of lifetimes is solved by the [`planner`], on a thread of
//! its own or on the caller's, and once more [around the blocks](replan) that are alive when the plan is taken up.

pub(crate) mod planner;
pub(crate) mod replan;
pub(crate) mod sections;
pub(crate) mod timeline;
