//! Whatever a program does, nothing panics, and every plan holds for the step it was made for (the player checks that).

use std::time::Duration;

use lowtide_learn::LearnerOptions;
use proptest::prelude::*;

use crate::player::{Op, Player, at_once, lane};

/// A step as numbers: a lane and size to allocate, or which of the live blocks to free.
type Rough = Vec<(u8, u8, u8)>;

fn rough() -> impl Strategy<Value = Rough> {
    prop::collection::vec((0_u8..6, any::<u8>(), any::<u8>()), 0..60)
}

/// Turns numbers into a step, with `live` the names that are there.
fn ops(rough: &Rough, live: &mut Vec<u64>, next: &mut u64) -> Vec<Op> {
    let mut ops = Vec::new();
    for &(what, which, size) in rough {
        if what < 3 || live.is_empty() {
            ops.push(Op::Alloc(lane(u64::from(what % 2)), *next, 1 + u64::from(size % 8) * 700));
            live.push(*next);
            *next += 1;
        } else {
            ops.push(Op::Free(live.swap_remove(usize::from(which) % live.len())));
        }
    }
    ops
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_sequence_of_steps_is_learned_without_harm(
        kinds in prop::collection::vec(rough(), 1..4),
        steps in prop::collection::vec((0_usize..4, 0_usize..60, any::<bool>()), 1..25),
        patterns in 1_usize..4,
        stable in 0_u64..3,
    ) {
        let options = LearnerOptions { patterns, stable, time_limit: Duration::from_millis(3), ..at_once() };
        let mut player = Player::new(options);
        let (mut live, mut next) = (Vec::new(), 0);
        for (kind, at, changed) in steps {
            let mut step = kinds[kind % kinds.len()].clone();
            if changed && at < step.len() {
                step.remove(at);
            }
            player.step(&ops(&step, &mut live, &mut next));
            prop_assert!(player.learner.candidates().len() <= patterns);
            prop_assert_eq!(player.learner.warnings(), Vec::<String>::new());
        }
    }
}
