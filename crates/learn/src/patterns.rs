//! What steps have in common: a recording is [aligned](align) with the patterns seen so far and merged into the one it is
//! like; the [`history`] of patterns says which comes next.

pub(crate) mod align;
pub(crate) mod history;
pub(crate) mod matching;
pub(crate) mod pattern;
pub(crate) mod planned_pattern;
pub(crate) mod shape;
