//! What overlaps for a moment only: a buffer that goes right after another was made could be written over by it, or
//! could go before it.

use lowtide_core::{BufferIndex, Change, Family, Remedy};
use rustc_hash::FxHashMap;

use super::edit::Edit;
use super::scene::{CANDIDATES, Scene};

/// Pairs that could lie in one place.
pub(super) fn in_place(scene: &Scene) -> Vec<Remedy> {
    tensors(scene).filter_map(|family| in_place_of(scene, &family)).collect()
}

/// Buffers that could go earlier by one allocation.
pub(super) fn order(scene: &Scene) -> Vec<Remedy> {
    tensors(scene).filter_map(|family| order_of(scene, &family)).collect()
}

/// The tensors alive at the moment, the largest first, each with what it is at other times.
fn tensors<'a>(scene: &'a Scene) -> impl Iterator<Item = Family> + 'a {
    scene.alive.iter().take(CANDIDATES).flat_map(|alive| scene.families.of_tensor(alive.buffer))
}

fn in_place_of(scene: &Scene, family: &Family) -> Option<Remedy> {
    let pairs = chains(scene, pairs(scene, family, |input, output| can_overwrite(scene, input, output))?);
    let mut edit = Edit::default();
    for &(input, output) in &pairs {
        edit.join(input, output);
    }
    scene.remedy(Change::InPlace { pairs }, &edit)
}

fn order_of(scene: &Scene, family: &Family) -> Option<Remedy> {
    let pairs = pairs(scene, family, |buffer, before| {
        let (one, other) = (scene.usage.problem.buffer(buffer), scene.usage.problem.buffer(before));
        one.lifetime.upper < other.lifetime.upper && one.pool == other.pool
    })?;
    let mut edit = Edit::default();
    for &(buffer, before) in &pairs {
        edit.end(&scene.usage.problem, buffer, scene.life(before).lower);
    }
    scene.remedy(Change::Order { pairs }, &edit)
}

/// Each of the family with the largest buffer that suits it among those made right before its end; `None` where there
/// is none for the first, or it is not there at the moment.
fn pairs(
    scene: &Scene,
    family: &Family,
    suits: impl Fn(BufferIndex, BufferIndex) -> bool,
) -> Option<Vec<(BufferIndex, BufferIndex)>> {
    let pair = |buffer: BufferIndex| {
        let made = scene.families.made_before_end(buffer).iter().map(|&(_, made)| made);
        let made = made.filter(|&made| suits(buffer, made));
        Some((buffer, made.max_by_key(|&made| (scene.size(made), std::cmp::Reverse(made)))?))
    };
    let pairs: Vec<(BufferIndex, BufferIndex)> = family.buffers().filter_map(pair).collect();
    pairs.first().filter(|&&(buffer, made)| buffer == family.alive[0] && scene.is_alive(made))?;
    Some(pairs)
}

fn can_overwrite(scene: &Scene, input: BufferIndex, output: BufferIndex) -> bool {
    let (one, other) = (scene.usage.problem.buffer(input), scene.usage.problem.buffer(output));
    let streams = [input, output].map(|index| scene.usage.label(index).stream);
    other.size <= one.size
        && streams[0] == streams[1]
        && (one.pool, one.class) == (other.pool, other.class)
        && one.pin.is_none()
        && other.pin.is_none()
        && scene.account.can_join(input, output)
}

/// The pairs without those that would put more than two buffers into one place at a time. Several in a row may lie in
/// one place: each is written over the one before.
fn chains(scene: &Scene, pairs: Vec<(BufferIndex, BufferIndex)>) -> Vec<(BufferIndex, BufferIndex)> {
    let mut next: FxHashMap<BufferIndex, BufferIndex> = FxHashMap::default();
    let mut last: FxHashMap<BufferIndex, BufferIndex> = FxHashMap::default();
    let mut chains = Vec::with_capacity(pairs.len());
    for (input, output) in pairs {
        let gone = |before: &BufferIndex| scene.life(*before).upper <= scene.life(output).lower;
        let yet_to_come = |after: &BufferIndex| scene.life(*after).lower >= scene.life(input).upper;
        let free = !next.contains_key(&input) && !last.contains_key(&output);
        if free && last.get(&input).is_none_or(gone) && next.get(&output).is_none_or(yet_to_come) {
            next.insert(input, output);
            last.insert(output, input);
            chains.push((input, output));
        }
    }
    chains
}
