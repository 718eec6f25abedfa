//! The line on a terminal while a solve runs: how long, how low, how far from the bound. Hidden elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lowtide_plan::Progress;

use crate::show;

/// A line that is cleared when it goes out of scope.
pub(crate) struct Line(ProgressBar);

impl Line {
    /// A line about `what`, which takes at most `limit`.
    pub fn new(what: &str, limit: Option<Duration>) -> Self {
        let bar = ProgressBar::new_spinner();
        let of = limit.map(|limit| format!("/{}s", limit.as_secs_f64())).unwrap_or_default();
        let template = format!("{{spinner}} {{prefix}} {{elapsed}}{of} · {{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        bar.set_message("first plan");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Shows how far it has come.
    pub fn show(&self, Progress { height, lower_bound }: Progress) {
        if !self.0.is_hidden() {
            let ratio = show::ratio(height, lower_bound);
            self.0.set_message(format!("best {height} · bound {lower_bound} · {ratio}× · Ctrl-C takes it"));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
