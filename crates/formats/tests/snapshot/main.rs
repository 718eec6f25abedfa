//! Memory snapshots as they are read: recorded ones, single cases, and random ones against a model.

mod cases;
mod model;
mod pickle;
mod recorded;
