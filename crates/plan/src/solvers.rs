//! The solvers, one file each, over a strip: `online`, `greedy`, `repair` and `exact`. `room` and `overlaps` say where
//! something could go and what it would meet there.

pub(crate) mod exact;
pub(crate) mod greedy;
pub(crate) mod online;
pub(crate) mod overlaps;
pub(crate) mod repair;
pub(crate) mod room;
