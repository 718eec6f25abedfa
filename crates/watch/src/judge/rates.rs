//! How often series of chance are called a leak, of those that leak and of those that do not.

mod repeated;

use lowtide_core::random::Random;

use super::*;
use crate::Rules;

/// Chance that is the same every time.
pub(super) struct Chance(Random);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// From 0 up to 1.
    pub fn next(&mut self) -> f64 {
        self.0.fraction()
    }

    /// Around 0, most within 1 of it.
    pub fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    /// A waiting time, 1 in the mean.
    fn wait(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }
}

const MIB: f64 = 1_048_576.0;

/// Memory in MiB at each moment, ten times a second, of a run that takes so many seconds.
type Memory = Box<dyn FnMut(f64) -> f64>;
type Kind = (&'static str, fn(Chance, f64) -> Memory);

/// Of 100 seeds, how many come to `verdict` after `seconds`.
fn judged(kind: &Kind, seconds: f64, verdict: Verdict) -> usize {
    let judged = (0..100).filter(|seed| {
        let mut memory = kind.1(Chance::new(seed * 7919), seconds);
        let count = (seconds * 10.0) as u32;
        let points: Vec<Point> =
            (0..count).map(|n| f64::from(n) / 10.0).map(|at| Point { at, value: memory(at).max(0.0) * MIB }).collect();
        Rules::default().over_time(0.0, seconds).judge(&points).verdict == verdict
    });
    judged.count()
}

fn leaking(kind: &Kind, seconds: f64) -> usize {
    judged(kind, seconds, Verdict::Leaking)
}

const HARMLESS: [Kind; 19] = [
    ("noise", |mut chance, _| Box::new(move |_| 500.0 + 50.0 * chance.noise())),
    ("slow noise", |mut chance, _| {
        let (mut now, kept) = (0.0, (-0.02_f64).exp());
        Box::new(move |_| {
            now = kept * now + 20.0 * (1.0 - kept * kept).sqrt() * chance.noise();
            500.0 + now
        })
    }),
    ("wandering", |mut chance, _| {
        let mut now = 2000.0;
        Box::new(move |_| {
            now += 3.0 * chance.noise();
            now
        })
    }),
    ("a sawtooth", |mut chance, _| {
        let (period, begin) = (0.5 + 12.0 * chance.next(), chance.next());
        Box::new(move |at| 500.0 + 300.0 * (at / period + begin).fract() + 2.0 * chance.noise())
    }),
    ("a collector", |mut chance, _| {
        let (mut garbage, mut limit, speed) = (0.0, 100.0, 3.0 + 20.0 * chance.next());
        Box::new(move |_| {
            garbage += speed * chance.next();
            if garbage > limit {
                (garbage, limit) = (10.0 * chance.next(), 60.0 + 80.0 * chance.next());
            }
            400.0 + garbage
        })
    }),
    ("generations", |mut chance, _| {
        let (mut young, mut old) = (0.0, 0.0);
        Box::new(move |_| {
            young += 3.0 * chance.next();
            if young > 50.0 {
                (young, old) = (0.0, old + 10.0);
            }
            if old > 150.0 + 50.0 * chance.next() {
                old = 0.0;
            }
            400.0 + young + old
        })
    }),
    ("steps until it is warm", |mut chance, seconds| {
        let steps: Vec<f64> = (0..12).map(|_| 0.65 * seconds * chance.next()).collect();
        Box::new(move |at| 500.0 + 30.0 * steps.iter().filter(|&&step| step < at).count() as f64 + chance.noise())
    }),
    ("a few steps", |mut chance, seconds| {
        let steps: Vec<f64> = (0..3).map(|_| seconds * chance.next()).collect();
        Box::new(move |at| 500.0 + 99.0 * steps.iter().filter(|&&step| step < at).count() as f64 + chance.noise())
    }),
    ("fragments, as the logarithm", |mut chance, _| {
        let (scale, begin) = (20.0 + 200.0 * chance.next(), 0.5 + 2.0 * chance.next());
        Box::new(move |at| 500.0 + scale * (1.0 + at / begin).ln() + chance.noise())
    }),
    ("the same in noise", |mut chance, _| {
        let (scale, begin) = (20.0 + 100.0 * chance.next(), 0.5 + 2.0 * chance.next());
        Box::new(move |at| 500.0 + scale * (1.0 + at / begin).ln() + 10.0 * chance.noise())
    }),
    ("fragments, as the root", |mut chance, _| {
        let scale = 10.0 + 50.0 * chance.next();
        Box::new(move |at| 500.0 + scale * at.sqrt() + chance.noise())
    }),
    ("a cache that fills", |mut chance, seconds| {
        let speed = (0.1 + 0.4 * chance.next()) * seconds;
        Box::new(move |at| 1000.0 - 500.0 * (-at / speed).exp() + chance.noise())
    }),
    ("a leak that stops", |mut chance, seconds| {
        let end = (0.55 + 0.3 * chance.next()) * seconds;
        Box::new(move |at| 500.0 + 2.0 * at.min(end) + chance.noise())
    }),
    ("workers that come and go", |mut chance, _| {
        let mut ends: Vec<f64> = Vec::new();
        Box::new(move |at| {
            if chance.next() < 0.03 {
                ends.push(at + 5.0 * chance.wait());
            }
            ends.retain(|&end| end > at);
            300.0 + 120.0 * ends.len() as f64 + 0.5 * chance.noise()
        })
    }),
    ("workers for each epoch", |mut chance, _| {
        let (period, share) = (4.0 + 10.0 * chance.next(), 0.4 + 0.5 * chance.next());
        Box::new(move |at| 300.0 + if (at / period).fract() < share { 480.0 } else { 0.0 } + 0.5 * chance.noise())
    }),
    ("much at the end", |mut chance, seconds| {
        let (begin, jumps) = ((0.75 + 0.24 * chance.next()) * seconds, chance.next() < 0.5);
        Box::new(move |at| {
            let share = if jumps { 1.0 } else { (at - begin) / (seconds - begin) };
            300.0 + if at > begin { 2000.0 * share } else { 0.0 } + 0.3 * chance.noise()
        })
    }),
    ("more and more load", |mut chance, seconds| {
        Box::new(move |at| {
            let is_busy = chance.next() < 0.3 + 0.65 * at / seconds;
            400.0 + if is_busy { 20.0 + 50.0 * chance.next() } else { 0.0 } + chance.noise()
        })
    }),
    ("batches of any size", |mut chance, _| {
        let (mut size, mut left) = (0.0, 0.0);
        Box::new(move |_| {
            if left < 1.0 {
                (size, left) = (100.0 * chance.next() * chance.next(), 8.0 * chance.next());
            }
            left -= 1.0;
            400.0 + size
        })
    }),
    ("the largest batch is kept", |mut chance, _| {
        let mut largest = 0.0_f64;
        Box::new(move |_| {
            largest = largest.max(15.0 * chance.wait());
            600.0 + largest + 0.2 * chance.noise()
        })
    }),
];

#[test]
fn what_does_not_leak_is_hardly_ever_called_a_leak() {
    let mut all = 0;
    for kind in &HARMLESS {
        for seconds in [60.0, 180.0] {
            let count = leaking(kind, seconds);
            assert!(count <= 3, "{} after {seconds} s: {count} of 100", kind.0);
            all += count;
        }
    }
    let of = 100 * 2 * HARMLESS.len();
    assert!(all * 200 <= of, "{all} of {of} are more than one in 200");
}

#[test]
fn no_short_run_is_called_a_leak_and_none_that_does_not_leak_is_called_growing() {
    for kind in HARMLESS.iter().chain(DECEPTIVE.iter().map(|(kind, _)| kind)) {
        for seconds in [6.0, 10.0, 15.0, 20.0, 28.0] {
            let [growing, leaking] = [Verdict::Growing, Verdict::Leaking].map(|verdict| judged(kind, seconds, verdict));
            assert_eq!([growing, leaking], [0, 0], "{} after {seconds} s", kind.0);
        }
    }
}

/// What looks like a leak until it has gone on for long enough, with how many of 100 may be called one after 60 and 180
/// seconds.
const DECEPTIVE: [(Kind, [usize; 2]); 3] = [
    (
        ("a cache whose entries come by chance", |mut chance, _| {
            let (mut cached, speed) = ([false; 200], 0.02 + 0.2 * chance.next());
            Box::new(move |_| {
                if chance.next() < speed {
                    cached[((chance.wait() * 40.0) as usize).min(199)] = true;
                }
                500.0 + 5.0 * cached.iter().filter(|&&is| is).count() as f64 + 0.3 * chance.noise()
            })
        }),
        [30, 15],
    ),
    (
        ("a slow sawtooth", |mut chance, _| {
            let (period, begin) = (28.0 + 24.0 * chance.next(), chance.next());
            Box::new(move |at| 500.0 + 300.0 * (at / period + begin).fract() + chance.noise())
        }),
        [12, 2],
    ),
    (
        ("a slow collector", |mut chance, _| {
            let (mut garbage, mut limit, speed) = (100.0 * chance.next(), 100.0, 0.5 + 2.0 * chance.next());
            Box::new(move |_| {
                garbage += speed * chance.next();
                if garbage > limit {
                    (garbage, limit) = (10.0 * chance.next(), 60.0 + 80.0 * chance.next());
                }
                400.0 + garbage
            })
        }),
        [6, 2],
    ),
];

#[test]
fn what_looks_like_a_leak_is_told_apart_in_time() {
    for (kind, most) in &DECEPTIVE {
        for (seconds, most) in [60.0, 180.0].into_iter().zip(most) {
            let count = leaking(kind, seconds);
            assert!(count <= *most, "{} after {seconds} s: {count} of 100", kind.0);
        }
    }
}

/// With what has to be found of 100 after 60, 180 and 600 seconds.
const LEAKS: [(Kind, [usize; 3]); 10] = [
    (("1 MiB in 10 s", |mut chance, _| Box::new(move |at| 500.0 + 0.1 * at + 0.2 * chance.noise())), [98, 99, 99]),
    (
        ("as much in some noise", |mut chance, _| Box::new(move |at| 500.0 + 0.1 * at + 10.0 * chance.noise())),
        [0, 20, 95],
    ),
    (
        ("as much in 50 MiB of it", |mut chance, _| Box::new(move |at| 500.0 + 0.1 * at + 50.0 * chance.next())),
        [0, 5, 90],
    ),
    (("1 MiB a second in noise", |mut chance, _| Box::new(move |at| 500.0 + at + 10.0 * chance.noise())), [25, 98, 98]),
    (
        ("behind a collector", |mut chance, _| {
            let (mut garbage, mut limit) = (0.0, 100.0);
            Box::new(move |at| {
                garbage += 12.0 * chance.next();
                if garbage > limit {
                    (garbage, limit) = (10.0 * chance.next(), 60.0 + 80.0 * chance.next());
                }
                400.0 + at + garbage
            })
        }),
        [10, 85, 99],
    ),
    (
        ("8 MiB for some requests", |mut chance, _| {
            let mut kept = 0.0;
            Box::new(move |_| {
                kept += if chance.next() < 0.05 { 8.0 } else { 0.0 };
                500.0 + kept + 40.0 * chance.next()
            })
        }),
        [15, 50, 75],
    ),
    (
        ("workers that stay", |mut chance, _| {
            let mut ends: Vec<f64> = Vec::new();
            Box::new(move |at| {
                if chance.next() < 0.2 {
                    ends.push(if chance.next() < 0.5 { f64::INFINITY } else { at + 2.0 * chance.wait() });
                }
                ends.retain(|&end| end > at);
                300.0 + 30.0 * ends.len() as f64
            })
        }),
        [10, 50, 75],
    ),
    (
        ("with one to five spikes", |mut chance, seconds| {
            let count = 1 + (5.0 * chance.next()) as usize;
            let spikes: Vec<[f64; 3]> = (0..count)
                .map(|_| {
                    let begin = (0.25 + 0.75 * chance.next()) * seconds;
                    [begin, begin + 0.05 + 0.03 * seconds * chance.next(), 80.0 + 200.0 * chance.next()]
                })
                .collect();
            Box::new(move |at| {
                let spike = spikes.iter().filter(|[begin, end, _]| (*begin..*end).contains(&at)).map(|spike| spike[2]);
                500.0 + at + spike.fold(0.0, f64::max) + 0.2 * chance.noise()
            })
        }),
        [95, 95, 90],
    ),
    (
        ("after it was loaded", |mut chance, seconds| {
            Box::new(move |at| 300.0 + 1000.0 * (at / (0.15 * seconds)).min(1.0) + at + chance.noise())
        }),
        [98, 99, 99],
    ),
    (
        ("faster and faster", |mut chance, seconds| {
            Box::new(move |at| 300.0 + 0.5 * at + at * at / seconds + chance.noise())
        }),
        [98, 99, 99],
    ),
];

#[test]
fn what_leaks_is_found_the_surer_the_longer_it_is_watched() {
    for (kind, least) in &LEAKS {
        for (seconds, least) in [60.0, 180.0, 600.0].into_iter().zip(least) {
            let count = leaking(kind, seconds);
            assert!(count >= *least, "{} after {seconds} s: {count} of 100", kind.0);
        }
    }
}
