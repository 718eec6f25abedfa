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
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use lowtide_core::{Buffer, Bytes, Lifetime, Problem};
//! use lowtide_plan::{Options, Verdict, solve, validate};
//!
//! let buffer = |id, lower, upper, size| Buffer::new(id, Lifetime { lower, upper }, Bytes::new(size));
//! let problem = Problem::new(vec![buffer("a", 0, 3, 64), buffer("b", 2, 5, 32), buffer("c", 4, 7, 64)]);
//! let stop = AtomicBool::new(false);
//! let outcome = solve(&problem, &Options::new(&stop), &|_| {})?;
//! let plan = outcome.plan.ok_or("there is always a plan without a capacity")?;
//! assert_eq!(validate(&problem, &plan), Verdict::Valid);
//! assert!(plan.proved && plan.peak() == Bytes::new(96), "`c` lies where `a` was");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod explain;
mod judge;
mod options;
mod outcome;
mod prepare;
mod recorded;
mod search;
mod solve;
mod solvers;

pub use explain::{At, ExplainError, explain, live};
pub use judge::validate::{Verdict, validate};
pub use options::{Options, Techniques};
pub use outcome::{Blame, Fits, Outcome, Solver, Stopped};
pub use recorded::lifetimes::StepError;
pub use recorded::usage::{run_usage, step_usage, unshared};
pub use search::schedule::MOST_THREADS;
pub use solve::{Progress, SolveError, lower_bound, solve};
