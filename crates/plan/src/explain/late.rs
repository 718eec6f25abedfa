//! What was alive at the moment although something speaks for its having been of no more use.

use std::collections::BTreeMap;

use lowtide_core::{
    Alike, Alive, Bond, BufferIndex, Bytes, Change, Ending, Family, Late, Lateness, Lifetime, Release, Remedy,
};
use rustc_hash::FxHashSet;

use super::analysis::{Analysis, CANDIDATES};
use super::families::{Make, grouped};

/// A buffer that ends within this many events of its successor's beginning was replaced by it.
const SOON: i64 = 32;

/// Steps without which growth is not told from chance.
const STEPS_OF_GROWTH: usize = 3;

/// What could have been gone, by reason and make, those first that cost most. What went just after stands alone: it is
/// not likely that nothing of it was needed.
pub(super) fn late(analysis: &Analysis) -> Vec<Late> {
    let leaks = leaks(analysis);
    let reason = |alive: &Alive| lateness(analysis, &leaks, alive.buffer);
    let reasons: BTreeMap<BufferIndex, Lateness> =
        analysis.alive.iter().filter_map(|alive| Some((alive.buffer, reason(alive)?))).collect();
    let key = |buffer: BufferIndex| {
        let why = reasons.get(&buffer)?;
        let make = analysis.families.make(buffer);
        Some(match why {
            Lateness::Leak { .. } => (why.name(), bare(make), None),
            Lateness::JustAfter { .. } => (why.name(), make, Some(buffer)),
            _ => (why.name(), make, None),
        })
    };
    let groups = grouped(analysis.alive, key).into_iter().filter(|group| analysis.matters(group.bytes));
    let mut late: Vec<Late> = groups
        .take(CANDIDATES)
        .map(|Alike { buffers, bytes }| {
            let why = reasons[&buffers[0]];
            let bond = if buffers.len() == 1 && analysis.families.has_steps() { Bond::Tensor } else { Bond::Alike };
            let family = late_family(analysis, &leaks, bond, buffers, why);
            let release = release(analysis, family, why);
            let saves = analysis.saves(&analysis.ending(&release.ends)).unwrap_or_default();
            Late { release, bytes, saves }
        })
        .collect();
    // What went just after is late only if that cost something.
    late.retain(|late| late.saves > Bytes::ZERO || !matches!(late.release.why, Lateness::JustAfter { .. }));
    late.sort_by_key(|late| std::cmp::Reverse((late.saves, late.bytes)));
    late
}

/// Letting go earlier as a remedy: of each family that is late, and of all that are late for the same reason.
pub(super) fn remedies(analysis: &Analysis, late: &[Late]) -> Vec<Remedy> {
    // What went just after is a matter of order.
    let late: Vec<&Late> = late.iter().filter(|late| !matches!(late.release.why, Lateness::JustAfter { .. })).collect();
    let mut remedies: Vec<Remedy> = late
        .iter()
        .filter_map(|late| analysis.remedy(Change::Release(late.release.clone()), &analysis.ending(&late.release.ends)))
        .collect();
    for reason in ["not-done", "replaced", "leak"] {
        let alike: Vec<&Release> =
            late.iter().map(|late| &late.release).filter(|release| release.why.name() == reason).collect();
        if alike.len() > 1 {
            let release = together(analysis, &alike);
            let edit = analysis.ending(&release.ends);
            remedies.extend(analysis.remedy(Change::Release(release), &edit));
        }
    }
    remedies
}

fn together(analysis: &Analysis, releases: &[&Release]) -> Release {
    let mut alive: Vec<BufferIndex> = releases.iter().flat_map(|release| &release.family.alive).copied().collect();
    alive.sort_by_key(|&index| (std::cmp::Reverse(analysis.size(index)), index));
    let mut why = releases[0].why;
    let mut elsewhere: Vec<BufferIndex> = match &mut why {
        Lateness::NotDone { .. } => {
            analysis.usage.problem.indices().filter(|&index| analysis.usage.label(index).freed.is_some()).collect()
        }
        _ => releases.iter().flat_map(|release| &release.family.elsewhere).copied().collect(),
    };
    if let Lateness::Leak { per_step } = &mut why {
        *per_step = releases.iter().map(|release| leaked_per_step(release.why)).sum();
    }
    without(&mut elsewhere, &alive);
    elsewhere.sort_unstable_by_key(|&index| (analysis.life(index).lower, index));
    elsewhere.dedup();
    release(analysis, Family { bond: Bond::Together, alive, elsewhere }, why)
}

fn leaked_per_step(why: Lateness) -> Bytes {
    if let Lateness::Leak { per_step } = why { per_step } else { Bytes::ZERO }
}

fn without(buffers: &mut Vec<BufferIndex>, others: &[BufferIndex]) {
    let others: FxHashSet<BufferIndex> = others.iter().copied().collect();
    buffers.retain(|buffer| !others.contains(buffer));
}

fn lateness(analysis: &Analysis, leaks: &Leaks, index: BufferIndex) -> Option<Lateness> {
    let families = &analysis.families;
    if let Some(freed) = analysis.usage.label(index).freed.filter(|&freed| freed <= analysis.moment) {
        return Some(Lateness::NotDone { freed });
    }
    if let Some(leak) = leaks.get(&bare(families.make(index))).filter(|leak| leak.buffers.binary_search(&index).is_ok())
    {
        return Some(Lateness::Leak { per_step: leak.per_step });
    }
    if let Some(replaced) = replaced(analysis, index) {
        return Some(replaced);
    }
    let &(made, _) = families.made_before_end(index).first()?;
    (made <= analysis.moment).then(|| Lateness::JustAfter { events: families.let_go(index).abs_diff(analysis.moment) })
}

/// Whether `index` was kept until its successor had been made.
fn replaced(analysis: &Analysis, index: BufferIndex) -> Option<Lateness> {
    let families = &analysis.families;
    if families.is_brief(index) {
        return None;
    }
    if !families.has_steps() {
        analysis.usage.label(index).site?;
        return families.successor_at_end(index, SOON).map(|by| Lateness::Replaced { by: Some(by) });
    }
    if families.make(index).crossings != 1 {
        return None;
    }
    let step = families.step_of(analysis.life(index).lower);
    let next = families.in_step(index, step + 1);
    let (old, new) = match next {
        Some(next) => (index, next),
        None => (families.in_step(index, step.checked_sub(1)?)?, index),
    };
    let (begin, end) = (analysis.life(new).lower, families.let_go(old));
    (begin < end && end <= begin.saturating_add(SOON)).then_some(Lateness::Replaced { by: next })
}

/// Buffers of one make of which each step leaves some behind.
struct Leak {
    buffers: Vec<BufferIndex>,
    per_step: Bytes,
}

type Leaks = BTreeMap<Make, Leak>;

/// The make without how long its buffers stay.
fn bare(make: Make) -> Make {
    Make { crossings: 0, ..make }
}

/// The makes alive at the moment that leave buffers behind in every step after the first.
fn leaks(analysis: &Analysis) -> Leaks {
    let mut leaks = Leaks::new();
    let steps = analysis.usage.steps.len();
    if steps < STEPS_OF_GROWTH || !analysis.families.has_steps() {
        return leaks;
    }
    for Alike { buffers, .. } in grouped(analysis.alive, |index| Some(bare(analysis.families.make(index)))) {
        let make = bare(analysis.families.make(buffers[0]));
        let mut left = vec![0_u64; steps];
        let mut leaked = Vec::new();
        for index in analysis.families.of_make(make) {
            let step = analysis.families.step_of(analysis.life(index).lower);
            let stays =
                analysis.families.make(index).crossings == 2 || analysis.life(index).upper >= analysis.families.end;
            if step < steps && stays {
                left[step] += 1;
                leaked.push(index);
            }
        }
        // The first step also sets up: what it leaves says nothing of those after it.
        if left[1..].iter().all(|&count| count > 0) {
            let bytes = make.size.get() * left[1..].iter().sum::<u64>() / (steps as u64 - 1);
            leaked.sort_unstable();
            leaks.insert(make, Leak { buffers: leaked, per_step: Bytes::new(bytes) });
        }
    }
    leaks
}

fn late_family(analysis: &Analysis, leaks: &Leaks, bond: Bond, alive: Vec<BufferIndex>, why: Lateness) -> Family {
    if !matches!(why, Lateness::Leak { .. }) {
        return analysis.families.family(bond, alive);
    }
    let leak = leaks.get(&bare(analysis.families.make(alive[0])));
    let mut elsewhere = leak.map_or_else(Vec::new, |leak| leak.buffers.clone());
    without(&mut elsewhere, &alive);
    elsewhere.sort_unstable_by_key(|&index| (analysis.life(index).lower, index));
    Family { bond: Bond::Alike, alive, elsewhere }
}

/// When each of the family would go, given why.
fn release(analysis: &Analysis, family: Family, why: Lateness) -> Release {
    let within = |ending: &Ending| {
        let Lifetime { lower, upper } = analysis.life(ending.buffer);
        lower < ending.at && ending.at < upper
    };
    let ends_at = |end: fn(&Analysis, BufferIndex) -> Option<i64>| -> Vec<Ending> {
        let ending = |buffer: BufferIndex| Some(Ending { buffer, at: end(analysis, buffer)? });
        family.buffers().filter_map(ending).filter(within).collect()
    };
    let ends = match why {
        Lateness::NotDone { .. } => ends_at(|analysis, buffer| analysis.usage.label(buffer).freed),
        Lateness::Replaced { .. } => ends_at(end_of_use),
        Lateness::Leak { .. } => ends_at(end_of_step),
        Lateness::JustAfter { .. } => {
            ends_at(|analysis, buffer| analysis.families.made_before_end(buffer).first().map(|&(made, _)| made))
        }
    };
    Release { family, why, ends }
}

/// The end of the step that made `buffer`.
fn end_of_step(analysis: &Analysis, buffer: BufferIndex) -> Option<i64> {
    let step = analysis.families.step_of(analysis.life(buffer).lower);
    analysis.usage.steps.get(step).map(|end| end.at)
}

/// The end of its step, or where no steps are known the beginning of what replaces it.
fn end_of_use(analysis: &Analysis, buffer: BufferIndex) -> Option<i64> {
    if analysis.families.has_steps() {
        return end_of_step(analysis, buffer);
    }
    analysis.families.successor_at_end(buffer, SOON).map(|by| analysis.life(by).lower)
}
