//! How hard to look, and the solve itself: watched on the terminal, and stopped by Ctrl-C with the best so far.

use std::num::NonZeroUsize;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use lowtide_core::Problem;
use lowtide_plan::{Options, Outcome, SolveError, Techniques};

use crate::progress;

/// How hard to look; the same for every verb that solves.
#[derive(Clone, Debug, Default, Args)]
pub struct Effort {
    /// Stop after this long with the best plan so far [default: 5, or none with --work]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
    /// Stop after this much work: unlike time, it gives the same plan everywhere
    #[arg(long, value_name = "UNITS")]
    pub work: Option<u64>,
    /// Threads to use [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Where chance starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Leave a technique out, to see what it is worth; may be given several times
    #[arg(long, value_name = "TECHNIQUE", value_parser = PossibleValuesParser::new(Techniques::NAMES))]
    pub without: Vec<String>,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write seconds, such as 5 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a time is not negative and not endless".to_owned())
}

const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(5);

impl Effort {
    /// Threads to use.
    pub fn threads(&self) -> NonZeroUsize {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    /// Wall time to use; work alone sets no limit of time.
    pub fn time_limit(&self) -> Option<Duration> {
        self.time_limit.or_else(|| self.work.is_none().then_some(DEFAULT_TIME_LIMIT))
    }

    fn options<'a>(&self, cancel: &'a AtomicBool) -> Options<'a> {
        let mut options = Options::new(cancel);
        options.time_limit = self.time_limit();
        options.work = self.work;
        options.threads = self.threads();
        options.seed = self.seed;
        for name in &self.without {
            if let Some(switch) = options.techniques.switch(name) {
                *switch = false;
            }
        }
        options
    }

    /// Solves `problem`, with a line about `what` on the terminal meanwhile.
    pub fn solve(&self, problem: &Problem, what: &str) -> Result<Solved, SolveError> {
        let cancel = interruption();
        let line = progress::Line::new(what, self.time_limit());
        let start = Instant::now();
        let outcome = lowtide_plan::solve(problem, &self.options(cancel), &|progress| line.show(progress))?;
        Ok(Solved { outcome, seconds: start.elapsed().as_secs_f64() })
    }
}

/// What a solve came to, and how long it took.
pub(crate) struct Solved {
    pub outcome: Outcome,
    pub seconds: f64,
}

/// What a shell reports for a process that Ctrl-C ended.
const ENDED_BY_INTERRUPT: i32 = 130;

/// The flag that Ctrl-C raises, from the first call on. A second Ctrl-C ends the process.
pub(crate) fn interruption() -> &'static AtomicBool {
    static RAISED: AtomicBool = AtomicBool::new(false);
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        // Where no handler can be set, Ctrl-C ends the process as it always did.
        let _ = ctrlc::set_handler(|| {
            if RAISED.swap(true, Ordering::Relaxed) {
                std::process::exit(ENDED_BY_INTERRUPT);
            }
        });
    });
    &RAISED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_alone_sets_no_limit_of_time() {
        let effort = Effort::default();
        assert_eq!(effort.time_limit(), Some(DEFAULT_TIME_LIMIT));
        let work = Effort { work: Some(7), ..effort.clone() };
        assert_eq!(work.time_limit(), None);
        let both = Effort { time_limit: Some(Duration::from_secs(1)), ..work };
        assert_eq!(both.time_limit(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn times_are_seconds_from_zero_on() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_seconds("0"), Ok(Duration::ZERO));
        for text in ["-1", "nan", "inf", "1e300", "soon"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_technique_can_be_left_out() {
        let without = Techniques::NAMES.map(str::to_owned).to_vec();
        let cancel = AtomicBool::new(false);
        let mut options = Effort { without, ..Effort::default() }.options(&cancel);
        for name in Techniques::NAMES {
            assert!(!*options.techniques.switch(name).unwrap(), "{name}");
        }
    }
}
