//! The same series as the peaks of an action that is repeated: how often they are called a leak after some repetitions.

use super::*;
use crate::rules::SHORTEST_REPEATED;
use crate::{Actions, End};

/// How many repetitions are played, one in a second.
const REPEATED: [u32; 3] = [20, 60, 180];
/// What may be called a leak of 100 where nothing else is said.
const SELDOM: [usize; 3] = [3, 3, 3];

/// Of 100 seeds, how many are called a leak where each moment is the peak of one of so many repetitions.
fn leaking(kind: &Kind, count: u32) -> usize {
    let judged = (0..100).filter(|seed| {
        let mut memory = kind.1(Chance::new(seed * 7919), f64::from(count));
        let mut actions = Actions::default();
        for at in (0..count).map(f64::from) {
            let peak = (memory(at).max(0.0) * MIB) as u64;
            actions.close("action", End { at, peak, file: 0, after: peak });
        }
        actions.all()[0].judge(MIB / 60.0, MIB, SHORTEST_REPEATED).verdict == Verdict::Leaking
    });
    judged.count()
}

/// What comes round about once in the repetitions is a leak until then.
const SLOW: [(&str, [usize; 3]); 5] = [
    ("a collector", [35, 5, 3]),
    ("generations", [65, 25, 3]),
    ("a cache whose entries come by chance", [3, 6, 20]),
    ("a slow sawtooth", [70, 8, 2]),
    ("a slow collector", [50, 60, 30]),
];

#[test]
fn repetitions_that_do_not_leak_are_seldom_called_a_leak_in_time() {
    for kind in HARMLESS.iter().chain(DECEPTIVE.iter().map(|(kind, _)| kind)) {
        let most = SLOW.iter().find(|(name, _)| *name == kind.0).map_or(SELDOM, |(_, most)| *most);
        for (count, most) in REPEATED.into_iter().zip(most) {
            let leaking = leaking(kind, count);
            assert!(leaking <= most, "{} {count} times: {leaking} of 100", kind.0);
        }
    }
}

/// What has to be found of 100.
const FOUND: [(&str, [usize; 3]); 6] = [
    ("1 MiB in 10 s", [0, 95, 99]),
    ("1 MiB a second in noise", [0, 0, 90]),
    ("behind a collector", [0, 0, 75]),
    ("with one to five spikes", [85, 90, 90]),
    ("after it was loaded", [0, 98, 99]),
    ("faster and faster", [70, 98, 99]),
];

#[test]
fn repetitions_that_leak_are_found_and_never_before_they_are_enough() {
    for (name, least) in FOUND {
        let kind = LEAKS.iter().map(|(kind, _)| kind).find(|kind| kind.0 == name).unwrap();
        assert_eq!(leaking(kind, 19), 0, "{name}");
        for (count, least) in REPEATED.into_iter().zip(least) {
            let leaking = leaking(kind, count);
            assert!(leaking >= least, "{name} {count} times: {leaking} of 100");
        }
    }
}
