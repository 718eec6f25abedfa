//! The judge is judged: plans broken in one way are named for it, and random plans are judged as by a second
//! validator that looks at every event and every pair.

use crate::common;
use crate::common::oracle::faults;
use crate::common::problems::{EVERYTHING, MIXED, by_seed, mixed, problems, with_spill};
use crate::common::{at, briefly, buffer, plan_of, property, solved};
use lowtide_core::random::Random;
use lowtide_core::{
    Align, BufferIndex, Bytes, Class, Gap, Lifetime, Placement, Plan, Pool, PoolIndex, Problem, Window,
};
use lowtide_plan::{Verdict, validate};
use proptest::collection::vec;
use proptest::prelude::*;

/// A plan with the heights that its offsets make, and no claim about a bound.
fn plan(problem: &Problem, offsets: &[u64]) -> Plan {
    let first = PoolIndex::default();
    stated(problem, offsets.iter().map(|&offset| Placement { pool: first, offset: Bytes::new(offset) }).collect())
}

fn stated(problem: &Problem, placements: Vec<Placement>) -> Plan {
    let mut heights = vec![Bytes::ZERO; problem.pools.len()];
    for (placement, buffer) in placements.iter().zip(&problem.buffers) {
        if let Some(height) = heights.get_mut(placement.pool.get()) {
            *height = (placement.offset + buffer.size).max(*height);
        }
    }
    Plan { placements, heights, lower_bound: Bytes::ZERO, proved: false }
}

/// The same plan with one buffer moved, and the heights that follow.
fn moved(problem: &Problem, plan: &Plan, buffer: BufferIndex, placement: Placement) -> Plan {
    let mut placements = plan.placements.clone();
    placements[buffer.get()] = placement;
    stated(problem, placements)
}

/// `a` and `b` of eight bytes, alive together; `c` after them.
fn three() -> Problem {
    Problem::new(vec![buffer("a", 0, 4, 8), buffer("b", 2, 6, 8), buffer("c", 6, 9, 8)])
}

#[test]
fn buffers_that_never_meet_may_lie_over_each_other() {
    assert_eq!(validate(&three(), &plan(&three(), &[0, 8, 0])), Verdict::Valid);
}

#[test]
fn a_buffer_shifted_by_one_byte_into_its_neighbour_overlaps_it() {
    assert_eq!(validate(&three(), &plan(&three(), &[1, 8, 0])), Verdict::Overlap(at(0), at(1)));
    assert_eq!(validate(&three(), &plan(&three(), &[8, 1, 0])), Verdict::Overlap(at(0), at(1)));
}

#[test]
fn an_overlap_is_found_below_buffers_that_share() {
    // `d` meets the long `a`, with two sharers of other addresses in between.
    let mut problem =
        Problem::new(vec![buffer("a", 0, 9, 10), buffer("b", 1, 9, 2), buffer("c", 2, 9, 2), buffer("d", 3, 9, 4)]);
    problem.may_share = vec![(at(0), at(1)), (at(1), at(2)), (at(0), at(2))];
    assert_eq!(validate(&problem, &plan(&problem, &[0, 0, 0, 6])), Verdict::Overlap(at(0), at(3)));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 0, 0, 10])), Verdict::Valid);
}

#[test]
fn a_misaligned_offset_is_named() {
    let mut problem = three();
    problem.buffers[1].align = Align::new(3).unwrap();
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 0])), Verdict::Misaligned(at(1)));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 9, 0])), Verdict::Valid);
}

#[test]
fn a_pinned_buffer_that_moved_is_named() {
    let mut problem = three();
    problem.buffers[2].pin = Some(Bytes::new(4));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 0])), Verdict::Moved(at(2)));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 4])), Verdict::Valid);
}

#[test]
fn a_pinned_buffer_may_not_spill() {
    let mut problem = with_spill(three(), 16);
    problem.buffers[2].pin = Some(Bytes::ZERO);
    let right = plan(&problem, &[0, 8, 0]);
    assert_eq!(validate(&problem, &right), Verdict::Valid);
    let spilled = Placement { pool: PoolIndex::new(1), offset: Bytes::ZERO };
    assert_eq!(validate(&problem, &moved(&problem, &right, at(2), spilled)), Verdict::Moved(at(2)));
}

#[test]
fn aliases_at_two_addresses_are_named() {
    let mut problem = three();
    problem.aliases = vec![vec![at(0), at(1), at(2)]];
    assert_eq!(validate(&problem, &plan(&problem, &[0, 0, 0])), Verdict::Valid);
    assert_eq!(validate(&problem, &plan(&problem, &[0, 0, 8])), Verdict::AliasesApart(at(1), at(2)));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 8])), Verdict::AliasesApart(at(0), at(1)));
}

#[test]
fn a_group_with_a_space_or_in_another_order_is_not_contiguous() {
    let mut problem = three();
    problem.contiguous = vec![vec![at(2), at(0), at(1)]];
    assert_eq!(validate(&problem, &plan(&problem, &[8, 16, 0])), Verdict::Valid);
    assert_eq!(validate(&problem, &plan(&problem, &[8, 17, 0])), Verdict::NotContiguous(at(0), at(1)));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 16])), Verdict::NotContiguous(at(2), at(0)));
    problem.buffers[1].align = Align::new(5).unwrap();
    assert_eq!(validate(&problem, &plan(&problem, &[8, 20, 0])), Verdict::Valid);
    assert_eq!(validate(&problem, &plan(&problem, &[8, 25, 0])), Verdict::NotContiguous(at(0), at(1)));
}

#[test]
fn a_pair_may_share_one_address_but_not_part_of_it() {
    let mut problem = three();
    problem.may_share = vec![(at(1), at(0))];
    assert_eq!(validate(&problem, &plan(&problem, &[0, 0, 0])), Verdict::Valid);
    assert_eq!(validate(&problem, &plan(&problem, &[0, 4, 0])), Verdict::Overlap(at(0), at(1)));
}

#[test]
fn a_gap_makes_room_except_in_its_window() {
    let mut problem = Problem::new(vec![buffer("a", 0, 9, 8), buffer("b", 3, 6, 4)]);
    let lifetime = Lifetime { lower: 3, upper: 6 };
    problem.buffers[0].gaps = vec![Gap { lifetime, window: None }];
    assert_eq!(validate(&problem, &plan(&problem, &[0, 2])), Verdict::Valid);
    let window = Some(Window { lower: Bytes::new(6), upper: Bytes::new(8) });
    problem.buffers[0].gaps = vec![Gap { lifetime, window }];
    assert_eq!(validate(&problem, &plan(&problem, &[0, 2])), Verdict::Valid);
    assert_eq!(validate(&problem, &plan(&problem, &[0, 3])), Verdict::Overlap(at(0), at(1)));
    problem.buffers[1].lifetime.upper = 7;
    assert_eq!(validate(&problem, &plan(&problem, &[0, 2])), Verdict::Overlap(at(0), at(1)));
}

#[test]
fn a_buffer_in_a_pool_that_its_own_does_not_spill_to_is_named() {
    let mut problem = with_spill(three(), 16);
    problem.buffers[0].pool = PoolIndex::new(1);
    let far = |pool| Placement { pool: PoolIndex::new(pool), offset: Bytes::ZERO };
    let placements = [far(1), far(0), far(0)].to_vec();
    let right = stated(&problem, placements);
    assert_eq!(validate(&problem, &right), Verdict::Valid);
    assert_eq!(validate(&problem, &moved(&problem, &right, at(0), far(2))), Verdict::Valid);
    assert_eq!(validate(&problem, &moved(&problem, &right, at(0), far(0))), Verdict::WrongPool(at(0)));
    assert_eq!(validate(&problem, &moved(&problem, &right, at(1), far(3))), Verdict::WrongPool(at(1)));
}

#[test]
fn a_transient_buffer_below_a_persistent_one_is_named_even_if_they_never_meet() {
    let mut problem = three();
    problem.buffers[2].class = Class::Persistent;
    let mixed = validate(&problem, &plan(&problem, &[0, 8, 0]));
    assert!(matches!(mixed, Verdict::ClassesMixed(persistent, _) if persistent == at(2)), "{mixed:?}");
    assert_eq!(validate(&problem, &plan(&problem, &[8, 16, 0])), Verdict::Valid);
    problem.buffers[0].pin = Some(Bytes::ZERO);
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 0])), Verdict::Valid, "what is pinned lies anywhere");
}

#[test]
fn a_height_that_is_not_the_highest_end_is_named_with_both() {
    for stated in [15, 17] {
        let mut plan = plan(&three(), &[0, 8, 0]);
        plan.heights[0] = Bytes::new(stated);
        let wrong =
            Verdict::WrongHeight { pool: PoolIndex::default(), stated: Bytes::new(stated), actual: Bytes::new(16) };
        assert_eq!(validate(&three(), &plan), wrong);
    }
}

#[test]
fn a_bound_above_the_peak_is_a_false_claim() {
    let mut plan = plan(&three(), &[0, 8, 0]);
    plan.lower_bound = Bytes::new(16);
    assert_eq!(validate(&three(), &plan), Verdict::Valid);
    plan.lower_bound = Bytes::new(17);
    assert_eq!(validate(&three(), &plan), Verdict::BelowBound);
}

#[test]
fn a_pool_over_its_capacity_is_named_only_when_nothing_else_is_wrong() {
    let mut problem = three();
    problem.pools[0].capacity = Some(Bytes::new(15));
    assert_eq!(validate(&problem, &plan(&problem, &[0, 8, 0])), Verdict::OverCapacity(PoolIndex::default()));
    assert_eq!(validate(&problem, &plan(&problem, &[1, 8, 0])), Verdict::Overlap(at(0), at(1)));
}

#[test]
fn a_plan_for_another_number_of_buffers_or_pools_is_named() {
    let right = plan(&three(), &[0, 8, 0]);
    let mut short = right.clone();
    short.placements.pop();
    assert_eq!(validate(&three(), &short), Verdict::WrongCount);
    let mut wide = right;
    wide.heights.push(Bytes::ZERO);
    assert_eq!(validate(&three(), &wide), Verdict::WrongCount);
}

#[test]
fn offsets_at_the_end_of_the_range_are_judged_without_a_fault() {
    for offset in [u64::MAX, u64::MAX - 1, u64::MAX - 8, 1 << 63] {
        for buffer in 0..3 {
            let mut plan = plan(&three(), &[0, 8, 0]);
            plan.placements[buffer].offset = Bytes::new(offset);
            let verdict = validate(&three(), &plan);
            assert_ne!(verdict, Verdict::Valid, "{offset} for {buffer}");
        }
    }
}

#[test]
fn every_verdict_names_its_buffers_in_words() {
    let words = Verdict::Overlap(at(0), at(1)).describe(&three()).to_string();
    assert!(words.contains("`a`") && words.contains("`b`"), "{words}");
    assert_eq!(Verdict::Overlap(at(0), at(1)).buffers(), [at(0), at(1)]);
}

/// Breaks a plan that holds, once in every way that applies, and expects the fault to be found.
fn break_in_every_way(problem: &Problem, right: &Plan, random: &mut Random, what: &str) {
    let count = problem.buffers.len() as u64;
    let expect = |broken: &Plan, fits: &dyn Fn(Verdict) -> bool, how: &str| {
        let verdict = validate(problem, broken);
        assert!(fits(verdict), "{what}, {how}: {verdict:?}");
        assert!(faults(problem, broken).contains(&verdict), "{what}, {how}: {verdict:?}");
    };
    for _ in 0..20 {
        let index = at(random.below(count) as usize);
        let (shape, place) = (problem.buffer(index), right.placement(index));
        if shape.align.get() > 1 {
            let broken = moved(problem, right, index, Placement { offset: place.offset + Bytes::new(1), ..place });
            expect(&broken, &|verdict| verdict == Verdict::Misaligned(index), "misaligned");
        }
        if shape.pin.is_some() {
            let up = Bytes::new(shape.align.get());
            let broken = moved(problem, right, index, Placement { offset: place.offset + up, ..place });
            expect(&broken, &|verdict| verdict == Verdict::Moved(index), "off its pin");
        }
        // Onto another that is alive with it and is no kin.
        let other = at(random.below(count) as usize);
        let kin = |sets: &[Vec<BufferIndex>]| sets.iter().flatten().any(|&member| member == index || member == other);
        let plain = |buffer: BufferIndex| {
            let shape = problem.buffer(buffer);
            shape.gaps.is_empty() && shape.size > Bytes::ZERO && shape.pin.is_none()
        };
        let shares = problem.may_share.iter().any(|&(a, b)| [a, b].contains(&index) || [a, b].contains(&other));
        let meets = shape.lifetime.overlaps(problem.buffer(other).lifetime);
        let same = right.placement(other).pool == place.pool;
        if index != other && plain(index) && plain(other) && meets && same && !shares {
            let onto = right.placement(other).offset.get() / shape.align.get() * shape.align.get();
            let reaches = onto + shape.size.get() > right.placement(other).offset.get();
            if reaches && !kin(&problem.aliases) && !kin(&problem.contiguous) {
                let broken = moved(problem, right, index, Placement { offset: Bytes::new(onto), ..place });
                expect(&broken, &|verdict| matches!(verdict, Verdict::Overlap(..)), "over another");
            }
        }
    }
    for (number, sets) in [&problem.aliases, &problem.contiguous].into_iter().enumerate() {
        for set in sets {
            let last = set[set.len() - 1];
            let place = right.placement(last);
            let up = Bytes::new(problem.buffer(last).align.get() * 7);
            let broken = moved(problem, right, last, Placement { offset: place.offset + up, ..place });
            let fits = |verdict: Verdict| {
                let pair = [set[set.len() - 2], last];
                match verdict {
                    Verdict::AliasesApart(a, b) => number == 0 && [a, b] == pair,
                    Verdict::NotContiguous(a, b) => number == 1 && [a, b] == pair,
                    _ => false,
                }
            };
            expect(&broken, &fits, "a tie broken");
        }
    }
    let mut tall = right.clone();
    tall.heights[0] += Bytes::new(1);
    expect(&tall, &|verdict| matches!(verdict, Verdict::WrongHeight { .. }), "a height that is not");
    let mut boastful = right.clone();
    boastful.lower_bound = boastful.peak() + Bytes::new(1);
    expect(&boastful, &|verdict| verdict == Verdict::BelowBound, "a bound above the peak");
}

#[test]
fn plans_with_all_relations_are_valid_until_they_are_broken() {
    for seed in 0..40 {
        let problem = mixed(seed, 30);
        let outcome = solved(&problem, &briefly(5_000));
        break_in_every_way(&problem, plan_of(&outcome), &mut Random::new(seed), &format!("seed {seed}"));
    }
}

#[test]
fn plans_with_spills_are_valid_until_they_are_broken() {
    for seed in 0..20 {
        let mut problem = with_spill(mixed(seed, 30), 250);
        for buffer in &mut problem.buffers {
            buffer.pin = None;
        }
        let outcome = solved(&problem, &briefly(5_000));
        let plan = plan_of(&outcome);
        break_in_every_way(&problem, plan, &mut Random::new(seed), &format!("seed {seed}"));
        if let Some(&spilled) = outcome.spilled.first() {
            let mut missing = problem.clone();
            missing.pools[0].spill = None;
            let verdict = validate(&missing, plan);
            assert_eq!(verdict, Verdict::WrongPool(spilled), "seed {seed}");
        }
    }
}

/// What the judge says is among all faults, single buffers come first and capacities last.
fn assert_agreement(problem: &Problem, plan: &Plan) {
    let (verdict, faults) = (validate(problem, plan), faults(problem, plan));
    if verdict == Verdict::Valid {
        assert_eq!(faults, []);
        return;
    }
    assert!(faults.contains(&verdict), "{verdict:?} is none of {faults:?}");
    let single = |fault: &Verdict| fault.buffers().len() == 1;
    assert!(single(&verdict) || !faults.iter().any(single), "{verdict:?} before {faults:?}");
    let over = |fault: &Verdict| matches!(fault, Verdict::OverCapacity(_));
    assert!(!over(&verdict) || faults.iter().all(over), "{verdict:?} before {faults:?}");
}

proptest! {
    #![proptest_config(property(3_000))]

    #[test]
    fn random_plans_are_judged_as_event_by_event(
        problem in problems(common::problems::Features { count: 8, ..EVERYTHING }),
        places in vec((0..12_u64, 0..9_usize), 8),
        faithful in vec(any::<bool>(), 3),
        capacity in 4..20_u64,
    ) {
        let mut problem = problem;
        problem.pools = vec![
            Pool { capacity: Some(Bytes::new(capacity)), spill: Some(PoolIndex::new(1)), ..Pool::unlimited("fast") },
            Pool::unlimited("slow"),
        ];
        let mut placements: Vec<Placement> = problem.buffers.iter().zip(&places).map(|(buffer, &(offset, pool))| {
            let offset = offset / buffer.align.get() * buffer.align.get();
            Placement { pool: PoolIndex::new(usize::from(pool == 0)), offset: Bytes::new(offset) }
        }).collect();
        // Some rules are kept, so that the others are reached.
        if faithful[0] {
            for (placement, buffer) in placements.iter_mut().zip(&problem.buffers) {
                if let Some(offset) = buffer.pin {
                    *placement = Placement { pool: buffer.pool, offset };
                }
            }
        }
        if faithful[1] {
            for set in &problem.aliases {
                for member in set {
                    placements[member.get()] = placements[set[0].get()];
                }
            }
        }
        if faithful[2] {
            for &(a, b) in &problem.may_share {
                placements[b.get()] = placements[a.get()];
            }
        }
        assert_agreement(&problem, &stated(&problem, placements));
    }
}

#[test]
fn plans_with_one_buffer_moved_are_judged_as_event_by_event() {
    for seed in 0..60 {
        let problem = if seed % 2 == 0 { mixed(seed, 24) } else { by_seed(seed, 24, 20, MIXED_WITHOUT_TIES) };
        let outcome = solved(&problem, &briefly(5_000));
        let random = &mut Random::new(seed);
        for _ in 0..50 {
            let index = at(random.below(24) as usize);
            let align = problem.buffer(index).align.get();
            let offset = Bytes::new(random.below(600 / align) * align);
            let placement = Placement { offset, ..plan_of(&outcome).placement(index) };
            assert_agreement(&problem, &moved(&problem, plan_of(&outcome), index, placement));
        }
    }
}

const MIXED_WITHOUT_TIES: common::problems::Features =
    common::problems::Features { aliases: false, contiguous: false, classes: false, ..MIXED };
