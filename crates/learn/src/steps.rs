//! A step as it is seen: the [`recording`] of its allocations and frees, and the [`period`] by which steps are found that
//! nobody marks.

pub(crate) mod period;
pub(crate) mod recording;
