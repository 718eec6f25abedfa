//! How a learner works, as far as that can be chosen.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use lowtide_core::options::{LEARN, LEARN_MAX, LEARN_STABLE, LEARN_START, Options, RELEARN};

/// How a [`Learner`](crate::Learner) works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LearnerOptions {
    /// Whether it learns at all.
    pub enabled: bool,
    /// The first step that is watched, counted from one.
    pub start: u64,
    /// How many steps in a row must bring nothing new before a plan is served; with zero, the first plan is.
    pub stable: u64,
    /// After how many watched steps a plan is served even so.
    pub max: u64,
    /// Whether it goes on learning once a plan is served.
    pub relearn: bool,
    /// The most patterns that are kept; of more, the one that came last longest ago is forgotten.
    pub patterns: usize,
    /// The longest step that is recorded, in allocations; of a longer one nothing is learned.
    pub longest: usize,
    /// How long one solve may take.
    pub time_limit: Duration,
    /// How many threads one solve may use.
    pub threads: NonZeroUsize,
    /// Whether it plans on a thread of its own, so that a plan comes some steps later; otherwise inside
    /// [`step`](crate::Learner::step), which makes what it advises the same every time that a solve ends by proof.
    pub background: bool,
    /// The folder in which plans are remembered from run to run.
    pub cache: Option<PathBuf>,
}

impl Default for LearnerOptions {
    /// Starts at once, serves the first plan there is, and goes on learning.
    fn default() -> Self {
        let options = Options::default();
        Self {
            enabled: options.get(LEARN),
            start: options.get(LEARN_START),
            stable: options.get(LEARN_STABLE),
            max: options.get(LEARN_MAX),
            relearn: options.get(RELEARN),
            patterns: 8,
            longest: 1 << 20,
            time_limit: Duration::from_secs(2),
            threads: NonZeroUsize::MIN,
            background: true,
            cache: None,
        }
    }
}

impl LearnerOptions {
    /// These, with what the options of the run say about learning.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            enabled: options.get(LEARN),
            start: options.get(LEARN_START),
            stable: options.get(LEARN_STABLE),
            max: options.get(LEARN_MAX),
            relearn: options.get(RELEARN),
            ..self
        }
    }
}
