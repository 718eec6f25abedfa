//! Techniques against each other, and what limits and chance may change: how good a plan is, never whether it holds.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::cuts::{Style, cut, problem};
use crate::common::problems::{Features, Gaps, MIXED, PLAIN, by_seed, mixed, with_spill};
use crate::common::{briefly, check_outcome, peak, plan_of, solved, work};
use lowtide_core::random::Random;
use lowtide_core::{Buffer, Bytes, Lifetime, Problem};
use lowtide_plan::{Options, Outcome, Solver, Stopped, Techniques, solve};

const PINNED_AND_GAPPED: Features =
    Features { aligns: true, gaps: Gaps::Flat, pins: true, size: 1_000, nothings: false, ..PLAIN };

const NO_TIES: Features = Features { aliases: false, contiguous: false, may_share: false, classes: false, ..MIXED };

/// Small problems of every sort, with names.
fn samples(seed: u64) -> Vec<(String, Problem)> {
    let plain = Features { aligns: true, size: 1_000, ..PLAIN };
    let cuts = cut(30, 500, 20, Style::Holes, &mut Random::new(seed));
    [
        ("plain", by_seed(seed, 25, 30, plain)),
        ("pinned and gapped", by_seed(seed, 20, 30, PINNED_AND_GAPPED)),
        ("mixed", mixed(seed, 25)),
        ("spilling", with_spill(mixed(seed, 25), 250)),
        ("a cut rectangle", problem(&cuts)),
    ]
    .map(|(name, problem)| (format!("{name}, seed {seed}"), problem))
    .into()
}

/// All 32 settings of the switches.
fn subsets() -> impl Iterator<Item = Techniques> {
    (0..1_u32 << Techniques::NAMES.len()).map(|bits| {
        let mut techniques = Techniques::ALL;
        for (bit, name) in Techniques::NAMES.iter().enumerate() {
            *techniques.switch(name).expect("it is a name") = bits >> bit & 1 == 1;
        }
        techniques
    })
}

const NOTHING: Techniques =
    Techniques { greedy: false, repair: false, exact: false, decompose: false, memory: false, experience: false };

fn with(techniques: Techniques, units: u64) -> Options<'static> {
    Options { techniques, ..work(units) }
}

#[test]
fn any_techniques_switched_off_leave_a_valid_plan() {
    for seed in 0..6 {
        for (name, problem) in samples(seed) {
            for techniques in subsets() {
                let outcome = solved(&problem, &Options { techniques, ..briefly(20_000) });
                assert!(outcome.plan.is_some(), "{name}, {techniques:?}");
            }
        }
    }
}

#[test]
fn a_switch_has_a_name_and_no_other() {
    let mut techniques = NOTHING;
    for name in Techniques::NAMES {
        *techniques.switch(name).expect("it is a name") = true;
    }
    assert_eq!(techniques, Techniques::ALL);
    assert_eq!(techniques.switch("luck"), None);
}

#[test]
fn with_everything_switched_off_the_search_is_exhausted_at_once() {
    let problem = problem(&cut(30, 500, 40, Style::Pinwheel, &mut Random::new(3)));
    let outcome = solved(&problem, &with(NOTHING, 1_000_000));
    assert_eq!((outcome.stopped, outcome.solver, outcome.work), (Stopped::Exhausted, Solver::Online, 0));
}

#[test]
fn what_complete_search_proves_no_other_technique_goes_below() {
    let exact = Techniques { exact: true, ..NOTHING };
    let others = [
        Techniques { greedy: true, ..NOTHING },
        Techniques { repair: true, ..NOTHING },
        Techniques { greedy: true, repair: true, decompose: true, ..NOTHING },
        Techniques::ALL,
    ];
    let mut proved = 0;
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let features = Features { pins: random.one_in(2), gaps: Gaps::Flat, ..PINNED_AND_GAPPED };
        let problem = by_seed(seed, 12, 20, features);
        let outcome = solved(&problem, &with(exact, 2_000_000));
        let plan = plan_of(&outcome);
        proved += u32::from(plan.proved);
        for other in others {
            let rival = solved(&problem, &Options { techniques: other, ..briefly(200_000) });
            assert!(plan.lower_bound.get() <= peak(&rival), "seed {seed}, {other:?}: {outcome:?} {rival:?}");
            assert!(plan_of(&rival).lower_bound <= plan.peak(), "seed {seed}, {other:?}: {outcome:?} {rival:?}");
        }
    }
    assert!(proved >= 30, "only {proved} of 40 were proved");
}

#[test]
fn decomposition_and_memory_do_not_change_a_proved_optimum() {
    let mut compared = 0;
    for seed in 0..60 {
        let problem = by_seed(seed, 12, 24, PINNED_AND_GAPPED);
        let mut optima = Vec::new();
        for (decompose, memory) in [(true, true), (false, true), (true, false), (false, false)] {
            let outcome = solved(&problem, &with(Techniques { decompose, memory, ..Techniques::ALL }, 2_000_000));
            if plan_of(&outcome).proved {
                optima.push(peak(&outcome));
            }
        }
        compared += u32::from(optima.len() == 4);
        optima.dedup();
        assert!(optima.len() <= 1, "seed {seed}: {optima:?}");
    }
    assert!(compared >= 50, "only {compared} of 60 were proved all four ways");
}

fn on_threads(problem: &Problem, threads: usize, seed: u64, units: u64) -> Outcome {
    let threads = NonZeroUsize::new(threads).expect("not zero");
    solved(problem, &Options { threads, seed, ..work(units) })
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for seed in 0..4 {
        for (name, problem) in samples(seed) {
            for units in [3_000, 150_000] {
                let alone = on_threads(&problem, 1, seed, units);
                for threads in [2, 4] {
                    assert_eq!(alone, on_threads(&problem, threads, seed, units), "{name}, {threads} threads");
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_outcome_again() {
    for seed in 0..4 {
        for (name, problem) in samples(seed) {
            let first = on_threads(&problem, 2, 99, 60_000);
            assert_eq!(first, on_threads(&problem, 2, 99, 60_000), "{name}");
        }
    }
}

#[test]
fn other_seeds_reach_the_same_proved_optimum() {
    let mut compared = 0;
    for seed in 0..20 {
        let problem = by_seed(seed, 12, 20, PINNED_AND_GAPPED);
        let mut optima: Vec<u64> = (0..5)
            .map(|random| on_threads(&problem, 1, random, 1_000_000))
            .filter(|outcome| plan_of(outcome).proved)
            .map(|outcome| peak(&outcome))
            .collect();
        compared += u32::from(optima.len() == 5);
        optima.dedup();
        assert!(optima.len() <= 1, "seed {seed}: {optima:?}");
    }
    assert!(compared >= 18, "only {compared} of 20 were proved from all five seeds");
}

#[test]
fn a_solve_cancelled_before_it_began_still_gives_a_plan() {
    let cancelled = AtomicBool::new(true);
    for seed in 0..4 {
        for (name, problem) in samples(seed) {
            let options = Options { time_limit: None, ..Options::new(&cancelled) };
            let outcome = solve(&problem, &options, &|_| {}).expect(&name);
            check_outcome(&problem, &outcome);
            assert!(outcome.plan.is_some(), "{name}");
            assert!(
                matches!(outcome.stopped, Stopped::Cancelled | Stopped::Fits | Stopped::Proved),
                "{name}: {outcome:?}"
            );
        }
    }
}

#[test]
fn no_time_at_all_still_gives_a_plan() {
    let never = AtomicBool::new(false);
    for seed in 0..4 {
        for (name, problem) in samples(seed) {
            let options = Options { time_limit: Some(Duration::ZERO), ..Options::new(&never) };
            let outcome = solve(&problem, &options, &|_| {}).expect(&name);
            check_outcome(&problem, &outcome);
            assert!(outcome.plan.is_some(), "{name}");
            assert!(matches!(outcome.stopped, Stopped::Time | Stopped::Fits | Stopped::Proved), "{name}: {outcome:?}");
        }
    }
}

/// A problem that takes minutes to prove, over a buffer of so many bytes that is always there.
fn hard_over(bytes: u64) -> Problem {
    let mut problem = by_seed(0, 200, 300, Features { size: 100_000, ..NO_TIES });
    if bytes > 0 {
        let always = Lifetime::new(-1000, 2000).expect("a lifetime");
        problem.buffers.push(Buffer::new("always", always, Bytes::new(bytes)));
    }
    problem
}

#[test]
fn a_search_that_is_near_the_bound_ends_soon_where_that_is_limited_and_no_other() {
    let never = AtomicBool::new(false);
    let took = |bytes: u64, limit: Duration| {
        let options =
            Options { time_limit: Some(limit), time_near_bound: Some(Duration::ZERO), ..Options::new(&never) };
        let (problem, begin) = (hard_over(bytes), Instant::now());
        let outcome = solve(&problem, &options, &|_| {}).unwrap();
        check_outcome(&problem, &outcome);
        assert_eq!(outcome.stopped, Stopped::Time, "{bytes}");
        begin.elapsed()
    };
    let limit = Duration::from_millis(400);
    assert!(took(0, limit) >= limit);
    let limit = Duration::from_secs(20);
    assert!(took(1 << 30, limit) < limit / 2);
}

#[test]
fn no_work_at_all_still_gives_a_plan() {
    for (name, problem) in samples(1) {
        assert!(solved(&problem, &work(0)).plan.is_some(), "{name}");
    }
}

#[test]
fn more_work_never_gives_a_higher_peak() {
    for seed in 0..12 {
        let cuts = cut(40, 1_000, 50, Style::Pinwheel, &mut Random::new(seed));
        let bound = by_seed(seed, 40, 40, Features { size: 1_000, ..NO_TIES });
        for (name, problem) in [("a cut rectangle", problem(&cuts)), ("bound", bound)] {
            let mut before = u64::MAX;
            for units in [0, 10, 100, 1_000, 5_000, 20_000, 80_000, 300_000] {
                let now = peak(&solved(&problem, &work(units)));
                assert!(now <= before, "{name}, seed {seed}: {units} units give {now} after {before}");
                before = now;
            }
        }
    }
}

#[test]
fn the_work_given_is_about_the_work_done() {
    for seed in 0..4 {
        for (name, problem) in samples(seed) {
            let outcome = solved(&problem, &work(10_000));
            // A batch of four may each do what was left; the first greedy passes are not cut short for it, nor is the
            // question whether what spills could have stayed.
            let aside = if name.starts_with("spilling") { 200_000 } else { 0 };
            assert!(outcome.work <= 100_000 + aside, "{name}: {}", outcome.work);
        }
    }
}

#[test]
fn a_search_that_cannot_represent_a_problem_still_ends_when_the_work_is_done() {
    // Neither complete search nor repair can do anything here: a group that is not flat, beside a pin.
    let mut problem =
        Problem::new(vec![common::buffer("a", 5, 7, 4), common::buffer("b", 0, 5, 4), common::buffer("c", 4, 6, 4)]);
    problem.buffers[1].pin = Some(Bytes::new(2));
    problem.contiguous = vec![vec![common::at(2), common::at(0)]];
    let outcome = solved(&problem, &work(10_000));
    assert!(matches!(outcome.stopped, Stopped::Work | Stopped::Exhausted | Stopped::Proved), "{outcome:?}");
}

#[test]
fn repair_that_only_pins_stand_against_ends_when_the_work_is_done() {
    // Both need the bytes on either side of the pin, and neither side has room for both.
    let mut problem =
        Problem::new(vec![common::buffer("a", 0, 4, 4), common::buffer("b", 0, 4, 3), common::buffer("pin", 0, 4, 2)]);
    problem.buffers[2].pin = Some(Bytes::new(3));
    let outcome = solved(&problem, &with(Techniques { repair: true, ..NOTHING }, 10_000));
    assert_ne!(outcome.stopped, Stopped::Time);
    problem.buffers[2].pin = Some(Bytes::new(2));
    solved(&problem, &with(Techniques { repair: true, ..NOTHING }, 10_000));
}

#[test]
fn complete_search_alone_ends_when_the_work_is_done_on_what_it_cannot_represent() {
    let mut problem = Problem::new(vec![
        common::buffer("a", 0, 4, 4),
        common::buffer("b", 3, 8, 4),
        common::buffer("c", 6, 9, 4),
        common::buffer("d", 0, 9, 1),
    ]);
    problem.contiguous = vec![vec![common::at(0), common::at(1), common::at(2)]];
    solved(&problem, &with(Techniques { exact: true, ..NOTHING }, 10_000));
}

#[test]
fn progress_is_heard_and_never_gets_worse() {
    let problem = problem(&cut(40, 1_000, 40, Style::Pinwheel, &mut Random::new(5)));
    let heard = std::cell::RefCell::new(Vec::new());
    let outcome = solve(&problem, &work(300_000), &|progress| heard.borrow_mut().push(progress)).expect("it is solved");
    let heard = heard.into_inner();
    assert!(!heard.is_empty());
    assert!(
        heard.windows(2).all(|pair| pair[1].height <= pair[0].height && pair[1].lower_bound >= pair[0].lower_bound)
    );
    assert_eq!(heard.last().map(|last| last.height), outcome.plan.map(|plan| plan.peak()));
}

/// Buffers from `(lower, upper, size)`.
fn from_rows(rows: &[(i64, i64, u64)]) -> Problem {
    let buffers = rows.iter().enumerate();
    Problem::new(
        buffers.map(|(row, &(lower, upper, size))| common::buffer(&format!("b{row}"), lower, upper, size)).collect(),
    )
}

#[test]
fn what_one_search_remembers_does_not_mislead_the_next() {
    // Needs several searches under one ceiling before it is proved.
    let rows = [
        (1, 3, 3339),
        (1, 5, 4377),
        (6, 9, 2680),
        (1, 5, 2040),
        (1, 4, 839),
        (1, 5, 4406),
        (3, 6, 1895),
        (3, 5, 3199),
        (7, 9, 3515),
        (5, 8, 2581),
        (1, 4, 4447),
        (5, 8, 2898),
        (4, 8, 3817),
        (2, 4, 3829),
        (6, 8, 2087),
        (1, 3, 3692),
        (5, 8, 3427),
        (5, 7, 4701),
        (1, 2, 3714),
        (4, 5, 7235),
        (5, 6, 7650),
        (8, 9, 20774),
    ];
    let outcome = solved(&from_rows(&rows), &work(5_000_000));
    assert_eq!((peak(&outcome), plan_of(&outcome).proved), (26_975, true));
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let dense: Vec<(i64, i64, u64)> = (0..26)
            .map(|_| {
                let lower = random.below(14) as i64;
                (lower, lower + 1 + random.below(6) as i64, 1 + random.below(60))
            })
            .collect();
        let problem = from_rows(&dense);
        let with_memory = solved(&problem, &work(300_000));
        let without = solved(&problem, &with(Techniques { memory: false, ..Techniques::ALL }, 300_000));
        let bound = plan_of(&with_memory).lower_bound.max(plan_of(&without).lower_bound);
        assert!(bound.get() <= peak(&with_memory).min(peak(&without)), "seed {seed}: {with_memory:?} and {without:?}");
    }
}

#[test]
fn repair_keeps_small_buffers_apart_beside_huge_ones() {
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let mixed: Vec<(i64, i64, u64)> = (0..30)
            .map(|_| {
                let lower = random.below(20) as i64;
                let size = if random.below(2) == 0 { 1 + random.below(4) } else { (1 << 55) + random.below(4) };
                (lower, lower + 1 + random.below(8) as i64, size)
            })
            .collect();
        let only_repair = Techniques { exact: false, greedy: false, ..Techniques::ALL };
        solved(&from_rows(&mixed), &with(only_repair, 200_000));
    }
}
