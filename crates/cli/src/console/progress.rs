//! The line on a terminal while something takes long: how much of a file was read; how long a solve runs, how low it
//! is, how far from the bound. Hidden elsewhere.

use std::io::Read;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lowtide_plan::Progress;

use crate::console::show;

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

/// A line about something of which nobody knows how long it takes; cleared when it goes out of scope.
pub(crate) struct Doing(ProgressBar);

impl Doing {
    /// A line that says `what` is being done.
    pub fn new(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line about something of which it is known how much there is; cleared when it goes out of scope.
pub(crate) struct Counting(ProgressBar);

impl Counting {
    /// A line about `what`.
    pub fn new(what: &str) -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {wide_bar} {percent}% · {msg}Ctrl-C stops")
        {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        Self(bar)
    }

    /// Shows how far it has come.
    pub fn show(&self, done: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// Shows a few words beside it.
    pub fn say(&self, words: &str) {
        if !self.0.is_hidden() {
            self.0.set_message(format!("{words} · "));
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Bytes of a file that are read before anybody could wonder.
const QUICK: u64 = 16 << 20;

/// A line about a file that is being read; there is none about a small one.
pub(crate) struct Reading(ProgressBar);

impl Reading {
    /// A line about `name`, which is `length` bytes long.
    pub fn new(name: &str, length: u64) -> Self {
        if length < QUICK {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(length);
        let template = "{spinner} reading {prefix} {wide_bar} {bytes}/{total_bytes} · {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Self(bar)
    }

    /// `reader`, which moves the line as it is read; the line is cleared with it.
    pub fn watch<R: Read>(self, reader: R) -> impl Read {
        Watched { bar: self.0, reader }
    }
}

struct Watched<R> {
    bar: ProgressBar,
    reader: R,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
