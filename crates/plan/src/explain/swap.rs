//! Moving buffers elsewhere while memory is high: for each family the smallest windows that bring the lowest peak which
//! any absence of it can bring.

use std::collections::BTreeMap;

use lowtide_core::{Absence, BufferIndex, Bytes, Change, Family, Lifetime, Remedy};
use rustc_hash::FxHashSet;

use super::analysis::Analysis;
use super::edit::Edit;

/// A shorter absence is none.
const SHORTEST: u64 = 2;

/// The families that could be elsewhere while memory is high.
pub(super) fn swaps(analysis: &Analysis, families: &[Family]) -> Vec<Remedy> {
    families.iter().filter_map(|family| swap(analysis, family)).collect()
}

fn swap(analysis: &Analysis, family: &Family) -> Option<Remedy> {
    let stays: Vec<Absence> = family.buffers().flat_map(|buffer| longest_absences(analysis, buffer)).collect();
    let level = analysis.height_after(&leaving(analysis, &stays)).filter(|&level| level < analysis.height)?;
    let needed: Vec<(Absence, Absence)> =
        stays.iter().filter_map(|&longest| Some((needed(analysis, &longest, level)?, longest))).collect();
    let mut absences = in_time(analysis, needed)?;
    let edit = leaving(analysis, &absences);
    absences.sort_by_key(|absence| (absence.interval, absence.buffer));
    let per_step = most_moved(analysis, &absences);
    let moved: FxHashSet<BufferIndex> = absences.iter().map(|absence| absence.buffer).collect();
    let (alive, elsewhere) =
        family.buffers().filter(|buffer| moved.contains(buffer)).partition(|&buffer| analysis.is_alive(buffer));
    let family = Family { bond: family.bond, alive, elsewhere };
    analysis.remedy(Change::Swap { family, absences, per_step }, &edit)
}

/// The longest that `buffer` can be away: while the program holds it, but for the first event and the last, step by
/// step, because what is kept over several steps is used in each. One on its way between operators stays.
fn longest_absences(analysis: &Analysis, buffer: BufferIndex) -> Vec<Absence> {
    let life = Lifetime { upper: analysis.families.let_go(buffer), ..analysis.life(buffer) };
    if analysis.families.is_brief(buffer) || life.length() < SHORTEST + 2 {
        return Vec::new();
    }
    let (mut from, end) = (life.lower + 1, life.upper - 1);
    let first = analysis.usage.steps.partition_point(|step| step.at < from);
    let mut absences = Vec::new();
    for border in analysis.usage.steps[first..]
        .iter()
        .map(|step| step.at.saturating_add(1))
        .take_while(|&at| at < end)
        .chain([end])
    {
        absences.push(Absence { buffer, interval: Lifetime { lower: from, upper: border } });
        from = border;
    }
    absences.retain(|absence| absence.interval.length() >= SHORTEST);
    absences
}

/// The part of `longest` from the first to the last moment above `level`, and no shorter than an absence must be.
fn needed(analysis: &Analysis, longest: &Absence, level: u64) -> Option<Absence> {
    let most = longest.interval;
    let lower = analysis.curve.first_above(analysis.in_scope(most), level)?;
    let upper = analysis.curve.last_above(analysis.in_scope(most), level)?;
    let upper = upper.max(lower + SHORTEST as i64).min(most.upper);
    let lower = lower.min(upper - SHORTEST as i64);
    Some(Absence { interval: Lifetime { lower, upper }, ..*longest })
}

/// What a link to the host carries in a nanosecond, out or back: a wide one of today.
const LINK: f64 = 50.0;

/// Absences that leave time to move everything out and back: those needed, or, where these are too short and there is a
/// clock that says so, the longest; `None` where these are too short as well.
fn in_time(analysis: &Analysis, needed: Vec<(Absence, Absence)>) -> Option<Vec<Absence>> {
    let Some(clock) = &analysis.usage.clock else { return Some(needed.into_iter().map(|(short, _)| short).collect()) };
    let time = |from: i64, to: i64| clock.at(to).saturating_sub(clock.at(from)) as f64;
    let fits = |absences: &mut dyn Iterator<Item = &Absence>| {
        let (mut bytes, mut from, mut to) = (0_u64, i64::MAX, i64::MIN);
        for &Absence { buffer, interval } in absences {
            let size = analysis.size(buffer).get();
            if 2.0 * size as f64 > LINK * time(interval.lower, interval.upper) {
                return false;
            }
            (bytes, from, to) = (bytes + size, from.min(interval.lower), to.max(interval.upper));
        }
        bytes == 0 || 2.0 * bytes as f64 <= LINK * time(from, to)
    };
    let step = |(short, _): &(Absence, Absence)| analysis.families.step_of(short.interval.lower);
    let mut of_steps: BTreeMap<usize, Vec<(Absence, Absence)>> = BTreeMap::new();
    for pair in needed {
        of_steps.entry(step(&pair)).or_default().push(pair);
    }
    let mut absences = Vec::new();
    for pairs in of_steps.into_values() {
        if fits(&mut pairs.iter().map(|(short, _)| short)) {
            absences.extend(pairs.iter().map(|(short, _)| *short));
        } else if fits(&mut pairs.iter().map(|(_, longest)| longest)) {
            absences.extend(pairs.iter().map(|(_, longest)| *longest));
        } else {
            return None;
        }
    }
    Some(absences)
}

fn leaving(analysis: &Analysis, absences: &[Absence]) -> Edit {
    let mut edit = Edit::default();
    for &Absence { buffer, interval } in absences {
        edit.leave(&analysis.usage.problem, buffer, interval);
    }
    edit
}

/// The most bytes that leave in one step.
fn most_moved(analysis: &Analysis, absences: &[Absence]) -> Bytes {
    let mut by_step: BTreeMap<usize, Bytes> = BTreeMap::new();
    for absence in absences {
        *by_step.entry(analysis.families.step_of(absence.interval.lower)).or_default() += analysis.size(absence.buffer);
    }
    by_step.into_values().max().unwrap_or_default()
}
