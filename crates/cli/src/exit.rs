//! How a command ends: with an [`Answer`], with a [`Failure`], or with a panic that is reported as one. The exit code
//! comes from here alone.

mod answer;
mod failure;
pub(crate) mod panics;

pub use answer::Answer;
pub use failure::Failure;
