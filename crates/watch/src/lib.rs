//! What the memory of processes does over time, and whether it leaks: [`Processes`] are sampled into a [`Series`], marks
//! close [`Actions`], and a [`Judge`] comes to a [`Verdict`] by the trend of the floor. [`observe`] does the watching,
//! [`Outcome`] says what came of it, as words, numbers and a page.
//!
//! ```
//! use lowtide_watch::{Observed, Processes, Rules, Sample, Since, Verdict};
//!
//! let own = i32::try_from(std::process::id()).unwrap();
//! let mut processes = Processes::of(own, false, Since::Now)?.expect("this process runs");
//! let now = processes.sample().expect("it still does");
//! assert!(now.resident > 0 && now.processes == 1);
//!
//! let mut observed = Observed::default();
//! for n in 0..600 {
//!     observed.series.push(n as f64 / 10.0, Sample { anonymous: now.anonymous + (n << 20), ..now });
//! }
//! let judgement = Rules::default().judge_time(&observed);
//! assert_eq!(judgement.verdict, Verdict::Leaking);
//! # Ok::<(), lowtide_watch::Error>(())
//! ```

#![forbid(unsafe_code)]

mod actions;
mod error;
mod json;
mod judge;
mod marks;
mod observe;
mod outcome;
mod page;
mod processes;
mod rules;
mod sample;
mod series;
mod words;

pub use actions::{Action, Actions, End, Mark, Repetition};
pub use error::Error;
pub use json::Numbers;
pub use judge::{Judge, Judgement, Point, Reason, Trend, Verdict, median};
pub use marks::Marks;
pub use observe::{Event, Observed, Pace, observe};
pub use outcome::{Ending, Outcome, Subject};
pub use processes::{Processes, Since};
pub use rules::Rules;
pub use sample::{Faults, Sample};
pub use series::{Entry, Series};
