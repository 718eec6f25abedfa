//! The settings that users of `DeepRec` know.

use lowtide_core::options::{Options, Scope};
use lowtide_core::{Align, Bytes};
use lowtide_learn::LearnerOptions;

use crate::player::{Player, at_once, chain, lane, sizes};

fn read(settings: &[(&str, &str)]) -> LearnerOptions {
    let lookup = |name: &str| settings.iter().find(|setting| setting.0 == name).map(|setting| setting.1.into());
    let (options, errors) = Options::from_variables(&[Scope::Learning], lookup);
    assert_eq!(errors, []);
    LearnerOptions::default().with(&options)
}

/// Collects from step `start` on; serves a plan once `stable` steps in a row were met by it or `max` steps were collected, and
/// then collects no more.
fn from_statistic(start: u64, stable: u64, max: u64) -> LearnerOptions {
    LearnerOptions { start, stable, max, relearn: false, ..LearnerOptions::default() }
}

/// The first step, counted from one, that is served by a plan, and the last that is watched before it.
fn served(options: LearnerOptions, change_each: u64) -> (u64, u64) {
    let mut player = Player::new(LearnerOptions { background: false, ..options });
    let mut watched = 0;
    for step in 1..300 {
        if player.plan.is_some() {
            return (step, watched);
        }
        if player.learner.watching() {
            watched = step;
        }
        player.step(&chain(lane(0), 0, &sizes(10, step / change_each)));
    }
    panic!("no plan was served");
}

#[test]
fn their_defaults_hold_as_soon_as_one_of_them_is_named() {
    assert_eq!(read(&[]), LearnerOptions::default());
    assert_eq!(read(&[("MAX_STATISTIC_STEP", "100")]), from_statistic(100, 10, 100));
    assert_eq!(read(&[("START_STATISTIC_STEP", "7")]), from_statistic(7, 10, 100));
    assert_eq!(read(&[("STABLE_STATISTIC_STEP", "3")]), from_statistic(100, 3, 100));
    let off = LearnerOptions { enabled: false, ..from_statistic(100, 10, 100) };
    assert_eq!(read(&[("ENABLE_MEMORY_OPTIMIZATION", "0")]), off);
}

#[test]
fn a_plan_is_served_after_stable_steps_or_the_most_steps() {
    assert_eq!(served(from_statistic(100, 10, 100), 1000), (111, 110), "one and ten like it");
    assert_eq!(served(from_statistic(5, 3, 100), 1000), (9, 8));
    assert_eq!(served(from_statistic(5, 3, 20), 2), (25, 24), "never stable: twenty are collected");
    assert_eq!(served(at_once(), 1000), (2, 1));
}

#[test]
fn collecting_ends_when_a_plan_is_served() {
    let mut player = Player::new(LearnerOptions { background: false, ..from_statistic(1, 2, 10) });
    for step in 0..10 {
        assert_eq!(player.learner.watching(), step < 3);
        player.step(&chain(lane(0), 0, &sizes(10, 1)));
    }
}

#[test]
fn a_block_of_a_step_that_was_forgotten_ends_none_of_the_next() {
    let mut player = Player::new(at_once());
    let lane = lane(0);
    let (bytes, align) = (Bytes::new(4096), Align::new(512).unwrap());
    let forgotten = player.learner.alloc(lane, bytes, align);
    player.learner.forget_step();
    let tickets: Vec<_> = (0..4).map(|_| player.learner.alloc(lane, bytes, align)).collect();
    player.learner.free(forgotten);
    assert!(tickets.iter().all(|&ticket| ticket != forgotten));
}
