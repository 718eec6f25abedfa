//! How hard to look, and the solve itself: watched on the terminal, and stopped by Ctrl-C with the best so far.

use std::num::NonZeroUsize;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use lowtide_core::{Explanation, Problem, Usage};
use lowtide_plan::{At, ExplainError, MOST_THREADS, Options, Outcome, SolveError, Techniques};

use crate::arguments::numbers;
use crate::console::progress;

/// How hard to look; the same for every verb that solves.
#[derive(Clone, Debug, Default, Args)]
pub struct Effort {
    /// Stop after this long with the best plan so far [default: 5, or none with --work]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true)]
    pub time_limit: Option<Duration>,
    /// Stop after this much work: unlike time, it gives the same plan everywhere
    #[arg(long, value_name = "UNITS", value_parser = numbers::whole, allow_negative_numbers = true)]
    pub work: Option<u64>,
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true, help = threads_help())]
    pub threads: Option<NonZeroUsize>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = numbers::whole, allow_negative_numbers = true)]
    pub seed: u64,
    /// Leave a technique out, to see what it is worth; may be given several times
    #[arg(long, value_name = "TECHNIQUE", value_parser = PossibleValuesParser::new(Techniques::NAMES))]
    pub without: Vec<String>,
}

fn threads_help() -> String {
    format!("Threads to use; more than {MOST_THREADS} are not used [default: as many as there are processors]")
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    numbers::refuse_negative(text)?;
    let seconds: f64 = text.parse().map_err(|_| "write seconds, such as 5 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a time is not negative and not endless".to_owned())
}

const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// Seconds that people wait for an answer that a short look did not give.
const WORTH_A_TRY: f64 = 60.0;

impl Effort {
    /// Threads that are used: what was asked for or what there is, as far as the planner has use for them.
    pub fn threads(&self) -> NonZeroUsize {
        let wanted = self.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
        NonZeroUsize::new(MOST_THREADS).map_or(wanted, |most| wanted.min(most))
    }

    /// Seconds for another try that is worth it where this much time was not enough.
    pub fn longer(&self) -> f64 {
        let used = self.time_limit().unwrap_or_default().as_secs_f64();
        if used < WORTH_A_TRY { WORTH_A_TRY } else { used * 10.0 }
    }

    /// As it can be typed again, behind a command: what differs from what is usual.
    pub fn typed(&self) -> String {
        let Self { time_limit, work, threads, seed, without } = self;
        let options = [
            time_limit.map(|limit| format!(" --time-limit {}", limit.as_secs_f64())),
            work.map(|work| format!(" --work {work}")),
            threads.map(|threads| format!(" --threads {threads}")),
            (*seed != 0).then(|| format!(" --seed {seed}")),
        ];
        let without = without.iter().map(|name| format!(" --without {name}"));
        options.into_iter().flatten().chain(without).collect()
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

    /// The plan that takes no search at all.
    pub fn first_plan(problem: &Problem) -> Result<Outcome, SolveError> {
        let cancel = AtomicBool::new(false);
        let without = Techniques::NAMES.map(str::to_owned).to_vec();
        let none = Self { work: Some(0), threads: Some(NonZeroUsize::MIN), without, ..Self::default() };
        lowtide_plan::solve(problem, &none.options(&cancel), &|_| {})
    }

    /// Explains `usage` at `at`, with as much effort for each plan that a remedy depends on.
    pub fn explain(&self, usage: &Usage, at: At) -> Result<Explanation, ExplainError> {
        lowtide_plan::explain(usage, at, &self.options(interruption()))
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

/// Whether Ctrl-C was pressed since somebody listens.
pub(crate) fn was_interrupted() -> bool {
    interruption().load(Ordering::Relaxed)
}

/// The flag that Ctrl-C raises, from the first call on. A second Ctrl-C ends the process.
///
/// A handler, unlike the signals that [`program`](crate::program) keeps back for a program that runs: threads that are there
/// already and children such as rivals are left as they are.
fn interruption() -> &'static AtomicBool {
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
    fn an_effort_can_be_typed_again() {
        assert_eq!(Effort::default().typed(), "");
        let effort = Effort {
            time_limit: Some(Duration::from_millis(1500)),
            work: Some(7),
            threads: NonZeroUsize::new(9),
            seed: 3,
            without: vec!["exact".to_owned(), "repair".to_owned()],
        };
        assert_eq!(effort.typed(), " --time-limit 1.5 --work 7 --threads 9 --seed 3 --without exact --without repair");
        assert_eq!(effort.threads().get(), MOST_THREADS, "more are not used");
    }

    #[test]
    fn another_try_takes_longer_than_the_one_before() {
        let longer = |seconds| Effort { time_limit: Some(Duration::from_secs(seconds)), ..Effort::default() }.longer();
        assert_eq!([0, 5, 59, 60, 90].map(longer).map(|seconds| seconds.to_string()), ["60", "60", "60", "600", "900"]);
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
