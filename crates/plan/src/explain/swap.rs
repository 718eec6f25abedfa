//! Moving buffers elsewhere while memory is high: for each family the smallest windows that bring the lowest peak which
//! any absence of it can bring.

use std::collections::BTreeMap;

use lowtide_core::{Absence, BufferIndex, Bytes, Change, Family, Lifetime, Remedy};
use rustc_hash::FxHashSet;

use super::edit::Edit;
use super::scene::Scene;

/// A shorter absence is none.
const SHORTEST: u64 = 2;

/// The families that could be elsewhere while memory is high.
pub(super) fn swaps(scene: &Scene, families: &[Family]) -> Vec<Remedy> {
    families.iter().filter_map(|family| swap(scene, family)).collect()
}

fn swap(scene: &Scene, family: &Family) -> Option<Remedy> {
    let stays: Vec<Absence> = family.buffers().flat_map(|buffer| longest_absences(scene, buffer)).collect();
    let level = scene.height_after(&leaving(scene, &stays)).filter(|&level| level < scene.height)?;
    let needed: Vec<(Absence, Absence)> =
        stays.iter().filter_map(|&longest| Some((needed(scene, &longest, level)?, longest))).collect();
    let mut absences = in_time(scene, needed)?;
    let edit = leaving(scene, &absences);
    absences.sort_by_key(|absence| (absence.window, absence.buffer));
    let per_step = most_moved(scene, &absences);
    let moved: FxHashSet<BufferIndex> = absences.iter().map(|absence| absence.buffer).collect();
    let (alive, elsewhere) =
        family.buffers().filter(|buffer| moved.contains(buffer)).partition(|&buffer| scene.is_alive(buffer));
    let family = Family { bond: family.bond, alive, elsewhere };
    scene.remedy(Change::Swap { family, absences, per_step }, &edit)
}

/// The longest that `buffer` can be away: while the program holds it, but for the first event and the last, step by
/// step, because what is kept over several steps is used in each. One on its way between operators stays.
fn longest_absences(scene: &Scene, buffer: BufferIndex) -> Vec<Absence> {
    let life = Lifetime { upper: scene.families.let_go(buffer), ..scene.life(buffer) };
    if scene.families.is_brief(buffer) || life.length() < SHORTEST + 2 {
        return Vec::new();
    }
    let (mut from, end) = (life.lower + 1, life.upper - 1);
    let first = scene.usage.steps.partition_point(|step| step.at < from);
    let mut absences = Vec::new();
    for border in
        scene.usage.steps[first..].iter().map(|step| step.at.saturating_add(1)).take_while(|&at| at < end).chain([end])
    {
        absences.push(Absence { buffer, window: Lifetime { lower: from, upper: border } });
        from = border;
    }
    absences.retain(|absence| absence.window.length() >= SHORTEST);
    absences
}

/// The part of `longest` from the first to the last moment above `level`, and no shorter than an absence must be.
fn needed(scene: &Scene, longest: &Absence, level: u64) -> Option<Absence> {
    let most = longest.window;
    let lower = scene.curve.first_above(scene.in_scope(most), level)?;
    let upper = scene.curve.last_above(scene.in_scope(most), level)?;
    let upper = upper.max(lower + SHORTEST as i64).min(most.upper);
    let lower = lower.min(upper - SHORTEST as i64);
    Some(Absence { window: Lifetime { lower, upper }, ..*longest })
}

/// What a link to the host carries in a nanosecond, out or back: a wide one of today.
const LINK: f64 = 50.0;

/// Absences that leave time to move everything out and back: those needed, or, where these are too short and there is a
/// clock that says so, the longest; `None` where these are too short as well.
fn in_time(scene: &Scene, needed: Vec<(Absence, Absence)>) -> Option<Vec<Absence>> {
    let Some(clock) = &scene.usage.clock else { return Some(needed.into_iter().map(|(short, _)| short).collect()) };
    let time = |from: i64, to: i64| clock.at(to).saturating_sub(clock.at(from)) as f64;
    let fits = |absences: &mut dyn Iterator<Item = &Absence>| {
        let (mut bytes, mut from, mut to) = (0_u64, i64::MAX, i64::MIN);
        for &Absence { buffer, window } in absences {
            let size = scene.size(buffer).get();
            if 2.0 * size as f64 > LINK * time(window.lower, window.upper) {
                return false;
            }
            (bytes, from, to) = (bytes + size, from.min(window.lower), to.max(window.upper));
        }
        bytes == 0 || 2.0 * bytes as f64 <= LINK * time(from, to)
    };
    let step = |(short, _): &(Absence, Absence)| scene.families.step_of(short.window.lower);
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

fn leaving(scene: &Scene, absences: &[Absence]) -> Edit {
    let mut edit = Edit::default();
    for &Absence { buffer, window } in absences {
        edit.leave(&scene.usage.problem, buffer, window);
    }
    edit
}

/// The most bytes that leave in one step.
fn most_moved(scene: &Scene, absences: &[Absence]) -> Bytes {
    let mut by_step: BTreeMap<usize, Bytes> = BTreeMap::new();
    for absence in absences {
        *by_step.entry(scene.families.step_of(absence.window.lower)).or_default() += scene.size(absence.buffer);
    }
    by_step.into_values().max().unwrap_or_default()
}
