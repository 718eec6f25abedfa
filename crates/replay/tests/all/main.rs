//! Runs played on strategies: every rule of a replay on a trace small enough to know the answer, and recorded runs
//! against what PyTorch reserved for them.

#![allow(clippy::unwrap_used)]

mod arena;
mod devices;
mod hostile;
mod limits;
mod mixture;
mod no_worse;
mod queued;
mod recorded;
mod repeated;
mod start;
mod steps;
mod support;
mod swept;
