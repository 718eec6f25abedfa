//! What is learned from steps, and when it is served.
use lowtide_core::Bytes;
use lowtide_core::random::Random;
use lowtide_learn::{Learner, LearnerOptions, Served};

use crate::player::{Op, Player, at_once, chain, lane, sizes};

fn all(served: Served) -> bool {
    served.misses == 0 && served.hits > 0
}

/// Gives the allocations of a step names of their own, so that what lives on does not clash.
fn renamed(ops: &[Op], step: u64) -> Vec<Op> {
    ops.iter()
        .map(|&op| match op {
            Op::Alloc(lane, name, bytes) => Op::Alloc(lane, name + step * 1_000_000, bytes),
            Op::Free(name) => Op::Free(name + step * 1_000_000),
        })
        .collect()
}

/// Puts two lanes together in an order that `seed` decides; each keeps its own.
fn interleaved(a: &[Op], b: &[Op], seed: u64) -> Vec<Op> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut random = Random::new(seed);
    let mut ops = Vec::new();
    while a.peek().is_some() || b.peek().is_some() {
        let turn = random.one_in(2);
        let first = b.peek().is_none() || a.peek().is_some() && turn;
        ops.extend(if first { a.next() } else { b.next() });
    }
    ops
}

#[test]
fn the_second_step_is_served_by_the_plan_of_the_first() {
    let mut player = Player::new(at_once());
    let step = chain(lane(0), 0, &sizes(20, 1));
    assert!(player.learner.watching());
    player.step(&step);
    let plan = player.plan.clone().unwrap();
    assert_eq!(plan.height, plan.bound);
    assert!(plan.proved);
    assert!(all(player.step(&step)));
    assert!(all(player.step(&step)));
    assert!(!player.learner.watching(), "nothing is left to learn");
    assert!(all(player.step(&step)));
    assert_eq!(player.plan.unwrap().signature, plan.signature, "it was not planned again");
}

#[test]
fn what_outlives_the_step_is_not_planned() {
    let mut player = Player::new(at_once());
    for step in 0..4 {
        let mut ops = vec![Op::Alloc(lane(0), 900_000 + step, 512 * 999)];
        ops.extend(chain(lane(0), 0, &sizes(10, 2)));
        player.step(&ops);
        let plan = player.plan.as_ref().unwrap();
        assert_eq!(plan.slots[0].offset, None);
        assert!(plan.slots[1..].iter().all(|slot| slot.offset.is_some()));
    }
}

#[test]
fn set_up_is_no_part_of_the_steps_after_it() {
    let mut player = Player::new(at_once());
    let step = chain(lane(0), 0, &sizes(20, 3));
    let mut first: Vec<Op> = (0..200).map(|name| Op::Alloc(lane(0), 500_000 + name, 512 * (name % 7 + 1))).collect();
    first.extend(&step);
    player.step(&first);
    let second = player.step(&step);
    assert!(second.misses <= 4, "the place was not found after the set-up: {second:?}");
    assert!(all(player.step(&step)));
    assert_eq!(player.plan.unwrap().slots.len(), 40);
}

#[test]
fn blocks_that_live_into_the_next_step_are_planned_once_that_is_known() {
    let mut player = Player::new(at_once());
    let step = |number: u64| {
        let mut ops = Vec::new();
        if number > 0 {
            ops.extend([Op::Free(800_000 + number - 1)]);
        }
        ops.extend(chain(lane(0), 0, &sizes(10, 4)));
        ops.push(Op::Alloc(lane(0), 800_000 + number, 512 * 4000));
        ops.extend(chain(lane(0), 1000, &sizes(10, 5)));
        ops
    };
    player.step(&step(0));
    assert_eq!(player.plan.as_ref().unwrap().slots[20].offset, None);
    player.step(&step(1));
    let plan = player.plan.clone().unwrap();
    assert!(plan.slots[20].offset.is_some(), "seen to be freed in the next step");
    assert_eq!(plan.height, plan.bound);
    for number in 2..6 {
        assert!(all(player.step(&step(number))));
    }
}

#[test]
fn a_block_that_outlives_its_own_next_turn_is_not_planned() {
    let mut player = Player::new(at_once());
    for number in 0..5 {
        let mut ops = chain(lane(0), 0, &sizes(10, 4));
        ops.push(Op::Alloc(lane(0), 800_000 + number, 512 * 4000));
        ops.extend((number > 0).then(|| Op::Free(800_000 + number - 1)));
        player.step(&ops);
        assert_eq!(player.plan.as_ref().unwrap().slots[20].offset, None);
    }
}

#[test]
fn two_threads_that_interleave_differently_each_step_hit() {
    let mut player = Player::new(at_once());
    let (a, b) = (chain(lane(1), 0, &sizes(50, 1)), chain(lane(2), 1000, &sizes(70, 2)));
    let mut missed = Vec::new();
    for step in 0..30 {
        missed.push(player.step(&interleaved(&a, &b, step)).misses);
    }
    assert!(missed[2..].iter().all(|&missed| missed <= 12), "fewer than one in twenty: {missed:?}");
    assert_eq!(missed[15..].iter().sum::<u64>(), 0, "{missed:?}");
    let plan = player.plan.unwrap();
    let alone = |ops: &[Op]| {
        let mut player = Player::new(at_once());
        player.step(ops);
        player.plan.unwrap().height.get()
    };
    assert!(plan.height.get() <= alone(&a) + alone(&b), "racing lanes need no more than both by themselves");
}

#[test]
fn threads_that_meet_share_memory_between_their_meetings() {
    let mut player = Player::new(at_once());
    let phase = |number: u64, seed: u64| {
        let (a, b) = (sizes(20, 10 + number), sizes(20, 20 + number));
        interleaved(&chain(lane(1), number * 100, &a), &chain(lane(2), 5000 + number * 100, &b), seed)
    };
    let mut last = Served::default();
    for step in 0..20 {
        let ops: Vec<Op> = (0..4).flat_map(|number| phase(number, step * 4 + number)).collect();
        last = player.step(&ops);
    }
    assert!(all(last), "{last:?}");
    let plan = player.plan.unwrap();
    let largest = 2 * 5 * 251 * 1024 + 2 * 251 * 1024;
    assert!(plan.height <= Bytes::new(largest), "{} is more than one phase can need", plan.height);
}

#[test]
fn train_and_eval_in_turn_have_a_plan_each() {
    for (trains, evals) in [(1, 1), (2, 1), (5, 2)] {
        let mut player = Player::new(at_once());
        let (train, eval) = (chain(lane(0), 0, &sizes(40, 1)), chain(lane(0), 0, &sizes(30, 7)));
        let mut missed = Vec::new();
        for step in 0..60 {
            let ops = if step % (trains + evals) < trains { &train } else { &eval };
            missed.push(player.step(ops).misses);
        }
        assert_eq!(player.learner.candidates().len(), 2);
        assert_eq!(missed[20..].iter().sum::<u64>(), 0, "{trains} and {evals}: {missed:?}");
        assert_eq!(player.dropped, 0);
    }
}

#[test]
fn two_graphs_at_once_are_one_step() {
    let mut player = Player::new(at_once());
    let mut missed = Vec::new();
    for step in 0..30 {
        let rounds = |lane, graph: &[u64], name: u64, times: u64| -> Vec<Op> {
            (0..times).flat_map(|round| chain(lane, name + round * 100, graph)).collect()
        };
        let a = rounds(lane(1), &sizes(5, 1), 0, 3);
        let b = rounds(lane(2), &sizes(4, 2), 5000, 7);
        missed.push(player.step(&interleaved(&a, &b, step)).misses);
    }
    assert!(missed[12..].iter().sum::<u64>() < 10, "{missed:?}");
}

#[test]
fn a_step_longer_by_one_allocation_hits_before_and_after_it() {
    let layers = sizes(50, 1);
    let step = chain(lane(0), 0, &layers);
    for at in [0, 3, 77, 199] {
        for bytes in [12_345, layers[0] * 1024, layers[20] * 1024, layers[49] * 4096] {
            let mut player = Player::new(at_once());
            for _ in 0..4 {
                player.step(&step);
            }
            let before = player.plan.clone().unwrap();
            let mut longer = step.clone();
            longer.splice(at..at, [Op::Alloc(lane(0), 700_000, bytes), Op::Free(700_000)]);
            let served = player.step(&longer);
            assert!(served.misses <= 3 && served.hits >= 97, "at {at}, {bytes}: {served:?}");
            assert!(all(player.step(&step)));
            assert_eq!(player.plan.unwrap().signature, before.signature, "once is no reason to plan again");
        }
    }
}

#[test]
fn a_step_shorter_by_one_allocation_hits_before_and_after_it() {
    let step = chain(lane(0), 0, &sizes(50, 1));
    let mut player = Player::new(at_once());
    for _ in 0..4 {
        player.step(&step);
    }
    let gone = [Op::Alloc(lane(0), 51, sizes(50, 1)[25] * 4096), Op::Free(51)];
    let shorter: Vec<Op> = step.iter().copied().filter(|op| !gone.contains(op)).collect();
    assert_eq!(shorter.len(), step.len() - 2);
    assert!(all(player.step(&shorter)), "what is left out costs nothing");
}

#[test]
fn what_goes_on_being_longer_is_planned_again() {
    let step = chain(lane(0), 0, &sizes(50, 1));
    let mut player = Player::new(at_once());
    for _ in 0..5 {
        player.step(&step);
    }
    let mut longer = step.clone();
    longer.splice(77..77, [Op::Alloc(lane(0), 700_000, 512 * 321), Op::Free(700_000)]);
    let served: Vec<Served> = (0..20).map(|_| player.step(&longer)).collect();
    assert!(served[10..].iter().all(|&served| all(served)), "{served:?}");
    assert_eq!(player.learner.candidates().len(), 1, "it is the same pattern");
}

#[test]
fn other_shapes_are_planned_again() {
    let mut player = Player::new(at_once());
    for seed in 0..3 {
        let step = chain(lane(0), 0, &sizes(30, seed * 3));
        for _ in 0..2 {
            player.step(&step);
        }
        for _ in 0..5 {
            let served = player.step(&step);
            assert!(all(served), "noticed in its first step and planned after its second: {served:?}");
        }
    }
    assert_eq!(player.learner.candidates().len(), 3);
    let first = chain(lane(0), 0, &sizes(30, 0));
    player.step(&first);
    assert!(all(player.step(&first)), "its plan was kept");
}

#[test]
fn a_plan_that_keeps_missing_is_dropped() {
    let mut player = Player::new(at_once());
    let step = chain(lane(0), 0, &sizes(30, 1));
    for _ in 0..4 {
        player.step(&step);
    }
    assert!(!player.learner.watching());
    for seed in 10..30 {
        player.step(&chain(lane(0), 0, &sizes(30, seed)));
    }
    assert!(player.dropped > 0);
    assert!(player.learner.watching());
    assert!(player.learner.candidates().len() <= 8);
    player.step(&step);
    player.step(&step);
    assert!(all(player.step(&step)), "what recurs is served again");
}

#[test]
fn a_right_plan_that_is_never_served_well_is_dropped_too() {
    let mut learner = Learner::new(at_once());
    let mut dropped = 0;
    for _ in 0..40 {
        let ticket = learner.alloc(lane(0), Bytes::new(512), crate::player::align());
        learner.free(ticket);
        let served = if learner.likely_next().is_some() { Served { hits: 1, misses: 9 } } else { Served::default() };
        dropped += u32::from(matches!(learner.step(served), lowtide_learn::Advice::Drop));
    }
    assert!((2..6).contains(&dropped), "{dropped}: each time it is given longer to rest");
}

#[test]
fn fresh_threads_in_every_step_find_their_lanes() {
    let mut player = Player::new(at_once());
    let mut missed = Vec::new();
    for step in 0..20 {
        let (a, b) = (chain(lane(100 + step), 0, &sizes(20, 1)), chain(lane(200 + step), 1000, &sizes(20, 2)));
        let ops = if step % 2 == 0 { [a, b].concat() } else { [b, a].concat() };
        missed.push(player.step(&ops).misses);
    }
    assert_eq!(missed[4..].iter().sum::<u64>(), 0, "{missed:?}");
}

#[test]
fn plans_come_later_from_a_thread_of_their_own() {
    let mut player = Player::new(LearnerOptions::default());
    let step = chain(lane(0), 0, &sizes(30, 1));
    for _ in 0..1000 {
        player.step(&step);
        if player.plan.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(player.plan.is_some());
    assert!(all(player.step(&step)));
}

#[test]
fn nothing_is_learned_when_switched_off() {
    let mut player = Player::new(LearnerOptions { enabled: false, ..at_once() });
    let step = chain(lane(0), 0, &sizes(30, 1));
    for number in 0..5 {
        assert!(!player.learner.watching());
        player.step(&renamed(&step, number));
    }
    assert!(player.plan.is_none());
}

#[test]
fn a_step_too_long_to_record_is_left_alone() {
    let mut player = Player::new(LearnerOptions { longest: 50, ..at_once() });
    player.step(&chain(lane(0), 0, &sizes(30, 1)));
    assert!(player.plan.is_none());
    player.step(&chain(lane(0), 0, &sizes(25, 1)));
    assert!(player.plan.is_some());
}
