//! Verdicts on series of many kinds, with many seeds each.

use std::time::Duration;

use super::rates::Chance;
use super::*;
use crate::Rules;

const MIB: f64 = 1_048_576.0;

/// A run of 60 seconds with ten samples a second, its memory in MiB; judged as the verb does by default.
fn verdict(mut memory: impl FnMut(f64) -> f64) -> Judgement {
    let points: Vec<Point> =
        (0..600).map(|n| f64::from(n) / 10.0).map(|at| Point { at, value: memory(at).max(0.0) * MIB }).collect();
    Judge { rate: MIB / 60.0, growth: MIB, from: 30.0, settled: 15.0, shortest: 2.5, shortest_leak: 0.0 }.judge(&points)
}

/// Of 40 seeds, how many come to `expected`.
fn share(expected: Verdict, memory: impl Fn(f64, &mut Chance) -> f64) -> usize {
    let judged = (0..40).map(|seed| {
        let mut chance = Chance::new(seed);
        verdict(|at| memory(at, &mut chance)).verdict
    });
    judged.filter(|&verdict| verdict == expected).count()
}

#[test]
fn a_plateau_after_warming_up_is_stable() {
    assert_eq!(verdict(|_| 500.0).verdict, Verdict::Stable);
    assert_eq!(verdict(|at| 500.0 + (at * 50.0).min(400.0)).verdict, Verdict::Stable);
    for noise in [0.1, 1.0, 10.0, 100.0] {
        let stable = share(Verdict::Stable, |at, chance| 500.0 + (at * 20.0).min(400.0) + noise * chance.noise());
        assert!(stable >= 39, "{noise}: {stable}");
    }
}

#[test]
fn a_plateau_that_is_reached_in_the_second_half_is_no_leak() {
    for until in [32.0, 36.0, 45.0, 50.0] {
        let verdict = verdict(|at| 500.0 + 10.0 * at.min(until)).verdict;
        assert_ne!(verdict, Verdict::Leaking, "{until}");
    }
}

#[test]
fn linear_growth_leaks_and_its_slope_is_found() {
    for per_second in [0.05, 0.5, 5.0, 50.0] {
        let judgement = verdict(|at| 500.0 + per_second * at);
        assert_eq!(judgement.verdict, Verdict::Leaking, "{per_second}");
        let slope = judgement.trend.unwrap().slope / MIB;
        assert!((slope - per_second).abs() < 0.02 * per_second, "{slope}");
    }
    for noise in [0.1, 0.5, 2.0] {
        let leaking = share(Verdict::Leaking, |at, chance| 500.0 + 0.5 * at + noise * chance.noise());
        assert!(leaking >= 38, "{noise}: {leaking}");
    }
}

#[test]
fn a_leak_behind_a_steep_start_or_a_spike_is_found() {
    assert_eq!(verdict(|at| 500.0 + (at * 300.0).min(3000.0) + 0.5 * at).verdict, Verdict::Leaking);
    let spike = |at: f64| if (2.0..8.0).contains(&at) { 4000.0 } else { 900.0 + 0.5 * at };
    assert_eq!(verdict(spike).verdict, Verdict::Leaking);
}

#[test]
fn a_spike_hides_no_leak_whenever_it_comes() {
    for begin in [16.0, 20.0, 29.95, 35.0, 44.0, 52.0, 59.0] {
        for (length, height) in [(0.05, 100.0), (0.5, 80.0), (1.5, 300.0)] {
            let spike = |at: f64| 500.0 + at + if (begin..begin + length).contains(&at) { height } else { 0.0 };
            let judgement = verdict(spike);
            assert_eq!(judgement.verdict, Verdict::Leaking, "{begin} {length} {height} {judgement:?}");
        }
    }
    let many = |at: f64| 500.0 + at + if at > 15.0 && (at * 10.0) as u32 % 97 < 2 { 90.0 } else { 0.0 };
    assert_eq!(verdict(many).verdict, Verdict::Leaking);
}

#[test]
fn neither_does_a_spike_before_the_end_of_a_program() {
    for ending in [59.8, 59.0, 58.0] {
        let level = |at: f64| if at < ending { 20.0 + 2.0 * at } else { 5.0 };
        let judgement = verdict(|at| level(at) + if (45.0..45.5).contains(&at) { 90.0 } else { 0.0 });
        assert_eq!(judgement.verdict, Verdict::Leaking, "{ending} {judgement:?}");
    }
}

#[test]
fn a_rise_that_lasts_makes_no_leak_stable() {
    for begin in [33.0, 38.0, 42.0] {
        let long = |at: f64| 500.0 + at + if (begin..begin + 7.0).contains(&at) { 100.0 } else { 0.0 };
        assert_ne!(verdict(long).verdict, Verdict::Stable, "{begin}");
    }
}

#[test]
fn growth_too_slow_to_be_called_a_leak_is_stable() {
    assert_eq!(verdict(|at| 500.0 + 0.01 * at).verdict, Verdict::Stable);
    let all: Vec<Point> = (0..600).map(|n| Point { at: f64::from(n), value: f64::from(n) * MIB }).collect();
    let judge = Judge { rate: 2.0 * MIB, growth: MIB, from: 300.0, settled: 150.0, shortest: 0.0, shortest_leak: 0.0 };
    assert_eq!(judge.judge(&all).verdict, Verdict::Stable);
}

#[test]
fn a_sawtooth_that_returns_to_its_floor_is_stable_whatever_its_period() {
    for period in [0.3, 0.7, 1.0, 2.3, 3.7, 5.0, 7.9, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0] {
        for phase in 0..10 {
            let shift = f64::from(phase) / 10.0;
            let judgement = verdict(|at| 500.0 + 300.0 * (at / period + shift).fract());
            assert_ne!(judgement.verdict, Verdict::Leaking, "{period} {shift} {judgement:?}");
            if period < 5.0 {
                assert_eq!(judgement.verdict, Verdict::Stable, "{period} {shift} {judgement:?}");
            }
        }
    }
}

#[test]
fn a_sawtooth_whose_floor_rises_leaks() {
    for period in [0.5, 1.0, 2.0, 3.0, 4.0] {
        let judgement = verdict(|at| 500.0 + 2.0 * at + 100.0 * (at / period).fract());
        assert_eq!(judgement.verdict, Verdict::Leaking, "{period} {judgement:?}");
    }
}

#[test]
fn a_collector_that_runs_when_it_likes_is_judged_by_its_floor() {
    let collected = |leak: f64| {
        move |seed: u64| {
            let (mut chance, mut garbage, mut limit) = (Chance::new(seed), 0.0, 100.0);
            verdict(|at| {
                garbage += 8.0 * chance.next();
                if garbage > limit {
                    (garbage, limit) = (5.0 * chance.next(), 70.0 + 60.0 * chance.next());
                }
                400.0 + leak * at + garbage
            })
            .verdict
        }
    };
    let count = |leak, expected| (0..40).map(collected(leak)).filter(|&verdict| verdict == expected).count();
    assert!(count(0.0, Verdict::Stable) >= 39, "{}", count(0.0, Verdict::Stable));
    assert!(count(3.0, Verdict::Leaking) >= 38, "{}", count(3.0, Verdict::Leaking));
}

#[test]
fn growth_that_bends_is_warming() {
    for scale in [50.0, 300.0] {
        assert_eq!(verdict(|at| 500.0 + scale * (1.0 + at).ln()).verdict, Verdict::Warming, "{scale}");
        assert_eq!(verdict(|at| 500.0 + scale * at.sqrt()).verdict, Verdict::Warming, "{scale}");
    }
    for decay in [15.0, 30.0, 60.0] {
        let memory = |at: f64| 500.0 + 1000.0 * (1.0 - (-at / decay).exp());
        assert_eq!(verdict(memory).verdict, Verdict::Warming, "{decay}");
    }
    let warming = share(Verdict::Warming, |at, chance| 500.0 + 200.0 * (1.0 + at).ln() + 1.0 * chance.noise());
    assert!(warming >= 38, "{warming}");
}

#[test]
fn one_step_up_is_no_leak_and_a_staircase_is_one() {
    for at_step in [10.0, 29.0, 35.0, 45.0, 55.0, 59.0] {
        for noise in [0.0, 0.5] {
            let leaking = share(Verdict::Leaking, |at, chance| {
                500.0 + if at >= at_step { 200.0 } else { 0.0 } + noise * chance.noise()
            });
            assert!(leaking <= 1, "{at_step} {noise}: {leaking}");
        }
    }
    for stairs in [1.0, 2.0, 4.0] {
        let judgement = verdict(|at| 500.0 + 20.0 * (at / stairs).floor());
        assert_eq!(judgement.verdict, Verdict::Leaking, "{stairs} {judgement:?}");
    }
}

#[test]
fn shrinking_is_stable() {
    assert_eq!(verdict(|at| 900.0 - 5.0 * at).verdict, Verdict::Stable);
    assert_eq!(verdict(|at| if at < 45.0 { 900.0 } else { 300.0 }).verdict, Verdict::Stable);
}

#[test]
fn the_end_of_a_program_does_not_hide_its_leak() {
    for ending in [59.9, 59.0, 58.0] {
        let memory = |at: f64| if at < ending { 500.0 + 5.0 * at } else { 20.0 };
        assert_eq!(verdict(memory).verdict, Verdict::Leaking, "{ending}");
    }
}

#[test]
fn what_is_too_short_is_said_to_be() {
    let judge = Judge { rate: 1.0, growth: MIB, from: 0.0, settled: 0.0, shortest: 2.5, shortest_leak: 0.0 };
    for count in 0..20_u32 {
        let points: Vec<Point> =
            (0..count).map(|n| Point { at: f64::from(n) / 10.0, value: f64::from(n) * 100.0 * MIB }).collect();
        let judgement = judge.judge(&points);
        assert_eq!((judgement.verdict, judgement.reason), (Verdict::Warming, Reason::TooShort), "{count}");
    }
}

/// A run of so many seconds, judged as the verb does by default.
fn short(seconds: u32, memory: impl Fn(f64) -> f64) -> Judgement {
    let times = (0..seconds * 10).map(|n| f64::from(n) / 10.0);
    let points: Vec<Point> = times.map(|at| Point { at, value: memory(at) * MIB }).collect();
    Rules::default().over_time(0.0, f64::from(seconds)).judge(&points)
}

#[test]
fn steep_growth_up_to_the_end_of_a_short_run_is_growing_and_a_leak_after_half_a_minute() {
    for seconds in [6, 7, 10, 20, 28] {
        let judgement = short(seconds, |at| 20.0 + 28.0 * at);
        assert_eq!((judgement.verdict, judgement.reason), (Verdict::Growing, Reason::Early), "{seconds}");
        let trend = judgement.trend.unwrap();
        assert!((trend.slope / MIB - 28.0).abs() < 0.5 && trend.low / MIB > 27.0, "{trend:?}");
    }
    for seconds in [30, 60] {
        assert_eq!(short(seconds, |at| 20.0 + 28.0 * at).verdict, Verdict::Leaking, "{seconds}");
    }
}

#[test]
fn growth_of_a_short_run_that_a_collector_could_explain_is_warming() {
    for seconds in [6, 10, 20] {
        let [flat, slow] = [short(seconds, |at| 900.0 + 28.0 * at), short(seconds, |at| 5.0 + at)];
        for judgement in [flat, slow] {
            assert_eq!((judgement.verdict, judgement.reason), (Verdict::Warming, Reason::Early), "{seconds}");
        }
    }
}

#[test]
fn a_short_run_that_loads_and_then_works_is_not_growing() {
    for seconds in [6.0, 10.0, 20.0] {
        for share in [0.1, 0.3, 0.5, 0.7, 0.8] {
            let verdict = short(seconds as u32, |at| 20.0 + 100.0 * at.min(share * seconds)).verdict;
            assert!(verdict < Verdict::Growing, "{seconds} {share} {verdict:?}");
        }
    }
}

#[test]
fn with_a_warm_up_growth_is_a_leak_however_short() {
    let points: Vec<Point> =
        (0..70_u32).map(|n| Point { at: f64::from(n) / 10.0, value: f64::from(n) * MIB }).collect();
    let rules = Rules { warm_up: Some(Duration::from_secs(1)), ..Rules::default() };
    assert_eq!(rules.over_time(0.0, 7.0).judge(&points).verdict, Verdict::Leaking);
}

#[test]
fn odd_series_are_no_trouble() {
    let judge = Judge { rate: 0.0, growth: 0.0, from: 0.0, settled: 0.0, shortest: 0.0, shortest_leak: 0.0 };
    let same = vec![Point { at: 1.0, value: 1.0 }; 50];
    assert_eq!(judge.judge(&same).reason, Reason::TooShort);
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let count = (chance.next() * 300.0) as usize;
        let mut at = 0.0;
        let points: Vec<Point> = (0..count)
            .map(|_| {
                at += chance.next() * 3.0;
                Point { at, value: chance.next() * 1e12 }
            })
            .collect();
        let judgement = judge.judge(&points);
        assert!(judgement.trend.is_none_or(|trend| trend.low <= trend.slope && trend.slope <= trend.high));
    }
}

#[test]
fn a_random_walk_is_seldom_called_a_leak() {
    let mut leaking = 0;
    for seed in 0..100 {
        let (mut chance, mut level) = (Chance::new(seed), 2000.0);
        let judgement = verdict(|_| {
            level += 3.0 * chance.noise();
            level
        });
        leaking += usize::from(judgement.verdict == Verdict::Leaking);
    }
    assert!(leaking <= 3, "{leaking}");
}
