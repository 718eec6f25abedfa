//! A program without Lowtide and with it, side by side, as the system counts what each used.

use lowtide_core::Bytes;
use serde::Serialize;

use crate::child::Ended;
use crate::{columns, show};

/// What a run used, with all processes that it waited for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Used {
    pub exit_code: u8,
    pub seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub minor_faults: u64,
    /// Of the largest process.
    pub peak_rss_bytes: u64,
}

impl From<&Ended> for Used {
    fn from(ended: &Ended) -> Self {
        Self {
            exit_code: ended.code(),
            seconds: ended.wall.as_secs_f64(),
            user_seconds: ended.usage.user.as_secs_f64(),
            system_seconds: ended.usage.system.as_secs_f64(),
            minor_faults: ended.usage.minor_faults,
            peak_rss_bytes: ended.usage.peak.get(),
        }
    }
}

/// Both runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Comparison {
    pub without: Used,
    pub with: Used,
}

impl Comparison {
    /// Both in a table.
    pub fn lines(&self) -> Vec<String> {
        let row = |name: &str, show: &dyn Fn(&Used) -> String, number: &dyn Fn(&Used) -> f64| {
            let ratio = number(&self.with) / number(&self.without);
            let ratio = if ratio.is_finite() { format!("{ratio:.2}×") } else { "-".to_owned() };
            vec![name.to_owned(), show(&self.without), show(&self.with), ratio]
        };
        let time = |of: fn(&Used) -> f64| move |used: &Used| format!("{:.2} s", of(used));
        let rows = [
            ["", "without", "with", "ratio"].map(str::to_owned).to_vec(),
            row("wall", &time(|used| used.seconds), &|used| used.seconds),
            row("CPU, user", &time(|used| used.user_seconds), &|used| used.user_seconds),
            row("CPU, system", &time(|used| used.system_seconds), &|used| used.system_seconds),
            row("minor faults", &|used| show::thousands(used.minor_faults as usize), &|used| used.minor_faults as f64),
            row("peak RSS", &|used| Bytes::new(used.peak_rss_bytes).to_string(), &|used| used.peak_rss_bytes as f64),
        ];
        columns::aligned(&rows).into_iter().map(|line| format!("  {line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_stand_side_by_side() {
        let without = Used {
            exit_code: 0,
            seconds: 2.0,
            user_seconds: 1.5,
            system_seconds: 0.0,
            minor_faults: 1000,
            peak_rss_bytes: 2 << 20,
        };
        let with = Used { seconds: 1.0, minor_faults: 10, peak_rss_bytes: 1 << 20, ..without };
        let lines = Comparison { without, with }.lines();
        assert_eq!(lines[0], "                without     with  ratio");
        assert_eq!(lines[1], "  wall           2.00 s   1.00 s  0.50×");
        assert_eq!(lines[3], "  CPU, system    0.00 s   0.00 s      -");
        assert_eq!(lines[4], "  minor faults    1,000       10  0.01×");
    }
}
