//! The settings that users of `DeepRec` know.
use lowtide_learn::LearnerOptions;

use crate::player::{Player, at_once, chain, lane, sizes};

fn read(settings: &[(&str, &str)]) -> Result<LearnerOptions, String> {
    let lookup = |name: &str| settings.iter().find(|setting| setting.0 == name).map(|setting| setting.1.to_owned());
    LearnerOptions::from_settings(lookup).map_err(|error| error.to_string())
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
    assert_eq!(read(&[]), Ok(LearnerOptions::default()));
    assert_eq!(read(&[("MAX_STATISTIC_STEP", "100")]), Ok(LearnerOptions::from_statistic(100, 10, 100)));
    assert_eq!(read(&[("START_STATISTIC_STEP", "7")]), Ok(LearnerOptions::from_statistic(7, 10, 100)));
    assert_eq!(read(&[("STABLE_STATISTIC_STEP", "3")]), Ok(LearnerOptions::from_statistic(100, 3, 100)));
    let off = LearnerOptions { enabled: false, ..LearnerOptions::from_statistic(100, 10, 100) };
    assert_eq!(read(&[("ENABLE_MEMORY_OPTIMIZATION", "0")]), Ok(off));
}

#[test]
fn a_plan_is_served_after_stable_steps_or_the_most_steps() {
    assert_eq!(served(LearnerOptions::from_statistic(100, 10, 100), 1000), (111, 110), "one and ten like it");
    assert_eq!(served(LearnerOptions::from_statistic(5, 3, 100), 1000), (9, 8));
    assert_eq!(served(LearnerOptions::from_statistic(5, 3, 20), 2), (25, 24), "never stable: twenty are collected");
    assert_eq!(served(at_once(), 1000), (2, 1));
}

#[test]
fn collecting_ends_when_a_plan_is_served() {
    let mut player = Player::new(LearnerOptions { background: false, ..LearnerOptions::from_statistic(1, 2, 10) });
    for step in 0..10 {
        assert_eq!(player.learner.watching(), step < 3);
        player.step(&chain(lane(0), 0, &sizes(10, 1)));
    }
}

#[test]
fn a_value_out_of_range_is_named() {
    let refused = |name, value| read(&[(name, value)]).unwrap_err();
    assert_eq!(
        refused("STABLE_STATISTIC_STEP", "0"),
        "`STABLE_STATISTIC_STEP` cannot be `0`: it is a whole number from 1 to 2^64-1"
    );
    assert_eq!(
        refused("START_STATISTIC_STEP", "-1"),
        "`START_STATISTIC_STEP` cannot be `-1`: it is a whole number from 0 to 2^64-1"
    );
    assert_eq!(
        refused("ENABLE_MEMORY_OPTIMIZATION", "maybe"),
        "`ENABLE_MEMORY_OPTIMIZATION` cannot be `maybe`: it is `1` or `true`, `0` or `false`"
    );
    assert!(refused("MAX_STATISTIC_STEP", "1e3").contains("`1e3`"));
}
