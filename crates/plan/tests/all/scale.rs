//! How soon there is a first plan. Measured in release builds only: others say that they skip it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::problems::{Features, PLAIN, by_seed};
use crate::common::{Chance, buffer, check_outcome};
use lowtide_core::{Bytes, Problem};
use lowtide_plan::{Options, solve};

/// A training step: buffers kept from the way forward to the way back, and many short ones.
fn training_step(count: usize, seed: u64) -> Problem {
    let chance = &mut Chance::new(seed);
    let end = 2 * count as i64;
    let buffers = (0..count).map(|number| {
        let lower = if number % 2 == 0 { number as i64 } else { chance.below(end as u64 - 8) as i64 };
        let upper = if number % 2 == 0 { end - lower } else { lower + chance.between(1, 8) as i64 };
        let mut shape = buffer(&format!("b{number}"), lower, upper, 512 * chance.between(1, 20_000));
        shape.align = lowtide_core::Align::new(512).expect("not zero");
        shape
    });
    Problem::new(buffers.collect())
}

fn first_plan_within(problem: &Problem, limit: Duration) {
    if cfg!(debug_assertions) {
        return lowtide_testing::skip("only an optimised build says how long a plan takes");
    }
    let never = AtomicBool::new(false);
    let options = Options { time_limit: Some(Duration::ZERO), ..Options::new(&never) };
    let begin = Instant::now();
    let outcome = solve(problem, &options, &|_| {}).expect("it makes sense");
    let took = begin.elapsed();
    check_outcome(problem, &outcome);
    assert!(outcome.plan.is_some());
    assert!(took < limit, "{} buffers took {took:?}, more than {limit:?}", problem.buffers.len());
}

#[test]
fn a_thousand_buffers_have_a_plan_in_fifty_milliseconds() {
    first_plan_within(&training_step(1_000, 1), Duration::from_millis(50));
}

#[test]
fn a_thousand_buffers_with_pins_and_gaps_have_a_plan_in_fifty_milliseconds() {
    let features = Features { pins: true, gaps: common::problems::Gaps::Any, aligns: true, size: 1 << 20, ..PLAIN };
    first_plan_within(&by_seed(1, 1_000, 2_000, features), Duration::from_millis(50));
}

#[test]
fn sixty_two_thousand_buffers_have_a_plan_in_two_seconds() {
    first_plan_within(&training_step(62_000, 2), Duration::from_secs(2));
}

#[test]
fn sixty_two_thousand_buffers_with_one_pin_have_a_plan_in_two_seconds() {
    let mut problem = training_step(62_000, 3);
    problem.buffers[7].pin = Some(Bytes::ZERO);
    first_plan_within(&problem, Duration::from_secs(2));
}

/// A chain of buffers, each alive with the next.
fn chain(count: usize) -> Problem {
    Problem::new((0..count).map(|number| buffer(&format!("b{number}"), number as i64, number as i64 + 2, 64)).collect())
}

#[test]
fn sixty_two_thousand_operators_in_place_have_a_plan_in_two_seconds() {
    let mut problem = chain(62_000);
    let indices: Vec<_> = problem.indices().collect();
    problem.may_share = indices.windows(2).map(|pair| (pair[0], pair[1])).collect();
    first_plan_within(&problem, Duration::from_secs(2));
}

#[test]
fn sixty_two_thousand_buffers_in_one_group_or_alias_set_have_a_plan_in_two_seconds() {
    let mut problem = chain(62_000);
    problem.contiguous = vec![problem.indices().collect::<Vec<_>>().into_iter().rev().collect()];
    first_plan_within(&problem, Duration::from_secs(2));
    let mut problem = chain(62_000);
    problem.aliases = vec![problem.indices().collect()];
    first_plan_within(&problem, Duration::from_secs(2));
}
