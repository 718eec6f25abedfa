//! Pools around a pool: each does one thing with the calls that go through it and leaves the serving to the pool
//! within. They wrap any [`Pool`](crate::Pool), each other too.

pub mod fail;
pub mod limit;
pub mod record;
pub mod stats;
mod tally;

pub use fail::{Call, Fail, FaultPlan};
pub use limit::Limit;
pub use record::Record;
pub use stats::{Reading, Statistics};
pub use tally::Tally;

#[cfg(test)]
mod tests;
