//! However large a problem is and whatever binds its buffers, there is a plan before any search.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common;
use crate::common::problems::{Features, PLAIN, by_seed};
use crate::common::{buffer, check_outcome};
use lowtide_core::random::Random;
use lowtide_core::{Bytes, Problem};
use lowtide_plan::{Options, solve};

/// A training step: buffers kept from the way forward to the way back, and many short ones.
fn training_step(count: usize, seed: u64) -> Problem {
    let random = &mut Random::new(seed);
    let end = 2 * count as i64;
    let buffers = (0..count).map(|number| {
        let lower = if number % 2 == 0 { number as i64 } else { random.below(end as u64 - 8) as i64 };
        let upper = if number % 2 == 0 { end - lower } else { lower + random.between(1, 8) as i64 };
        let mut shape = buffer(&format!("b{number}"), lower, upper, 512 * random.between(1, 20_000));
        shape.align = lowtide_core::Align::new(512).expect("not zero");
        shape
    });
    Problem::new(buffers.collect())
}

/// No time for any search; how soon the plan is there, `lowtide bench plan` measures.
fn has_a_plan_at_once(problem: &Problem) {
    let never = AtomicBool::new(false);
    let options = Options { time_limit: Some(Duration::ZERO), ..Options::new(&never) };
    let outcome = solve(problem, &options, &|_| {}).expect("it makes sense");
    check_outcome(problem, &outcome);
    assert!(outcome.plan.is_some());
}

const MANY: usize = 20_000;

#[test]
fn large_steps_have_a_plan_at_once() {
    has_a_plan_at_once(&training_step(MANY, 2));
}

#[test]
fn one_pin_in_a_large_step_leaves_a_plan_at_once() {
    let mut problem = training_step(MANY, 3);
    problem.buffers[7].pin = Some(Bytes::ZERO);
    has_a_plan_at_once(&problem);
}

#[test]
fn pins_and_gaps_everywhere_leave_a_plan_at_once() {
    let features = Features { pins: true, gaps: common::problems::Gaps::Any, aligns: true, size: 1 << 20, ..PLAIN };
    has_a_plan_at_once(&by_seed(1, 1_000, 2_000, features));
}

/// A chain of buffers, each alive with the next.
fn chain(count: usize) -> Problem {
    Problem::new((0..count).map(|number| buffer(&format!("b{number}"), number as i64, number as i64 + 2, 64)).collect())
}

#[test]
fn many_operators_in_place_have_a_plan_at_once() {
    let mut problem = chain(MANY);
    let indices: Vec<_> = problem.indices().collect();
    problem.may_share = indices.windows(2).map(|pair| (pair[0], pair[1])).collect();
    has_a_plan_at_once(&problem);
}

#[test]
fn many_buffers_in_one_group_or_alias_set_have_a_plan_at_once() {
    let mut problem = chain(MANY);
    problem.contiguous = vec![problem.indices().collect::<Vec<_>>().into_iter().rev().collect()];
    has_a_plan_at_once(&problem);
    let mut problem = chain(MANY);
    problem.aliases = vec![problem.indices().collect()];
    has_a_plan_at_once(&problem);
}
