//! Who works on what, and for how long: pools one after the other (`pools`, `spill`), on each strip a portfolio of
//! solvers (`schedule`), out of one account of time and work (`budget`, `effort`).

pub(crate) mod budget;
pub(crate) mod effort;
pub(crate) mod pools;
pub(crate) mod schedule;
pub(crate) mod spill;
