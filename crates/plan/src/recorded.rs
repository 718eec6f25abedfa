//! From a recorded run to what is planned and explained: its buffers (`lifetimes`) and how it used memory (`usage`).

pub(crate) mod lifetimes;
pub(crate) mod usage;
