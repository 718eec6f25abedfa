//! What a learner may be told, and the names by which users of older systems tell it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

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
        Self {
            enabled: true,
            start: 1,
            stable: 0,
            max: 20,
            relearn: true,
            patterns: 8,
            longest: 1 << 20,
            time_limit: Duration::from_secs(2),
            threads: NonZeroUsize::MIN,
            background: true,
            cache: None,
        }
    }
}

/// A setting that cannot have the value it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` cannot be `{value}`: it is {range}")]
pub struct SettingError {
    /// The name of the setting.
    pub setting: &'static str,
    /// The value as it was given.
    pub value: String,
    /// The values it can have, as the end of a sentence.
    pub range: &'static str,
}

const SWITCH: &str = "ENABLE_MEMORY_OPTIMIZATION";
const START: &str = "START_STATISTIC_STEP";
const STABLE: &str = "STABLE_STATISTIC_STEP";
const MAX: &str = "MAX_STATISTIC_STEP";

impl LearnerOptions {
    /// Collects from step `start` on; serves a plan once `stable` steps in a row were met by it or `max` steps were
    /// collected, and then collects no more.
    #[must_use]
    pub fn from_statistic(start: u64, stable: u64, max: u64) -> Self {
        Self { start, stable, max, relearn: false, ..Self::default() }
    }

    /// The options that `ENABLE_MEMORY_OPTIMIZATION`, `START_STATISTIC_STEP`, `STABLE_STATISTIC_STEP` and
    /// `MAX_STATISTIC_STEP` ask for, where `lookup` knows any of them; the others are then on, 100, 10 and 100. Where it
    /// knows none, Lowtide's own.
    pub fn from_settings(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let [switch, start, stable, max] = [SWITCH, START, STABLE, MAX].map(lookup);
        if [&switch, &start, &stable, &max].iter().all(|value| value.is_none()) {
            return Ok(Self::default());
        }
        let options = Self::from_statistic(
            count(START, start, 100, 0, "a whole number from 0 to 2^64-1")?,
            count(STABLE, stable, 10, 1, "a whole number from 1 to 2^64-1")?,
            count(MAX, max, 100, 1, "a whole number from 1 to 2^64-1")?,
        );
        Ok(Self { enabled: on(switch)?, ..options })
    }
}

fn on(value: Option<String>) -> Result<bool, SettingError> {
    let Some(value) = value else { return Ok(true) };
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(SettingError { setting: SWITCH, value, range: "`1` or `true`, `0` or `false`" }),
    }
}

fn count(
    setting: &'static str,
    value: Option<String>,
    default: u64,
    least: u64,
    range: &'static str,
) -> Result<u64, SettingError> {
    let Some(value) = value else { return Ok(default) };
    match value.trim().parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(SettingError { setting, value, range }),
    }
}
