//! What Lowtide found, for people: the nouns in, text for a terminal, JSON for a script, or one HTML page out.
//!
//! Nothing here measures, plans or reads anything. A [`Usage`](lowtide_core::Usage) is what is shown; an
//! [`Explanation`](lowtide_core::Explanation) is put into words. [`page`] makes the page: the level of detail of its
//! memory map is decided here ([`Detail`]), and the browser only follows it.
//!
//! ```
//! use lowtide_core::{Buffer, Bytes, Lifetime, Problem, Usage};
//! use lowtide_report::{Curve, Grouping, Ink, Sheet, alive_at, terminal};
//!
//! let buffer = |id, lower, upper, size| Buffer::new(id, Lifetime { lower, upper }, Bytes::new(size));
//! let usage = Usage::of(Problem::new(vec![buffer("a", 0, 3, 64), buffer("b", 2, 5, 32)]));
//! assert_eq!(alive_at(&usage, 2).len(), 2);
//! let live = Curve { points: [(0, 64), (2, 96), (3, 32), (5, 0)].map(|(time, bytes)| (time, Bytes::new(bytes))).into() };
//! let lines = terminal(&usage, &live, Grouping::Size, Sheet::new(Ink::Ascii, Some(60)));
//! assert!(lines.iter().any(|line| line.contains("peak at event 2")));
//! ```

#![forbid(unsafe_code)]

mod alive;
mod curve;
mod difference;
mod explained;
mod groups;
mod ink;
mod names;
mod numbers;
mod page;
mod site;
mod terminal;

pub use alive::{alive_at, peak};
pub use curve::Curve;
pub use difference::{Difference, differences};
pub use explained::{ExplanationNumbers, Finding, Findings, explained, moment_parts};
pub use groups::{Group, Grouping, group};
pub use ink::{Ink, Sheet};
pub use names::{escaped_controls, name_within};
pub use numbers::{counted, seconds, thousands};
pub use page::{
    Detail, Merged, Page, Shown, Watched, WatchedAction, WatchedSeries, WatchedTrend, carried, page, watched,
};
use site::line;
pub use terminal::terminal;
