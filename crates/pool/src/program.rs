//! Programs of requests, for tests: any string of bytes is one, so that property tests and a fuzzer share them. A
//! [`run`] plays one on a pool over a [`Watching`] source and says what the pool broke: blocks that overlap, contents
//! that were lost, memory that was handed on or given back while queued work still used it, counts that do not add up.

mod clocks;
mod memory_model;
mod ops;
mod runner;
mod shadow;
mod violation;
mod watching;

pub(crate) use memory_model::MemoryModel;
pub use ops::{Ask, Misuse, Op, Program};
pub use runner::{Subject, run, run_on_threads};
pub use violation::{Fault, Violation};
pub use watching::Watching;

#[cfg(test)]
mod tests;
