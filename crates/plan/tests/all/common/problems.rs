//! Small problems for properties, and larger ones by seed: buffers first, then what binds those that can be bound.

use lowtide_core::random::Random;
use lowtide_core::{Align, BufferIndex, Bytes, Class, Gap, Lifetime, Pool, PoolIndex, Problem, Window};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{at, buffer};

/// Which gaps buffers may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gaps {
    None,
    /// Gaps without windows, or with windows from the buffer's first byte.
    Flat,
    Any,
}

/// What a problem may contain beyond sizes and lifetimes.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of its own
pub struct Features {
    pub aligns: bool,
    pub gaps: Gaps,
    pub pins: bool,
    /// Pins on members of alias sets and contiguous groups too.
    pub tied_pins: bool,
    pub classes: bool,
    pub aliases: bool,
    pub contiguous: bool,
    pub may_share: bool,
    /// Buffers of no bytes and of no life.
    pub nothings: bool,
    /// The largest size.
    pub size: u64,
    /// The largest number of buffers.
    pub count: usize,
}

pub const PLAIN: Features = Features {
    aligns: false,
    gaps: Gaps::None,
    pins: false,
    tied_pins: false,
    classes: false,
    aliases: false,
    contiguous: false,
    may_share: false,
    nothings: true,
    size: 4,
    count: 6,
};

pub const EVERYTHING: Features = Features {
    aligns: true,
    gaps: Gaps::Any,
    pins: true,
    tied_pins: true,
    classes: true,
    aliases: true,
    contiguous: true,
    may_share: true,
    ..PLAIN
};

const ALIGNS: [u64; 6] = [1, 1, 1, 2, 3, 4];

/// Events in front of a gap, its length, and the ends of its window.
type RawGap = (i64, i64, Option<(u64, u64)>);

/// A buffer before it is clipped to what a problem may contain.
#[derive(Clone, Debug)]
pub struct Raw {
    lower: i64,
    length: i64,
    size: u64,
    align: usize,
    gaps: Vec<RawGap>,
    pin: Option<u64>,
    persistent: bool,
}

/// Relations as numbers that stand for whichever buffers there are.
#[derive(Clone, Debug)]
pub struct RawRelations {
    aliases: Vec<Vec<usize>>,
    contiguous: Vec<Vec<usize>>,
    may_share: Vec<(usize, usize)>,
}

fn raw() -> impl Strategy<Value = Raw> {
    let gap = (0..3_i64, 1..4_i64, option::of((0..9_u64, 0..9_u64)));
    (0..7_i64, 0..6_i64, 0..1_000_u64, 0..6_usize, vec(gap, 0..3), option::weighted(0.25, 0..4_u64), any::<bool>())
        .prop_map(|(lower, length, size, align, gaps, pin, persistent)| Raw {
            lower,
            length,
            size,
            align,
            gaps,
            pin,
            persistent,
        })
}

fn raw_relations() -> impl Strategy<Value = RawRelations> {
    let set = || vec(0..9_usize, 2..4);
    (vec(set(), 0..2), vec(set(), 0..2), vec((0..9_usize, 0..9_usize), 0..4))
        .prop_map(|(aliases, contiguous, may_share)| RawRelations { aliases, contiguous, may_share })
}

/// Problems in one pool that pass their own check.
pub fn problems(features: Features) -> impl Strategy<Value = Problem> {
    (vec(raw(), 1..=features.count), raw_relations())
        .prop_map(move |(raws, relations)| build(&raws, &relations, features))
        .prop_filter("relations must be possible", |problem| problem.check().is_ok())
}

/// A problem of `count` buffers over `events`, in one pool.
pub fn by_seed(seed: u64, count: usize, events: u64, features: Features) -> Problem {
    let random = &mut Random::new(seed);
    let raws: Vec<Raw> = (0..count)
        .map(|_| Raw {
            lower: random.below(events) as i64,
            length: if random.one_in(5) { random.below(events) } else { random.below(events / 6 + 2) } as i64,
            size: random.below(1 << 30),
            align: random.below(6) as usize,
            gaps: (0..random.below(3))
                .map(|_| {
                    let window = random.one_in(2).then(|| (random.below(1 << 20), random.below(1 << 20)));
                    (random.below(4) as i64, random.between(1, 6) as i64, window)
                })
                .collect(),
            pin: random.one_in(20).then(|| random.below(1 + features.size)),
            persistent: random.one_in(6),
        })
        .collect();
    let mut relations = RawRelations { aliases: Vec::new(), contiguous: Vec::new(), may_share: Vec::new() };
    for number in 0..count / 12 {
        let pick = |random: &mut Random| random.below(count as u64) as usize;
        let set: Vec<usize> = (0..random.between(2, 4)).map(|_| pick(random)).collect();
        let sets = if number % 2 == 0 { &mut relations.aliases } else { &mut relations.contiguous };
        sets.push(set);
        relations.may_share.push((pick(random), pick(random)));
    }
    let mut problem = build(&raws, &relations, features);
    // Pins that contradict each other are another test's subject.
    let mut kept: Vec<usize> = Vec::new();
    for index in 0..count {
        let meets = |&other: &usize| {
            let (one, other) = (&problem.buffers[index], &problem.buffers[other]);
            one.lifetime.overlaps(other.lifetime)
        };
        if problem.buffers[index].pin.is_some() {
            let tied = problem.aliases.iter().chain(&problem.contiguous).any(|set| set.contains(&at(index)));
            if tied || kept.iter().any(meets) {
                problem.buffers[index].pin = None;
            } else {
                kept.push(index);
            }
        }
    }
    problem
}

/// Everything but what leads a solver to refuse a problem: pins of tied buffers, and alignments in groups.
pub const MIXED: Features = Features { tied_pins: false, size: 100, ..EVERYTHING };

/// A problem of [`MIXED`] features that can be solved.
pub fn mixed(seed: u64, count: usize) -> Problem {
    let mut problem = by_seed(seed, count, 40, MIXED);
    // Groups whose members cannot all be where they must are another test's subject.
    let mut tied = vec![false; count];
    for set in &problem.aliases {
        for member in set {
            tied[member.get()] = true;
        }
    }
    problem.contiguous.retain(|group| group.iter().all(|member| !tied[member.get()]));
    // So are alias sets that contradict each other.
    while problem.check().is_err() && problem.aliases.pop().is_some() {}
    problem
}

/// Lets a first pool of `capacity` spill into a second one, and that into a third.
pub fn with_spill(mut problem: Problem, capacity: u64) -> Problem {
    let [first, second, third] = ["fast", "slow", "far"].map(Pool::unlimited);
    let next =
        |pool, number| Pool { capacity: Some(Bytes::new(capacity)), spill: Some(PoolIndex::new(number)), ..pool };
    problem.pools = vec![next(first, 1), next(second, 2), third];
    problem
}

fn build(raws: &[Raw], relations: &RawRelations, features: Features) -> Problem {
    let least = u64::from(!features.nothings);
    let buffers = raws.iter().enumerate().map(|(number, raw)| {
        // The remainder of the size spreads; the shrinker makes it small.
        let size = least + raw.size % (features.size + 1 - least);
        let upper = raw.lower + raw.length.max(least as i64);
        let mut shape = buffer(&format!("b{number}"), raw.lower, upper, size);
        if features.aligns {
            shape.align = Align::new(ALIGNS[raw.align]).expect("not zero");
        }
        shape.gaps = gaps(raw, shape.lifetime, size, features.gaps);
        shape.pin = raw.pin.filter(|_| features.pins).map(|multiple| Bytes::new(multiple * shape.align.get()));
        if features.classes && raw.persistent {
            shape.class = Class::Persistent;
        }
        shape
    });
    let mut problem = Problem::new(buffers.collect());
    let mut free: Vec<bool> = vec![true; raws.len()];
    if features.aliases {
        problem.aliases = sets(&relations.aliases, &mut free);
    }
    // A buffer may be in an alias set and in a contiguous group.
    let mut free = vec![true; raws.len()];
    if features.contiguous {
        problem.contiguous = sets(&relations.contiguous, &mut free);
    }
    for set in problem.aliases.iter().chain(&problem.contiguous) {
        let class = problem.buffers[set[0].get()].class;
        for member in set {
            problem.buffers[member.get()].class = class;
        }
    }
    if !features.tied_pins {
        for member in problem.aliases.iter().chain(&problem.contiguous).flatten() {
            problem.buffers[member.get()].pin = None;
        }
    }
    if features.may_share {
        let pairs = relations.may_share.iter().map(|&(a, b)| (at(a % raws.len()), at(b % raws.len())));
        problem.may_share = pairs.filter(|(a, b)| a != b).collect();
    }
    problem
}

fn gaps(raw: &Raw, life: Lifetime, size: u64, kind: Gaps) -> Vec<Gap> {
    let mut from = life.lower;
    let mut gaps = Vec::new();
    for &(pause, length, window) in &raw.gaps {
        let (lower, upper) = (from + pause, from + pause + length);
        if kind == Gaps::None || upper > life.upper {
            break;
        }
        let window = window.map(|(a, b)| {
            let (a, b) = (a % (size + 1), b % (size + 1));
            let lower = if kind == Gaps::Flat { 0 } else { a.min(b) };
            Window { lower: Bytes::new(lower), upper: Bytes::new(a.max(b)) }
        });
        gaps.push(Gap { lifetime: Lifetime { lower, upper }, window });
        from = upper;
    }
    gaps
}

/// Sets of buffers, each in one of them at most.
fn sets(raw: &[Vec<usize>], free: &mut [bool]) -> Vec<Vec<BufferIndex>> {
    let mut sets = Vec::new();
    for picks in raw {
        let mut set = Vec::new();
        for pick in picks {
            let pick = pick % free.len();
            if std::mem::replace(&mut free[pick], false) {
                set.push(at(pick));
            }
        }
        if set.len() > 1 {
            sets.push(set);
        }
    }
    sets
}
