//! What Lowtide found, for people: the nouns in, text for a terminal, JSON for a script, or one HTML page out.
//!
//! Nothing here measures, plans or reads anything. A [`Usage`](lowtide_core::Usage) is what is shown; an
//! [`Explanation`](lowtide_core::Explanation) is put into words. [`page`] makes the page: the level of detail of its
//! memory map is decided here ([`Detail`]), and the browser only follows it.

mod alive;
mod curve;
mod detail;
mod difference;
mod explained;
mod explained_json;
mod findings;
mod groups;
mod hilbert;
mod ink;
mod numbers;
mod page;
mod scene;
mod site;
mod terminal;
mod watched;
mod words;

pub use alive::{Holding, alive_at, peak};
pub use curve::Curve;
pub use detail::{Detail, Merged};
pub use difference::{Difference, differences};
pub use explained::{explained, moment_parts};
pub use explained_json::ExplanationNumbers;
pub use findings::{Finding, Findings};
pub use groups::{Group, Grouping, group};
pub use ink::Ink;
pub use numbers::{counted, thousands};
pub use page::{Page, page};
pub use scene::{Shown, carried};
use site::line;
pub use terminal::terminal;
pub use watched::{Watched, WatchedAction, WatchedSeries, WatchedTrend, watched};
