//! What was found out about a run, in sentences: for the page, and for whoever wants no table.

use lowtide_core::{Bytes, Explanation, Usage};

use super::words;

/// An explanation in sentences.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// What was freed too late, those first that cost most.
    pub late: Vec<String>,
    /// What would lower the peak, the best first.
    pub remedies: Vec<Finding>,
}

/// A change in a sentence, and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What is saved.
    pub saves: Bytes,
    /// What is left, and of what.
    pub leaves: String,
    /// The sentence.
    pub text: String,
}

impl Findings {
    /// The sentences of `explanation`.
    pub fn new(usage: &Usage, explanation: &Explanation) -> Self {
        let remedy = |remedy: &lowtide_core::Remedy| Finding {
            saves: remedy.saves,
            leaves: format!("{}{}", remedy.peak, words::measure(&remedy.change)),
            text: words::remedy(usage, explanation.moment.time, remedy),
        };
        Self {
            late: explanation.late.iter().map(|late| words::late(usage, late)).collect(),
            remedies: explanation.remedies.iter().map(remedy).collect(),
        }
    }
}
