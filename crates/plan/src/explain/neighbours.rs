//! What overlaps for a moment only: a buffer that goes right after another was made could be written over by it, or
//! could go before it.

use lowtide_core::{BufferIndex, Change, Family, Remedy};
use rustc_hash::FxHashMap;

use super::analysis::{Analysis, CANDIDATES};
use super::edit::Edit;

/// Pairs that could lie in one place.
pub(super) fn in_place(analysis: &Analysis) -> Vec<Remedy> {
    tensors(analysis).filter_map(|family| in_place_of(analysis, &family)).collect()
}

/// Buffers that could go earlier by one allocation.
pub(super) fn order(analysis: &Analysis) -> Vec<Remedy> {
    tensors(analysis).filter_map(|family| order_of(analysis, &family)).collect()
}

/// The tensors alive at the moment, the largest first, each with what it is at other times.
fn tensors<'a>(analysis: &'a Analysis) -> impl Iterator<Item = Family> + 'a {
    analysis.alive.iter().take(CANDIDATES).flat_map(|alive| analysis.families.of_tensor(alive.buffer))
}

fn in_place_of(analysis: &Analysis, family: &Family) -> Option<Remedy> {
    let pairs = chains(analysis, pairs(analysis, family, |input, output| can_overwrite(analysis, input, output))?);
    let mut edit = Edit::default();
    for &(input, output) in &pairs {
        edit.join(input, output);
    }
    analysis.remedy(Change::InPlace { pairs }, &edit)
}

fn order_of(analysis: &Analysis, family: &Family) -> Option<Remedy> {
    let pairs = pairs(analysis, family, |buffer, before| {
        let (one, other) = (analysis.usage.problem.buffer(buffer), analysis.usage.problem.buffer(before));
        one.lifetime.upper < other.lifetime.upper && one.pool == other.pool
    })?;
    let mut edit = Edit::default();
    for &(buffer, before) in &pairs {
        edit.end(&analysis.usage.problem, buffer, analysis.life(before).lower);
    }
    analysis.remedy(Change::Order { pairs }, &edit)
}

/// Each of the family with the largest buffer that suits it among those made right before its end; `None` where there
/// is none for the first, or it is not there at the moment.
fn pairs(
    analysis: &Analysis,
    family: &Family,
    suits: impl Fn(BufferIndex, BufferIndex) -> bool,
) -> Option<Vec<(BufferIndex, BufferIndex)>> {
    let pair = |buffer: BufferIndex| {
        let made = analysis.families.made_before_end(buffer).iter().map(|&(_, made)| made);
        let made = made.filter(|&made| suits(buffer, made));
        Some((buffer, made.max_by_key(|&made| (analysis.size(made), std::cmp::Reverse(made)))?))
    };
    let pairs: Vec<(BufferIndex, BufferIndex)> = family.buffers().filter_map(pair).collect();
    pairs.first().filter(|&&(buffer, made)| buffer == family.alive[0] && analysis.is_alive(made))?;
    Some(pairs)
}

fn can_overwrite(analysis: &Analysis, input: BufferIndex, output: BufferIndex) -> bool {
    let (one, other) = (analysis.usage.problem.buffer(input), analysis.usage.problem.buffer(output));
    let streams = [input, output].map(|index| analysis.usage.label(index).stream);
    other.size <= one.size
        && streams[0] == streams[1]
        && (one.pool, one.class) == (other.pool, other.class)
        && one.pin.is_none()
        && other.pin.is_none()
        && analysis.account.can_join(input, output)
}

/// The pairs without those that would put more than two buffers into one place at a time. Several in a row may lie in
/// one place: each is written over the one before.
fn chains(analysis: &Analysis, pairs: Vec<(BufferIndex, BufferIndex)>) -> Vec<(BufferIndex, BufferIndex)> {
    let mut next: FxHashMap<BufferIndex, BufferIndex> = FxHashMap::default();
    let mut last: FxHashMap<BufferIndex, BufferIndex> = FxHashMap::default();
    let mut chains = Vec::with_capacity(pairs.len());
    for (input, output) in pairs {
        let gone = |before: &BufferIndex| analysis.life(*before).upper <= analysis.life(output).lower;
        let yet_to_come = |after: &BufferIndex| analysis.life(*after).lower >= analysis.life(input).upper;
        let free = !next.contains_key(&input) && !last.contains_key(&output);
        if free && last.get(&input).is_none_or(gone) && next.get(&output).is_none_or(yet_to_come) {
            next.insert(input, output);
            last.insert(output, input);
            chains.push((input, output));
        }
    }
    chains
}
