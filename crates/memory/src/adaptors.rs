//! Sources around another source, which change one thing about it.

mod failing;
mod forward;
mod limited;

pub use failing::{CallKind, FailPlan, FailWhen, Failing, Failure};
pub use limited::Limited;
