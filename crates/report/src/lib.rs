//! What Lowtide found, for people: the nouns in, text for a terminal, JSON for a script, or one HTML page out.
//!
//! Nothing here measures, plans or reads anything. A [`Usage`](lowtide_core::Usage) is what is shown; an
//! [`Explanation`](lowtide_core::Explanation) is put into words. [`page`] makes the page: the level of detail of its
//! memory map is decided here ([`Detail`]), and the browser only follows it.
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

pub use alive::{Holding, alive_at, peak};
pub use curve::Curve;
pub use difference::{Difference, differences};
pub use explained::{ExplanationNumbers, Finding, Findings, explained, moment_parts};
pub use groups::{Group, Grouping, group};
pub use ink::Ink;
pub use names::{escaped_controls, name_within};
pub use numbers::{counted, seconds, thousands};
pub use page::{
    Detail, Merged, Page, Shown, Watched, WatchedAction, WatchedSeries, WatchedTrend, carried, page, watched,
};
use site::line;
pub use terminal::terminal;
