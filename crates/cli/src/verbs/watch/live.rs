//! The line on a terminal while something is watched. Hidden elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lowtide_core::Bytes;
use lowtide_watch::{Observed, Sample};

use crate::console::show;

/// How often the line changes.
const PERIOD: Duration = Duration::from_millis(500);

/// A line that is cleared when it goes out of scope.
pub(super) struct Live {
    bar: ProgressBar,
    shown: Option<(Instant, Sample)>,
}

impl Live {
    /// A line on stderr, where that is a terminal and it is wanted.
    pub fn new(is_wanted: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        if !is_wanted {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, shown: None }
    }

    /// Shows the last sample, at most twice a second.
    pub fn show(&mut self, elapsed: Duration, sample: &Sample, observed: &Observed) {
        let now = Instant::now();
        if self.bar.is_hidden() || self.shown.is_some_and(|(at, _)| now - at < PERIOD) {
            return;
        }
        let rate = self.shown.map(|(at, before)| {
            let faults = sample.faults.minor + sample.faults.major;
            faults.saturating_sub(before.faults.minor + before.faults.major) as f64 / (now - at).as_secs_f64()
        });
        self.bar.set_message(line(elapsed, sample, observed, rate));
        self.bar.tick();
        self.shown = Some((now, *sample));
    }
}

fn line(elapsed: Duration, sample: &Sample, observed: &Observed, rate: Option<f64>) -> String {
    let mut parts = vec![
        format!("{} s", elapsed.as_secs()),
        format!("RSS {}", Bytes::new(sample.resident)),
        format!("anonymous {}", Bytes::new(sample.anonymous)),
        format!("file {}", Bytes::new(sample.file)),
        format!("peak {}", Bytes::new(observed.peak)),
    ];
    if sample.huge > 0 {
        parts.push(format!("huge {}", Bytes::new(sample.huge)));
    }
    if let Some(rate) = rate {
        parts.push(format!("{} faults/s", show::thousands(rate as usize)));
    }
    if sample.processes > 1 {
        parts.push(format!("{} processes", sample.processes));
    }
    if observed.actions.count > 0 {
        parts.push(show::counted(observed.actions.count as usize, "mark"));
    }
    parts.join(" · ")
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_there_now() {
        let sample = Sample { resident: 3 << 20, anonymous: 2 << 20, file: 1 << 20, processes: 2, ..Sample::default() };
        let observed = Observed { peak: 4 << 20, ..Observed::default() };
        assert_eq!(
            line(Duration::from_secs(61), &sample, &observed, Some(1234.0)),
            "61 s · RSS 3.0 MiB · anonymous 2.0 MiB · file 1.0 MiB · peak 4.0 MiB · 1,234 faults/s · 2 processes"
        );
    }
}
