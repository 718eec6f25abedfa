//! Problem JSON: buffers with everything that binds them.

mod read;
mod write;

pub(crate) use read::{Names, read};
pub use write::write_problem;
