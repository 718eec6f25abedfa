//! Lifetimes CSV: one buffer per row, with or without its offset.

mod gaps;
mod read;
mod write;

pub use read::Lifetimes;
pub(crate) use read::read;
pub use write::{write_lifetimes, write_plan_csv};
