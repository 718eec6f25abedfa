//! What binds buffers, example by example: aliases, sharing, groups, classes, pools, pins, and buffers of nothing.

mod common;

use common::{at, buffer, offset, peak, plan_of, solved, work};
use lowtide_core::{Align, BufferIndex, Bytes, Class, Pool, PoolIndex, Problem, ProblemError};
use lowtide_plan::{Blame, Fits, Outcome, SolveError, Stopped, lower_bound, solve};

const WORK: u64 = 300_000;

fn solve_it(problem: &Problem) -> Outcome {
    solved(problem, &work(WORK))
}

/// The peak is as given and known to be the least.
fn assert_proved(problem: &Problem, height: u64) -> Outcome {
    let outcome = solve_it(problem);
    assert_eq!((peak(&outcome), plan_of(&outcome).proved), (height, true), "{outcome:?}");
    assert_eq!(outcome.stopped, Stopped::Proved);
    outcome
}

fn align(multiple: u64) -> Align {
    Align::new(multiple).expect("not zero")
}

fn pool(name: &str, capacity: u64, spill: Option<usize>) -> Pool {
    Pool { capacity: Some(Bytes::new(capacity)), spill: spill.map(PoolIndex::new), ..Pool::unlimited(name) }
}

fn spilled(outcome: &Outcome) -> Vec<usize> {
    outcome.spilled.iter().map(|buffer| buffer.get()).collect()
}

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

// Classes.

#[test]
fn persistent_buffers_lie_below_transient_ones() {
    let mut problem = Problem::new(vec![buffer("t", 0, 2, 10), buffer("p", 5, 9, 4), buffer("q", 0, 9, 3)]);
    (problem.buffers[1].class, problem.buffers[2].class) = (Class::Persistent, Class::Persistent);
    let outcome = assert_proved(&problem, 17);
    assert_eq!(offset(&outcome, 0), 7);
}

#[test]
fn a_persistent_buffer_that_never_lives_lifts_nothing() {
    let mut problem = Problem::new(vec![buffer("p", 3, 3, 6), buffer("t", 0, 9, 4)]);
    problem.buffers[0].class = Class::Persistent;
    let outcome = solve_it(&problem);
    assert!(!plan_of(&outcome).proved || peak(&outcome) == 6, "proved above the optimum of 6: {outcome:?}");
    assert!(plan_of(&outcome).lower_bound.get() <= 6, "{outcome:?}");
}

#[test]
fn a_group_above_the_persistent_zone_is_bounded_rightly() {
    let mut problem = Problem::new(vec![buffer("p", 0, 4, 5), buffer("a", 0, 4, 3), buffer("b", 0, 4, 4)]);
    problem.buffers[0].class = Class::Persistent;
    problem.buffers[2].align = align(4);
    problem.contiguous = vec![vec![at(1), at(2)]];
    let outcome = solve_it(&problem);
    assert_eq!(peak(&outcome), 16);
    assert!(plan_of(&outcome).proved, "{outcome:?}");
}

#[test]
fn the_persistent_zone_is_made_low_even_where_a_pin_lies_higher() {
    // Cut so that the first plan of the persistent ones is not the best; the pin would hide that.
    for seed in 0..30 {
        let chance = &mut common::Chance::new(seed);
        let cuts = common::cuts::cut(12, 30, 8, common::cuts::Style::Guillotine, chance);
        let mut problem = common::cuts::problem(&cuts);
        problem.buffers.iter_mut().for_each(|buffer| buffer.class = Class::Persistent);
        problem.buffers.push(buffer("t", 0, 12, 50));
        problem.buffers.push(buffer("pinned", 20, 21, 1));
        problem.buffers[cuts.len() + 1].pin = Some(Bytes::new(60));
        let outcome = solve_it(&problem);
        let plan = plan_of(&outcome);
        assert!(plan.lower_bound.get() <= 80, "seed {seed}: a bound above the optimum of 80: {outcome:?}");
        assert!(!plan.proved || peak(&outcome) == 80, "seed {seed}: proved above the optimum of 80: {outcome:?}");
    }
}

#[test]
fn a_capacity_is_not_missed_because_the_persistent_zone_fitted_early() {
    let mut problem =
        Problem::new(vec![buffer("p", 0, 1, 1), buffer("t", 2, 5, 4), buffer("u", 1, 3, 4), buffer("q", 0, 1, 4)]);
    (problem.buffers[0].class, problem.buffers[3].class) = (Class::Persistent, Class::Persistent);
    problem.buffers[0].align = align(3);
    problem.pools[0].capacity = Some(Bytes::new(13));
    assert_eq!(solve_it(&problem).fits, Fits::Yes);
}

// Pools.

#[test]
fn pools_are_planned_apart_and_their_heights_add_up() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 10), buffer("b", 0, 4, 7), buffer("c", 5, 9, 8)]);
    problem.pools = vec![Pool::unlimited("one"), Pool::unlimited("two")];
    problem.buffers[1].pool = PoolIndex::new(1);
    let outcome = assert_proved(&problem, 17);
    assert_eq!(plan_of(&outcome).heights, [Bytes::new(10), Bytes::new(7)]);
}

#[test]
fn what_does_not_fit_spills_and_only_as_much_as_must() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 6), buffer("b", 0, 4, 5), buffer("c", 0, 4, 4)]);
    problem.pools = vec![pool("fast", 10, Some(1)), Pool::unlimited("slow")];
    let outcome = solve_it(&problem);
    assert_eq!((&outcome.fits, spilled(&outcome)), (&Fits::Yes, vec![1]), "{outcome:?}");
    assert_eq!(plan_of(&outcome).heights, [Bytes::new(10), Bytes::new(5)]);
}

#[test]
fn nothing_spills_where_everything_fits() {
    let problem = common::cuts::cut(30, 400, 20, common::cuts::Style::Pinwheel, &mut common::Chance::new(1));
    let mut problem = common::cuts::problem(&problem);
    problem.pools = vec![pool("fast", 400, Some(1)), Pool::unlimited("slow")];
    let outcome = solved(&problem, &work(5_000_000));
    assert_eq!((outcome.fits, outcome.spilled), (Fits::Yes, vec![]));
}

#[test]
fn spills_go_on_down_a_chain_of_pools() {
    let buffers = (0..6).map(|number| buffer(&format!("b{number}"), 0, 4, 10)).collect();
    let mut problem = Problem::new(buffers);
    problem.pools = vec![pool("near", 20, Some(2)), Pool::unlimited("far"), pool("middle", 30, Some(1))];
    let outcome = solve_it(&problem);
    assert_eq!(outcome.fits, Fits::Yes);
    assert_eq!(plan_of(&outcome).heights, [20, 10, 30].map(Bytes::new));
    assert_eq!(outcome.spilled.len(), 4);
}

#[test]
fn tied_buffers_spill_together() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 6), buffer("view", 3, 9, 2), buffer("c", 0, 9, 8)]);
    problem.aliases = vec![vec![at(0), at(1)]];
    problem.pools = vec![pool("fast", 10, Some(1)), Pool::unlimited("slow")];
    let outcome = solve_it(&problem);
    assert_eq!(outcome.fits, Fits::Yes);
    assert_eq!(plan_of(&outcome).placements[0], plan_of(&outcome).placements[1]);
}

#[test]
fn pinned_buffers_stay_and_others_spill() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 9), buffer("pinned", 0, 4, 4)]);
    problem.buffers[1].pin = Some(Bytes::new(3));
    problem.pools = vec![pool("fast", 10, Some(1)), Pool::unlimited("slow")];
    assert_eq!(spilled(&solve_it(&problem)), [0]);
}

#[test]
fn another_choice_of_what_to_spill_is_not_ruled_out() {
    // The two long ones fill the fast pool; the short ones take turns in the slow one. Spilling the long ones
    // instead would be fewer bytes, but those do not fit the slow pool.
    let mut problem =
        Problem::new(vec![buffer("p", 0, 2, 3), buffer("q", 0, 2, 3), buffer("d", 0, 1, 5), buffer("e", 1, 2, 5)]);
    problem.pools = vec![pool("fast", 6, Some(1)), pool("slow", 5, None)];
    assert!(common::oracle::fits(&problem));
    let outcome = solve_it(&problem);
    assert!(!matches!(outcome.fits, Fits::No(_)), "it fits, but {outcome:?}");
}

#[test]
fn a_buffer_larger_than_its_pool_is_to_blame_alone() {
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 6), buffer("b", 9, 12, 20), buffer("c", 0, 4, 4)]);
    problem.pools = vec![pool("small", 15, None)];
    let outcome = solve_it(&problem);
    assert_eq!(outcome.fits, Fits::No(Blame { buffers: vec![at(1)], irreducible: true }));
    assert_eq!((outcome.stopped, peak(&outcome)), (Stopped::Proved, 20));
}

#[test]
fn blame_counts_what_alignment_costs() {
    // Three of five bytes at multiples of eight; two of them already end at 13.
    let mut problem = Problem::new(vec![buffer("a", 0, 4, 5), buffer("b", 0, 4, 5), buffer("c", 0, 4, 5)]);
    problem.buffers.iter_mut().for_each(|buffer| buffer.align = align(8));
    problem.pools = vec![pool("small", 12, None)];
    let Fits::No(blame) = solve_it(&problem).fits else { panic!("it cannot fit") };
    assert!(blame.irreducible && blame.buffers.len() == 2, "{blame:?}");
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
fn a_spilling_pool_with_both_classes_is_bounded_rightly() {
    let mut problem = Problem::new(vec![buffer("w", 0, 2, 8), buffer("v", 0, 2, 8), buffer("t", 0, 1, 1)]);
    (problem.buffers[0].class, problem.buffers[1].class) = (Class::Persistent, Class::Persistent);
    problem.pools = vec![Pool::unlimited("fast"), Pool::unlimited("slow")];
    (problem.pools[0].capacity, problem.pools[0].spill) = (Some(Bytes::new(10)), Some(PoolIndex::new(1)));
    let outcome = solve_it(&problem);
    assert_eq!((peak(&outcome), plan_of(&outcome).lower_bound.get()), (17, 17));
    assert_eq!(outcome.fits, Fits::Yes);
}

#[test]
fn a_buffer_larger_than_every_pool_on_its_way_is_a_no() {
    let mut problem = Problem::new(vec![buffer("large", 0, 2, 100), buffer("small", 0, 2, 50)]);
    problem.pools = vec![Pool::unlimited("fast"), Pool::unlimited("slow")];
    (problem.pools[0].capacity, problem.pools[0].spill) = (Some(Bytes::new(10)), Some(PoolIndex::new(1)));
    problem.pools[1].capacity = Some(Bytes::new(60));
    let outcome = solve_it(&problem);
    assert!(matches!(&outcome.fits, Fits::No(blame) if blame.buffers == [at(0)]), "{outcome:?}");
}

#[test]
fn what_is_pinned_counts_in_the_bound() {
    let mut problem = Problem::new([4, 5, 2, 2, 3].map(|size| buffer(&format!("b{size}"), 0, 1, size)).to_vec());
    problem.buffers[3].id = "pinned".into();
    problem.buffers[3].pin = Some(Bytes::ZERO);
    assert_eq!(lower_bound(&problem).unwrap().get(), 16);
    assert_proved(&problem, 16);
}

#[test]
fn a_pin_that_reaches_above_the_persistent_zone_does_not_lift_it() {
    let mut problem = Problem::new(vec![
        buffer("pinned", 3, 4, 3),
        buffer("long", 0, 4, 1),
        buffer("p", 0, 1, 2),
        buffer("q", 0, 1, 2),
        buffer("t", 0, 1, 1),
    ]);
    problem.buffers[0].pin = Some(Bytes::new(3));
    problem.buffers[1..4].iter_mut().for_each(|buffer| buffer.class = Class::Persistent);
    problem.buffers[3].align = align(2);
    assert_proved(&problem, 6);
}

#[test]
fn a_pool_that_buffers_may_leave_is_not_counted_into_the_bound() {
    // Both in `slow` would take ten bytes: what is alive at once is all that is sure.
    let mut problem = Problem::new(vec![buffer("a", 0, 1, 10), buffer("b", 1, 2, 10)]);
    problem.pools = vec![Pool::unlimited("fast"), Pool::unlimited("slow")];
    (problem.pools[0].capacity, problem.pools[0].spill) = (Some(Bytes::new(100)), Some(PoolIndex::new(1)));
    problem.buffers[1].pool = PoolIndex::new(1);
    assert_eq!(lower_bound(&problem).unwrap().get(), 10);
    let outcome = solve_it(&problem);
    assert_eq!((peak(&outcome), plan_of(&outcome).lower_bound.get(), plan_of(&outcome).proved), (20, 10, false));
}
