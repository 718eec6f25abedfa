//! What the planner's tests share: solves that repeat, problems to solve, and an oracle to hold them against.

pub mod cuts;
pub mod oracle;
pub mod problems;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lowtide_core::{Align, Buffer, BufferIndex, Bytes, Lifetime, Plan, Pool, PoolIndex, Problem};
use lowtide_plan::{Options, Outcome, Stopped, Verdict, solve, validate};
use proptest::test_runner::{Config, RngSeed};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Long enough that no test ends by it unless work is not counted.
const SAFETY: Duration = Duration::from_mins(1);

/// `units` of work on one thread with everything switched on.
pub fn work(units: u64) -> Options<'static> {
    Options { work: Some(units), time_limit: Some(SAFETY), ..Options::new(&NEVER) }
}

/// The same, or less where work is not counted: for tests whose subject is something else.
pub fn briefly(units: u64) -> Options<'static> {
    Options { time_limit: Some(Duration::from_millis(30)), ..work(units) }
}

/// Solves, and insists that the outcome is consistent in itself and that work, not time, ended it.
pub fn solved(problem: &Problem, options: &Options) -> Outcome {
    let outcome = solve(problem, options, &|_| {}).unwrap_or_else(|error| panic!("{error} for {problem:#?}"));
    if options.time_limit == Some(SAFETY) {
        assert_ne!(outcome.stopped, Stopped::Time, "work was not counted for {problem:#?}");
    }
    check_outcome(problem, &outcome);
    outcome
}

/// What must hold of any outcome.
pub fn check_outcome(problem: &Problem, outcome: &Outcome) {
    let Some(plan) = &outcome.plan else { return };
    let verdict = validate(problem, plan);
    let over = matches!(verdict, Verdict::OverCapacity(_));
    assert!(verdict == Verdict::Valid || over, "{} for {problem:#?}", verdict.describe(problem));
    assert_eq!(over, outcome.fits != lowtide_plan::Fits::Yes, "{outcome:?} for {problem:#?}");
    assert!(plan.lower_bound <= plan.peak(), "{outcome:?} for {problem:#?}");
    let moved = |&buffer: &BufferIndex| plan.placement(buffer).pool != problem.buffer(buffer).pool;
    assert_eq!(outcome.spilled, problem.indices().filter(moved).collect::<Vec<_>>());
}

/// The plan of an outcome that must have one.
pub fn plan_of(outcome: &Outcome) -> &Plan {
    outcome.plan.as_ref().expect("there is a plan")
}

/// The peak in bytes.
pub fn peak(outcome: &Outcome) -> u64 {
    plan_of(outcome).peak().get()
}

/// The offset of a buffer in bytes.
pub fn offset(outcome: &Outcome, buffer: usize) -> u64 {
    plan_of(outcome).placements[buffer].offset.get()
}

/// The index `position`.
pub fn at(position: usize) -> BufferIndex {
    BufferIndex::new(position)
}

/// A plain buffer that lives in `[lower, upper)`.
pub fn buffer(id: &str, lower: i64, upper: i64, size: u64) -> Buffer {
    Buffer::new(id, Lifetime { lower, upper }, Bytes::new(size))
}

/// `cases` of a property, the same ones each time; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for others.
pub fn property(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, max_global_rejects: 100_000, ..Config::default() };
    (config.max_shrink_iters, config.max_shrink_time) = (2_000, 15_000);
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(0x10_71DE);
    }
    config
}

/// Enough for the small examples.
pub const WORK: u64 = 300_000;

pub fn solve_it(problem: &Problem) -> Outcome {
    solved(problem, &work(WORK))
}

/// The peak is as given and known to be the least.
pub fn assert_proved(problem: &Problem, height: u64) -> Outcome {
    let outcome = solve_it(problem);
    assert_eq!((peak(&outcome), plan_of(&outcome).proved), (height, true), "{outcome:?}");
    assert_eq!(outcome.stopped, Stopped::Proved);
    outcome
}

pub fn align(multiple: u64) -> Align {
    Align::new(multiple).expect("not zero")
}

/// A pool with a capacity, and where what does not fit goes.
pub fn pool(name: &str, capacity: u64, spill: Option<usize>) -> Pool {
    Pool { capacity: Some(Bytes::new(capacity)), spill: spill.map(PoolIndex::new), ..Pool::unlimited(name) }
}
