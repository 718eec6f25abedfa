//! What binds buffers, example by example: aliases, sharing, groups, pins, and buffers of nothing.

use crate::common;
use crate::common::{WORK, align, assert_proved, at, buffer, offset, peak, pool, solve_it, work};
use lowtide_core::{BufferIndex, Bytes, Class, Pool, PoolIndex, Problem, ProblemError};
use lowtide_plan::{Blame, Fits, SolveError, Stopped, lower_bound, solve};

// Aliases.

#[test]
fn an_alias_set_holds_its_largest_member_for_all_their_lives() {
    let mut problem = Problem::new(vec![buffer("a", 0, 2, 10), buffer("view", 5, 8, 4), buffer("other", 5, 8, 7)]);
    problem.aliases = vec![vec![at(0), at(1)]];
    let outcome = assert_proved(&problem, 11);
    assert_eq!(offset(&outcome, 0), offset(&outcome, 1));
}

#[test]
fn an_alias_takes_only_what_its_living_members_hold() {
    // The small view outlives the large tensor; what it does not cover is free for others by then.
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 10), buffer("view", 0, 8, 4), buffer("late", 4, 8, 6)]);
    problem.aliases = vec![vec![at(0), at(1)]];
    assert_proved(&problem, 10);
}

#[test]
fn aliases_obey_the_alignments_of_all_members() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("b", 0, 4, 5), buffer("c", 0, 4, 1)]);
    problem.buffers[2].pin = Some(Bytes::ZERO);
    (problem.buffers[0].align, problem.buffers[1].align) = (align(4), align(6));
    problem.aliases = vec![vec![at(0), at(1)]];
    assert_eq!(offset(&assert_proved(&problem, 17), 1), 12);
}

#[test]
fn the_pin_of_one_alias_holds_for_all() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("b", 2, 9, 5), buffer("c", 5, 9, 3)]);
    problem.buffers[0].pin = Some(Bytes::new(3));
    problem.aliases = vec![vec![at(1), at(0)]];
    let outcome = assert_proved(&problem, 8);
    assert_eq!((offset(&outcome, 1), offset(&outcome, 2)), (3, 0));
}

#[test]
fn a_pin_that_the_alignment_of_an_alias_forbids_is_a_contradiction() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("b", 2, 9, 5)]);
    problem.buffers[0].pin = Some(Bytes::new(3));
    problem.buffers[1].align = align(4);
    problem.aliases = vec![vec![at(0), at(1)]];
    assert_contradiction(&problem);
}

#[test]
fn a_persistent_alias_of_a_pinned_buffer_lies_where_it_is_pinned() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("view", 0, 4, 5), buffer("c", 0, 4, 3)]);
    for persistent in 0..2 {
        problem.buffers[persistent].class = Class::Persistent;
    }
    problem.buffers[0].pin = Some(Bytes::new(8));
    problem.aliases = vec![vec![at(0), at(1)]];
    let outcome = solve(&problem, &work(WORK), &|_| {});
    assert!(matches!(&outcome, Ok(outcome) if outcome.plan.is_some()), "{outcome:?}");
}

// Sharing in place.

#[test]
fn a_chain_of_in_place_operators_is_one_buffer() {
    let chain: Vec<_> = (0..6).map(|step| buffer(&format!("b{step}"), step, step + 2, 10)).collect();
    let mut problem = Problem::new(chain);
    problem.may_share = (0..5).map(|step| (at(step), at(step + 1))).collect();
    let outcome = assert_proved(&problem, 10);
    assert!((0..6).all(|buffer| offset(&outcome, buffer) == 0));
}

#[test]
fn a_pair_does_not_share_where_a_third_is_in_the_way() {
    // `a` may share with `b` and `b` with `c`, but not `a` with `c`, and all are alive at once.
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 10), buffer("b", 0, 4, 10), buffer("c", 0, 4, 10)]);
    problem.may_share = vec![(at(0), at(1)), (at(1), at(2))];
    let outcome = assert_proved(&problem, 20);
    assert_ne!(offset(&outcome, 0), offset(&outcome, 2));
}

#[test]
fn sharing_is_left_alone_where_it_would_cost() {
    // Were `a` and `b` at one address, `b` would lie at 8 for its alignment; apart, all fit into 12.
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 4), buffer("b", 3, 8, 4), buffer("c", 0, 8, 4)]);
    problem.buffers[0].pin = Some(Bytes::new(4));
    problem.buffers[2].pin = Some(Bytes::new(8));
    problem.may_share = vec![(at(0), at(1))];
    assert_proved(&problem, 12);
}

#[test]
fn the_larger_pair_shares_where_only_one_can() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 9), buffer("b", 0, 4, 9), buffer("c", 0, 4, 2)]);
    problem.may_share = vec![(at(1), at(2)), (at(0), at(1))];
    assert_proved(&problem, 11);
}

#[test]
fn a_bound_knows_that_an_alias_of_a_sharer_shares_too() {
    // `a` may lie on `b`, and `view` is `b`: together they are ten bytes.
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 10), buffer("b", 0, 4, 1), buffer("view", 0, 4, 10)]);
    problem.aliases = vec![vec![at(1), at(2)]];
    problem.may_share = vec![(at(0), at(1))];
    assert_eq!(peak(&solve_it(&problem)), 10);
    assert!(lower_bound(&problem).unwrap().get() <= 10);
    problem.pools[0].capacity = Some(Bytes::new(10));
    assert_eq!(solve_it(&problem).fits, Fits::Yes);
}

#[test]
fn a_pair_whose_alignment_a_pin_forbids_lies_apart() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 4), buffer("b", 0, 4, 4)]);
    problem.buffers[0].pin = Some(Bytes::new(1));
    problem.buffers[1].align = align(3);
    problem.may_share = vec![(at(0), at(1))];
    assert_eq!(peak(&solve_it(&problem)), 10);
}

#[test]
fn a_pair_that_shares_with_a_pinned_buffer_keeps_to_its_zone() {
    let mut problem = Problem::new(vec![buffer("p", 0, 9, 3), buffer("a", 0, 4, 1), buffer("b", 3, 9, 1)]);
    problem.buffers[0].class = Class::Persistent;
    problem.buffers[1].pin = Some(Bytes::ZERO);
    problem.may_share = vec![(at(1), at(2))];
    solve_it(&problem);
}

#[test]
fn a_pair_does_not_share_an_address_that_another_pin_denies() {
    let mut problem = Problem::new(vec![buffer("pin", 0, 3, 1), buffer("out", 0, 1, 2), buffer("in", 3, 5, 1)]);
    problem.buffers[0].pin = Some(Bytes::new(3));
    problem.buffers[2].pin = Some(Bytes::new(2));
    problem.may_share = vec![(at(1), at(2))];
    assert_eq!(peak(&solve_it(&problem)), 4);
}

// Contiguous groups.

#[test]
fn a_group_lies_in_its_order_with_nothing_between() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 3), buffer("b", 2, 6, 5), buffer("c", 0, 9, 2)]);
    problem.contiguous = vec![vec![at(2), at(0), at(1)]];
    let outcome = assert_proved(&problem, 10);
    assert_eq!([2, 0, 1].map(|buffer| offset(&outcome, buffer)), [0, 2, 5]);
}

#[test]
fn alignment_pads_inside_a_group_and_others_use_the_padding() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("b", 0, 4, 8), buffer("c", 0, 4, 3)]);
    problem.buffers[1].align = align(8);
    problem.contiguous = vec![vec![at(0), at(1)]];
    let outcome = solve_it(&problem);
    assert_eq!(peak(&outcome), 16, "{outcome:?}");
}

#[test]
fn a_group_begins_where_the_alignments_of_all_its_members_hold() {
    // The group takes 3, a byte of padding and 4: at 0 with `x` above it, or at 8 above `x`.
    let mut problem = Problem::new(vec![buffer("x", 0, 4, 5), buffer("a", 0, 4, 3), buffer("b", 0, 4, 4)]);
    (problem.buffers[0].align, problem.buffers[2].align) = (align(4), align(4));
    problem.contiguous = vec![vec![at(1), at(2)]];
    let outcome = assert_proved(&problem, 13);
    assert_eq!((offset(&outcome, 1), offset(&outcome, 2)), (0, 4));
}

#[test]
fn a_pin_fixes_the_whole_group() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 3), buffer("b", 0, 4, 4), buffer("c", 0, 4, 5)]);
    problem.buffers[0].pin = Some(Bytes::new(8));
    problem.buffers[1].align = align(4);
    problem.contiguous = vec![vec![at(0), at(1)]];
    let outcome = assert_proved(&problem, 16);
    assert_eq!((offset(&outcome, 1), offset(&outcome, 2)), (12, 0));
}

#[test]
fn a_pin_at_which_a_group_cannot_begin_is_a_contradiction() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 3), buffer("b", 0, 4, 4)]);
    problem.buffers[0].pin = Some(Bytes::new(5));
    problem.buffers[1].align = align(4);
    problem.contiguous = vec![vec![at(0), at(1)]];
    let error = solve(&problem, &work(1000), &|_| {}).unwrap_err();
    assert!(matches!(error, SolveError::Problem(ProblemError::Contradiction { .. })), "{error}");
}

// Pins and contradictions.

fn assert_contradiction(problem: &Problem) {
    let error = solve(problem, &work(WORK), &|_| {}).map(|outcome| outcome.plan);
    assert!(matches!(error, Err(SolveError::Problem(ProblemError::Contradiction { .. }))), "{error:?}");
}

#[test]
fn pins_that_contradict_each_other_have_no_plan_and_are_named() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 9, 12, 8), buffer("c", 3, 10, 8)]);
    problem.buffers[0].pin = Some(Bytes::ZERO);
    problem.buffers[2].pin = Some(Bytes::new(7));
    let outcome = solve_it(&problem);
    assert_eq!(outcome.plan, None);
    assert_eq!(outcome.fits, Fits::No(Blame { buffers: vec![at(0), at(2)], irreducible: true }));
    assert_eq!(outcome.stopped, Stopped::Proved);
}

#[test]
fn pins_at_one_address_agree_where_the_pair_may_share() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 0, 4, 8)]);
    problem.buffers.iter_mut().for_each(|buffer| buffer.pin = Some(Bytes::new(4)));
    problem.may_share = vec![(at(0), at(1))];
    assert_proved(&problem, 12);
}

#[test]
fn pins_at_one_address_agree_in_two_pools() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 0, 4, 8)]);
    problem.buffers.iter_mut().for_each(|buffer| buffer.pin = Some(Bytes::ZERO));
    problem.pools = vec![Pool::unlimited("one"), Pool::unlimited("two")];
    problem.buffers[1].pool = PoolIndex::new(1);
    assert_proved(&problem, 16);
}

#[test]
fn a_pin_above_the_capacity_cannot_fit() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 0, 4, 2)]);
    problem.buffers[0].pin = Some(Bytes::new(100));
    problem.pools = vec![pool("small", 20, None)];
    let fits = solve_it(&problem).fits;
    assert_eq!(fits, Fits::No(Blame { buffers: vec![at(0)], irreducible: true }));
}

#[test]
fn ties_at_two_distances_are_a_contradiction() {
    let three = || Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 0, 4, 8), buffer("c", 0, 4, 8)]);
    let mut problem = three();
    problem.aliases = vec![vec![at(0), at(1)]];
    problem.contiguous = vec![vec![at(0), at(1)]];
    assert_contradiction(&problem);
    // `a` in front of `b`, and `c`, which is `a`, over part of `b`.
    let mut problem = three();
    problem.buffers[2].size = Bytes::new(12);
    problem.aliases = vec![vec![at(0), at(2)]];
    problem.contiguous = vec![vec![at(0), at(1)]];
    assert_contradiction(&problem);
}

#[test]
fn pins_at_the_wrong_distance_in_a_group_are_a_contradiction() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 5, 9, 8)]);
    problem.buffers[0].pin = Some(Bytes::ZERO);
    problem.buffers[1].pin = Some(Bytes::new(9));
    problem.contiguous = vec![vec![at(0), at(1)]];
    assert_contradiction(&problem);
}

// Gaps with windows.

#[test]
fn buffers_that_look_alike_but_hold_different_bytes_are_told_apart() {
    // `window` holds two bytes of its eight; it must lie below `full`, although it comes second.
    let mut problem = Problem::new(vec![buffer("full", 0, 4, 8), buffer("window", 0, 4, 8)]);
    let window = Some(lowtide_core::Window { lower: Bytes::ZERO, upper: Bytes::new(2) });
    problem.buffers[1].gaps = vec![lowtide_core::Gap { lifetime: problem.buffers[1].lifetime, window }];
    assert_eq!(common::oracle::optimum(&problem), Some(10));
    assert_proved(&problem, 10);
}

#[test]
fn a_window_thinner_than_the_buffer_rests_anywhere_below_an_alignment() {
    // `aligned` at 0, `window` from 1 on: neither is held up by the other's alignment.
    let mut problem = Problem::new(vec![buffer("window", 2, 6, 3), buffer("aligned", 4, 5, 1)]);
    let window = Some(lowtide_core::Window { lower: Bytes::ZERO, upper: Bytes::new(1) });
    let lifetime = lowtide_core::Lifetime { lower: 4, upper: 6 };
    problem.buffers[0].gaps = vec![lowtide_core::Gap { lifetime, window }];
    problem.buffers[1].align = align(4);
    assert_eq!(common::oracle::optimum(&problem), Some(4));
    assert_proved(&problem, 4);
}

// Nothing at all.

#[test]
fn a_problem_without_buffers_needs_nothing() {
    let outcome = assert_proved(&Problem::new(Vec::new()), 0);
    assert_eq!(outcome.fits, Fits::Yes);
    let mut problem = Problem::new(Vec::new());
    problem.pools[0].capacity = Some(Bytes::ZERO);
    assert_eq!(solve_it(&problem).fits, Fits::Yes);
}

#[test]
fn buffers_of_no_bytes_meet_nothing() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 0), buffer("b", 0, 4, 5), buffer("c", 0, 4, 0)]);
    assert_proved(&problem, 5);
    problem.buffers[1].size = Bytes::ZERO;
    assert_proved(&problem, 0);
}

#[test]
fn buffers_that_never_live_lie_anywhere_but_must_still_fit() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("never", 2, 2, 9)]);
    let outcome = assert_proved(&problem, 9);
    assert_eq!(offset(&outcome, 0) % 5, 0);
    problem.pools[0].capacity = Some(Bytes::new(8));
    assert!(matches!(solve_it(&problem).fits, Fits::No(blame) if blame.buffers == [at(1)]));
}

#[test]
fn a_problem_that_makes_no_sense_is_an_error() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("a", 0, 4, 5)]);
    let twice = ProblemError::DuplicateBuffer { id: "a".into(), second: BufferIndex::new(1) };
    assert_eq!(solve(&problem, &work(WORK), &|_| {}), Err(SolveError::Problem(twice)));
    problem.buffers[1].id = "b".into();
    problem.pools.clear();
    assert!(matches!(solve(&problem, &work(WORK), &|_| {}), Err(SolveError::Problem(ProblemError::BadPools(_)))));
}

#[test]
fn what_is_pinned_counts_in_the_bound() {
    let mut problem = Problem::new([4, 5, 2, 2, 3].map(|size| buffer(&format!("b{size}"), 0, 1, size)).to_vec());
    problem.buffers[3].id = "pinned".into();
    problem.buffers[3].pin = Some(Bytes::ZERO);
    assert_eq!(lower_bound(&problem).unwrap().get(), 16);
    assert_proved(&problem, 16);
}
