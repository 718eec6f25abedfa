//! An explanation, put into words: for a terminal, for scripts, and as findings for the page.

mod findings;
mod json;
mod terminal;
pub(crate) mod words;

pub use findings::{Finding, Findings};
pub use json::ExplanationNumbers;
pub use terminal::{explained, moment_parts};
