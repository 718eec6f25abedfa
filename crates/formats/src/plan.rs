//! Plan files: an offset per buffer, as JSON or as a table.

mod read;
mod write;

pub(crate) use read::read_json;
pub use read::{PlanEntry, PlanFile, PlanPool};
pub use write::write_plan;
