//! Who holds memory at a moment.

use lowtide_core::{Alive, BufferIndex, Bytes, Moment, Usage};

use crate::Curve;

/// Every buffer that holds memory at `time`, the largest first; of aliases, only the largest.
pub fn alive_at(usage: &Usage, time: i64) -> Vec<Alive> {
    let holds = |index: BufferIndex| {
        let buffer = usage.problem.buffer(index);
        let within = |life: lowtide_core::Lifetime| life.lower <= time && time < life.upper;
        if !within(buffer.lifetime) {
            return None;
        }
        let bytes = match buffer.gaps.iter().find(|gap| within(gap.lifetime)) {
            Some(gap) => gap.window.map_or(0, |window| window.upper.get() - window.lower.get()),
            None => buffer.size.get(),
        };
        (bytes > 0).then_some(Alive { buffer: index, bytes: Bytes::new(bytes) })
    };
    let mut held: Vec<Option<Alive>> = usage.problem.indices().map(holds).collect();
    for set in &usage.problem.aliases {
        let largest = set.iter().copied().max_by_key(|member| held[member.get()].map(|one| one.bytes));
        set.iter().filter(|&&member| Some(member) != largest).for_each(|member| held[member.get()] = None);
    }
    let mut alive: Vec<Alive> = held.into_iter().flatten().collect();
    alive.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.buffer));
    alive
}

/// The moment at which most is alive; the earliest of several.
pub fn peak(usage: &Usage, live: &Curve) -> Moment {
    let (time, live) = live.highest().unwrap_or((usage.span().start, Bytes::ZERO));
    Moment { time, step: usage.step_at(time), live }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Buffer, Gap, Lifetime, Problem};

    #[test]
    fn only_what_holds_memory_is_alive() {
        let buffer = |id: &str, upper, size| Buffer::new(id, Lifetime { lower: 0, upper }, Bytes::new(size));
        let mut away = buffer("away", 9, 50);
        away.gaps.push(Gap { lifetime: Lifetime { lower: 2, upper: 6 }, window: None });
        let usage =
            Usage::of(Problem::new(vec![buffer("small", 9, 1), away, buffer("gone", 3, 7), buffer("big", 9, 8)]));
        let alive = |time| -> Vec<usize> { alive_at(&usage, time).iter().map(|one| one.buffer.get()).collect() };
        assert_eq!(alive(3), [3, 0]);
        assert_eq!(alive(0), [1, 3, 2, 0]);
        let live = Curve { points: vec![(0, Bytes::new(66)), (2, Bytes::new(16))] };
        let peak = peak(&usage, &live);
        assert_eq!((peak.time, peak.live), (0, Bytes::new(66)));
    }
}
