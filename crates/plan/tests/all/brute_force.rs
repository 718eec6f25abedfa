//! Tiny problems against an oracle that tries everything: what is proved is true, and nothing is claimed that is not.

use crate::common::oracle::{self, optimum, optimum_over_orders};
use crate::common::problems::{EVERYTHING, Features, Gaps, PLAIN, problems};
use crate::common::{briefly, check_outcome, peak, plan_of, property, solved, work};
use lowtide_core::{BufferIndex, Bytes, Pool, PoolIndex, Problem};
use lowtide_plan::{Blame, Fits, Options, Outcome, SolveError, Stopped, lower_bound, solve};
use proptest::prelude::*;

/// Enough for any problem of six buffers.
const PLENTY: u64 = 3_000_000;

/// For problems that no search can prove.
const LITTLE: u64 = 20_000;

const ALIGNED: Features = Features { aligns: true, ..PLAIN };
const PINNED: Features = Features { pins: true, ..ALIGNED };
const GAPPED: Features = Features { gaps: Gaps::Flat, ..ALIGNED };
const PINNED_AND_GAPPED: Features = Features { pins: true, ..GAPPED };

/// Solves what may have no plan: `None` where the solver says so.
fn solved_if_possible(problem: &Problem, options: &Options) -> Option<Outcome> {
    match solve(problem, options, &|_| {}) {
        Err(SolveError::Problem(_)) => None,
        Err(error) => panic!("{error}"),
        Ok(outcome) => {
            check_outcome(problem, &outcome);
            outcome.plan.is_some().then_some(outcome)
        }
    }
}

/// The least peak is found and proved, and exists exactly where a plan is given.
fn assert_proved(problem: &Problem) {
    let outcome = solved_if_possible(problem, &work(PLENTY));
    let best = optimum(problem);
    assert_eq!(outcome.as_ref().map(peak), best);
    if let Some(outcome) = outcome {
        assert_eq!(outcome.stopped, Stopped::Proved, "{outcome:?}");
        assert!(plan_of(&outcome).proved, "{outcome:?}");
    }
}

/// Nothing is claimed that the oracle denies; the least peak need not be found.
fn assert_sound(problem: &Problem) {
    let outcome = solved_if_possible(problem, &briefly(LITTLE));
    let best = optimum(problem);
    assert_eq!(outcome.is_some(), best.is_some(), "{outcome:?}, best {best:?}");
    if let (Some(outcome), Some(best)) = (outcome, best) {
        let plan = plan_of(&outcome);
        assert!(peak(&outcome) >= best, "below the optimum {best}: {outcome:?}");
        assert!(plan.lower_bound.get() <= best, "a bound above the optimum {best}: {outcome:?}");
        assert!(!plan.proved || peak(&outcome) == best, "proved above the optimum {best}: {outcome:?}");
        let bound = lower_bound(problem).expect("it was solved").get();
        assert!(bound <= best, "a first bound of {bound} above the optimum {best}");
    }
}

/// Whether it fits is known, and known rightly.
fn assert_fit_decided(problem: &Problem, capacity: u64) {
    let problem = with_capacity(problem, capacity);
    let outcome = solve(&problem, &work(PLENTY), &|_| {}).expect("it makes sense");
    check_outcome(&problem, &outcome);
    assert_eq!(outcome.fits == Fits::Yes, oracle::fits(&problem), "{outcome:?}");
    assert_ne!(outcome.fits, Fits::Unknown);
    if let Fits::No(blame) = &outcome.fits
        && outcome.plan.is_some()
    {
        assert!(blame.irreducible, "there was work enough: {blame:?}");
        assert_blame(&problem, blame);
    }
}

/// What is said about the fit is right; it need not be known.
fn assert_fit_sound(problem: &Problem, capacity: u64) {
    let problem = with_capacity(problem, capacity);
    let Some(outcome) = solved_if_possible(&problem, &briefly(LITTLE)) else { return };
    match &outcome.fits {
        Fits::Yes => assert!(oracle::fits(&problem)),
        Fits::No(blame) => {
            assert!(!oracle::fits(&problem), "it fits, but {outcome:?}");
            assert_blame(&problem, blame);
        }
        Fits::Unknown => {}
    }
}

/// The buffers blamed do not fit, and where that is said, no fewer of them do not.
fn assert_blame(problem: &Problem, blame: &Blame) {
    assert!(blame.buffers.is_sorted_by(|a, b| a < b), "in the problem's order, each once: {blame:?}");
    let fits = |some: &[BufferIndex]| oracle::fits(&problem.restricted(some));
    assert!(!fits(&blame.buffers), "they fit: {blame:?}");
    if blame.irreducible {
        for left_out in &blame.buffers {
            let rest: Vec<BufferIndex> = blame.buffers.iter().copied().filter(|buffer| buffer != left_out).collect();
            assert!(fits(&rest), "without {left_out:?} they do not fit either: {blame:?}");
        }
    }
}

fn with_capacity(problem: &Problem, capacity: u64) -> Problem {
    let mut problem = problem.clone();
    problem.pools[0].capacity = Some(Bytes::new(capacity));
    problem
}

proptest! {
    #![proptest_config(property(2_000))]

    #[test]
    fn plain_and_aligned_optima_are_those_of_the_best_order(
        problem in problems(Features { size: 1_000, ..ALIGNED })
    ) {
        let outcome = solved(&problem, &work(PLENTY));
        prop_assert_eq!(peak(&outcome), optimum_over_orders(&problem));
        prop_assert!(plan_of(&outcome).proved);
        prop_assert_eq!(outcome.stopped, Stopped::Proved);
    }

    #[test]
    fn both_oracles_agree_on_aligned_problems(problem in problems(ALIGNED)) {
        prop_assert_eq!(optimum(&problem), Some(optimum_over_orders(&problem)));
    }

    #[test]
    fn pinned_optima_are_proved(problem in problems(PINNED)) {
        assert_proved(&problem);
    }

    #[test]
    fn optima_with_gaps_are_proved(problem in problems(GAPPED)) {
        assert_proved(&problem);
    }

    #[test]
    fn optima_with_pins_and_gaps_are_proved(problem in problems(PINNED_AND_GAPPED)) {
        assert_proved(&problem);
    }

    #[test]
    fn alias_optima_are_proved(problem in problems(Features { aliases: true, ..ALIGNED })) {
        assert_proved(&problem);
    }

    #[test]
    fn alias_optima_with_pins_and_gaps_are_proved(problem in problems(Features { aliases: true, ..PINNED_AND_GAPPED })) {
        assert_proved(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_windows(problem in problems(Features { gaps: Gaps::Any, ..PINNED })) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_contiguous_groups(
        problem in problems(Features { contiguous: true, ..PINNED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_contiguous_groups_without_alignments(
        problem in problems(Features { contiguous: true, aliases: true, aligns: false, ..PINNED_AND_GAPPED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_pins_of_tied_buffers(
        problem in problems(Features { contiguous: true, aliases: true, tied_pins: true, ..PINNED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_sharing(
        problem in problems(Features { may_share: true, ..PINNED_AND_GAPPED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_sharing_with_aliases(
        problem in problems(Features { may_share: true, aliases: true, ..PLAIN })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn optima_with_classes_are_proved(problem in problems(Features { classes: true, nothings: false, ..ALIGNED })) {
        assert_proved(&problem);
    }

    #[test]
    fn optima_with_classes_and_pins_are_proved(
        problem in problems(Features { classes: true, nothings: false, ..PINNED_AND_GAPPED })
    ) {
        assert_proved(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_classes_of_buffers_that_hold_nothing(
        problem in problems(Features { classes: true, ..ALIGNED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_anything_together_without_alignments(
        problem in problems(Features { aligns: false, nothings: false, tied_pins: false, ..EVERYTHING })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_anything_together(problem in problems(EVERYTHING)) {
        assert_sound(&problem);
    }

    #[test]
    fn nothing_false_is_claimed_about_sharing_without_alignments(
        problem in problems(Features { may_share: true, aligns: false, ..PINNED_AND_GAPPED })
    ) {
        assert_sound(&problem);
    }

    #[test]
    fn whether_plain_buffers_fit_is_decided(problem in problems(PLAIN), capacity in 0..16_u64) {
        assert_fit_decided(&problem, capacity);
    }

    #[test]
    fn whether_aligned_buffers_fit_is_decided(problem in problems(ALIGNED), capacity in 0..16_u64) {
        assert_fit_decided(&problem, capacity);
    }

    #[test]
    fn whether_pinned_and_gapped_buffers_fit_is_decided(
        problem in problems(PINNED_AND_GAPPED), capacity in 0..16_u64
    ) {
        assert_fit_decided(&problem, capacity);
    }

    #[test]
    fn whether_classes_fit_is_decided(
        problem in problems(Features { classes: true, nothings: false, ..ALIGNED }), capacity in 0..16_u64
    ) {
        assert_fit_decided(&problem, capacity);
    }

    #[test]
    fn whether_classes_with_pins_fit_is_never_said_wrongly(
        problem in problems(Features { classes: true, nothings: false, ..PINNED }), capacity in 0..16_u64
    ) {
        assert_fit_sound(&problem, capacity);
    }

    #[test]
    fn whether_bound_buffers_fit_is_never_said_wrongly_without_alignments(
        problem in problems(Features { aligns: false, nothings: false, tied_pins: false, ..EVERYTHING }),
        capacity in 0..16_u64
    ) {
        assert_fit_sound(&problem, capacity);
    }

    #[test]
    fn whether_bound_buffers_fit_is_never_said_wrongly(problem in problems(EVERYTHING), capacity in 0..16_u64) {
        assert_fit_sound(&problem, capacity);
    }

    #[test]
    fn a_choice_of_what_to_spill_is_not_taken_for_the_only_one(
        problem in problems(PINNED), first in 2..9_u64, second in 2..9_u64
    ) {
        let mut problem = problem;
        let pool = |name, capacity, spill| Pool { capacity: Some(Bytes::new(capacity)), spill, ..Pool::unlimited(name) };
        problem.pools = vec![pool("fast", first, Some(PoolIndex::new(1))), pool("slow", second, None)];
        if let Some(outcome) = solved_if_possible(&problem, &briefly(LITTLE)) {
            match outcome.fits {
                Fits::Yes => assert!(oracle::fits(&problem)),
                Fits::No(blame) => assert!(!oracle::fits(&problem), "it fits, but {blame:?}"),
                Fits::Unknown => {}
            }
        }
    }
}
