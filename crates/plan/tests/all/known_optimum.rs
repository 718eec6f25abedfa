//! Rectangles cut into buffers: the optimum is the rectangle's height, and the solver must find it and say so.

use crate::common;
use crate::common::cuts::{Cut, Style, cut, problem, scale};
use crate::common::{peak, plan_of, solved, work};
use lowtide_core::random::Random;
use lowtide_core::{Align, Bytes, Gap, Lifetime, Problem};
use lowtide_plan::Stopped;

const EVENTS: u64 = 40;
const HEIGHT: u64 = 1_000;
const WORK: u64 = 20_000_000;

/// The peak is `height`, and known to be the least.
fn assert_optimal(problem: &Problem, height: u64, what: &str) {
    let outcome = solved(problem, &work(WORK));
    let plan = plan_of(&outcome);
    assert_eq!((peak(&outcome), plan.lower_bound.get()), (height, height), "{what}: {:?}", outcome.stopped);
    assert!(plan.proved, "{what}");
    assert_eq!(outcome.stopped, Stopped::Proved, "{what}");
}

/// Runs a test for seeds of a style, each with a rectangle of more parts than the one before.
fn for_each_cut(style: Style, seeds: u64, most: usize, test: impl Fn(&[Cut], &mut Random, &str)) {
    for seed in 0..seeds {
        let random = &mut Random::new(seed);
        let count = 2 + (seed as usize * most) / seeds as usize;
        let cuts = cut(EVENTS, HEIGHT, count, style, random);
        test(&cuts, random, &format!("{style:?} seed {seed}, {} buffers", cuts.len()));
    }
}

#[test]
fn straight_cuts_are_put_together_again() {
    for_each_cut(Style::Guillotine, 60, 45, |cuts, _, what| assert_optimal(&problem(cuts), HEIGHT, what));
}

#[test]
fn pinwheels_are_put_together_again() {
    for_each_cut(Style::Pinwheel, 40, 39, |cuts, _, what| assert_optimal(&problem(cuts), HEIGHT, what));
}

#[test]
fn buffers_fill_the_gaps_of_others() {
    for_each_cut(Style::Holes, 60, 30, |cuts, _, what| assert_optimal(&problem(cuts), HEIGHT, what));
}

#[test]
fn a_common_alignment_does_not_raise_the_peak() {
    for_each_cut(Style::Guillotine, 40, 36, |cuts, random, what| {
        let align = [2, 48, 256][random.below(3) as usize];
        let mut problem = problem(cuts);
        scale(&mut problem, align);
        for buffer in &mut problem.buffers {
            buffer.align = Align::new(align).expect("not zero");
        }
        assert_optimal(&problem, HEIGHT * align, what);
    });
}

#[test]
fn sizes_that_alignment_rounds_up_still_fill_the_rectangle() {
    for_each_cut(Style::Guillotine, 40, 36, |cuts, random, what| {
        let align = 64;
        let mut problem = problem(cuts);
        scale(&mut problem, align);
        for (buffer, cut) in problem.buffers.iter_mut().zip(cuts) {
            buffer.align = Align::new(align).expect("not zero");
            // The first events stay full to the byte, and so does the top: nothing lower exists.
            if cut.lower > 0 && cut.top < HEIGHT {
                buffer.size = Bytes::new(buffer.size.get() - random.below(align));
            }
        }
        assert_optimal(&problem, HEIGHT * align, what);
    });
}

#[test]
fn pins_at_the_offsets_of_a_perfect_plan_leave_it_within_reach() {
    for style in [Style::Guillotine, Style::Pinwheel] {
        for_each_cut(style, 40, 26, |cuts, random, what| {
            let mut problem = problem(cuts);
            let odds = random.between(1, 6);
            for (buffer, cut) in problem.buffers.iter_mut().zip(cuts) {
                buffer.pin = random.one_in(odds).then(|| Bytes::new(cut.bottom));
            }
            assert_optimal(&problem, HEIGHT, what);
        });
    }
}

#[test]
fn pins_and_gaps_together_leave_a_perfect_plan_within_reach() {
    for_each_cut(Style::Holes, 40, 30, |cuts, random, what| {
        let mut problem = problem(cuts);
        for (buffer, cut) in problem.buffers.iter_mut().zip(cuts) {
            buffer.pin = random.one_in(4).then(|| Bytes::new(cut.bottom));
        }
        assert_optimal(&problem, HEIGHT, what);
    });
}

/// Small rectangles in numbers: `(events, bytes, offset, gap, pinned)` of a plan that ends at 30.
#[test]
fn a_buffer_with_a_gap_may_rest_on_what_is_not_placed_yet() {
    type Part = ((i64, i64), u64, u64, Option<(i64, i64)>, bool);
    let cases: [&[Part]; 2] = [
        &[
            ((2, 3), 15, 15, None, true),
            ((1, 4), 15, 15, Some((2, 3)), false),
            ((1, 3), 15, 0, None, false),
            ((3, 5), 2, 0, None, false),
        ],
        &[
            ((5, 12), 9, 0, None, false),
            ((7, 10), 21, 9, None, true),
            ((0, 3), 28, 2, None, false),
            ((4, 12), 21, 9, Some((7, 10)), false),
            ((0, 5), 2, 0, None, false),
        ],
    ];
    for (number, parts) in cases.into_iter().enumerate() {
        let shape = |(index, &((lower, upper), size, offset, gap, pinned)): (usize, &Part)| {
            let mut shape = common::buffer(&format!("b{index}"), lower, upper, size);
            let gap = gap.map(|(lower, upper)| Gap { lifetime: Lifetime { lower, upper }, window: None });
            shape.gaps.extend(gap);
            shape.pin = pinned.then_some(Bytes::new(offset));
            shape
        };
        assert_optimal(&Problem::new(parts.iter().enumerate().map(shape).collect()), 30, &format!("case {number}"));
    }
}

#[test]
fn many_small_rectangles_with_pins_and_gaps_are_put_together_again() {
    for seed in 0..1_000 {
        let random = &mut Random::new(seed);
        let cuts = cut(12, 30, 4 + seed as usize % 16, Style::Holes, random);
        let mut problem = problem(&cuts);
        for (buffer, cut) in problem.buffers.iter_mut().zip(&cuts) {
            buffer.pin = random.one_in(4).then(|| Bytes::new(cut.bottom));
        }
        assert_optimal(&problem, 30, &format!("seed {seed}"));
    }
}

#[test]
fn the_order_of_the_buffers_does_not_change_the_optimum() {
    let random = &mut Random::new(7);
    let mut cuts = cut(EVENTS, HEIGHT, 16, Style::Guillotine, random);
    for round in 0..20 {
        assert_optimal(&problem(&cuts), HEIGHT, &format!("order {round}"));
        random.shuffle(&mut cuts);
    }
}

#[test]
fn a_capacity_of_the_exact_height_fits_and_one_byte_less_does_not() {
    for_each_cut(Style::Guillotine, 20, 30, |cuts, _, what| {
        let mut problem = problem(cuts);
        problem.pools[0].capacity = Some(Bytes::new(HEIGHT));
        assert_eq!(solved(&problem, &work(WORK)).fits, lowtide_plan::Fits::Yes, "{what}");
        problem.pools[0].capacity = Some(Bytes::new(HEIGHT - 1));
        let fits = solved(&problem, &work(WORK)).fits;
        assert!(matches!(fits, lowtide_plan::Fits::No(_)), "{what}: {fits:?}");
    });
}
