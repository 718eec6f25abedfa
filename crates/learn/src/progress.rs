//! How far learning has come, and when plans may be served.

use crate::options::LearnerOptions;

/// How far learning has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Steps that were watched.
    pub collected: u64,
    /// Steps in a row that brought nothing new.
    pub stable: u64,
    /// Whether plans may be served.
    pub is_ready: bool,
    /// Steps in a row in which the plan missed.
    pub poor: u32,
    /// Whether only patterns that have recurred are served, because others missed.
    pub is_wary: bool,
    /// Steps to watch because something unknown came.
    pub alert: u64,
}

impl Progress {
    /// Counts a step that was watched.
    pub fn collect(&mut self, is_new: bool, options: &LearnerOptions) {
        self.collected += 1;
        self.stable = if is_new { 0 } else { self.stable + 1 };
        self.is_ready |= self.stable >= options.stable || self.collected >= options.max;
    }
}
