//! Memory planning: lifetimes in, validated offsets with a bound out.
//!
//! [`solve`] is the way in. A problem becomes rigid bodies (`rigid`) over sections of time (`strip`), pool by pool
//! and zone by zone (`pools`). On each strip a portfolio works in turns (`schedule`): a first plan at once
//! (`online`), passes in several orders (`greedy`), repair under a lower ceiling (`repair`), and complete search
//! (`exact` over `skyline`), which is also what proves. Every plan passes [`validate`], which shares nothing with
//! the solvers. Recorded runs come in through [`run_usage`] and [`step_usage`].
//!
//! The crate also runs inside other people's processes: it starts threads only while it solves, only as many as it
//! is given, and keeps none.

mod bits;
mod blame;
mod budget;
mod effort;
mod exact;
mod explain;
mod greedy;
mod lifetimes;
mod online;
mod options;
mod outcome;
mod overlaps;
mod pools;
mod random;
mod repair;
mod rigid;
mod room;
mod rows;
mod schedule;
mod share;
mod skyline;
mod solve;
mod spill;
mod spots;
mod strip;
mod usage;
mod validate;

pub use explain::{At, ExplainError, explain, live};
pub use lifetimes::StepError;
pub use options::{Options, Techniques};
pub use outcome::{Blame, Fits, Outcome, Solver, Stopped};
pub use schedule::MOST_THREADS;
pub use solve::{Progress, SolveError, lower_bound, solve};
pub use usage::{run_usage, step_usage, unshared};
pub use validate::{Verdict, validate};
