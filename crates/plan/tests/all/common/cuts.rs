//! Problems whose optimum is known: a rectangle of time and bytes, cut into buffers that fill it.

use lowtide_core::random::Random;
use lowtide_core::{Bytes, Gap, Lifetime, Problem};

use super::buffer;

/// A buffer where the rectangle was cut: some events, some bytes, and when it leaves its place to others.
#[derive(Clone, Debug)]
pub struct Cut {
    pub lower: u64,
    pub upper: u64,
    pub bottom: u64,
    pub top: u64,
    pub gap: Option<(u64, u64)>,
}

impl Cut {
    /// `events` by `bytes`, whole.
    pub fn whole(events: u64, bytes: u64) -> Self {
        Self { lower: 0, upper: events, bottom: 0, top: bytes, gap: None }
    }

    fn part(lower: u64, upper: u64, bottom: u64, top: u64) -> Self {
        Self { lower, upper, bottom, top, gap: None }
    }

    fn events(&self) -> u64 {
        self.upper - self.lower
    }

    fn bytes(&self) -> u64 {
        self.top - self.bottom
    }

    fn area(&self) -> u64 {
        self.events() * self.bytes()
    }

    /// Two parts by one straight cut, where there is room for one.
    fn halves(&self, random: &mut Random) -> Option<Vec<Self>> {
        let (events, bytes) = (self.events() > 1, self.bytes() > 1);
        let Self { lower, upper, bottom, top, .. } = *self;
        if events && (!bytes || random.one_in(2)) {
            let time = random.between(lower + 1, upper);
            Some(vec![Self::part(lower, time, bottom, top), Self::part(time, upper, bottom, top)])
        } else if bytes {
            let height = random.between(bottom + 1, top);
            Some(vec![Self::part(lower, upper, bottom, height), Self::part(lower, upper, height, top)])
        } else {
            None
        }
    }

    /// Five parts around a middle one, which no sequence of straight cuts makes.
    fn pinwheel(&self, random: &mut Random) -> Option<Vec<Self>> {
        if self.events() < 3 || self.bytes() < 3 {
            return None;
        }
        let Self { lower, upper, bottom, top, .. } = *self;
        let left = random.between(lower + 1, upper - 1);
        let right = random.between(left + 1, upper);
        let low = random.between(bottom + 1, top - 1);
        let high = random.between(low + 1, top);
        Some(if random.one_in(2) {
            vec![
                Self::part(lower, right, bottom, low),
                Self::part(right, upper, bottom, high),
                Self::part(left, upper, high, top),
                Self::part(lower, left, low, top),
                Self::part(left, right, low, high),
            ]
        } else {
            vec![
                Self::part(left, upper, bottom, low),
                Self::part(right, upper, low, top),
                Self::part(lower, right, high, top),
                Self::part(lower, left, bottom, high),
                Self::part(left, right, low, high),
            ]
        })
    }

    /// The same buffer with a hole in its life, and what fills the hole.
    fn hole(&self, random: &mut Random) -> Option<Vec<Self>> {
        if self.events() < 3 || self.gap.is_some() {
            return None;
        }
        let from = random.between(self.lower + 1, self.upper - 1);
        let to = random.between(from + 1, self.upper);
        Some(vec![Self { gap: Some((from, to)), ..self.clone() }, Self::part(from, to, self.bottom, self.top)])
    }
}

/// How to cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    Guillotine,
    Pinwheel,
    /// Straight cuts, pinwheels, and gaps with others in them.
    Holes,
}

/// Cuts a rectangle until there are at least `count` parts.
pub fn cut(events: u64, bytes: u64, count: usize, style: Style, random: &mut Random) -> Vec<Cut> {
    let mut cuts = vec![Cut::whole(events, bytes)];
    let mut misses = 0;
    while cuts.len() < count && misses < 1_000 {
        // The largest of a few, so that parts stay of similar size.
        let picks = (0..3).map(|_| random.below(cuts.len() as u64) as usize).collect::<Vec<_>>();
        let pick = picks.into_iter().max_by_key(|&pick| cuts[pick].area()).unwrap_or(0);
        let whole = &cuts[pick];
        let parts = match style {
            _ if whole.gap.is_some() => None,
            Style::Guillotine => whole.halves(random),
            Style::Pinwheel => whole.pinwheel(random),
            Style::Holes => match random.below(4) {
                0 => whole.pinwheel(random),
                1 => whole.hole(random),
                _ => whole.halves(random),
            },
        };
        match parts {
            Some(parts) => {
                cuts.swap_remove(pick);
                cuts.extend(parts);
            }
            None => misses += 1,
        }
    }
    random.shuffle(&mut cuts);
    cuts
}

/// The buffers of a cut rectangle, in the order of the cuts.
pub fn problem(cuts: &[Cut]) -> Problem {
    let shape = |(number, cut): (usize, &Cut)| {
        let mut shape = buffer(&format!("b{number}"), cut.lower as i64, cut.upper as i64, cut.bytes());
        let gap = cut.gap.map(|(from, to)| Lifetime { lower: from as i64, upper: to as i64 });
        shape.gaps = gap.into_iter().map(|lifetime| Gap { lifetime, window: None }).collect();
        shape
    };
    Problem::new(cuts.iter().enumerate().map(shape).collect())
}

/// Multiplies every number of bytes.
pub fn scale(problem: &mut Problem, factor: u64) {
    for buffer in &mut problem.buffers {
        buffer.size = Bytes::new(buffer.size.get() * factor);
    }
}
