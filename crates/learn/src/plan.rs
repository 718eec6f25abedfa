//! The plan of a step, and a [`Cursor`](cursor::Cursor) that follows it allocation by allocation.

pub(crate) mod cursor;
pub(crate) mod step_plan;
