//! Which remedies are worth telling: of each kind the best, and then the best of all, none of which another makes idle.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lowtide_core::{Absence, Bond, BufferIndex, Bytes, Change, Family, Lateness, Problem, Release, Remedy, Usage};

/// The most remedies told, and the most of one kind.
const MOST: usize = 10;
const MOST_OF_A_KIND: usize = 3;

/// A wider change is told beside a narrower one it contains only where it saves this part more.
const WIDER: u64 = 20;

/// A remedy with what it is compared by.
struct Choice {
    remedy: Remedy,
    kind: u8,
    /// The bytes it touches.
    cost: Bytes,
    /// The buffers alive at the moment that it is about, in order.
    reach: Vec<BufferIndex>,
}

/// The remedies to tell: leaks, which grow without end, and then those that save most. Without a clock nobody knows whether
/// a link is fast enough for a swap, so that swaps come last.
pub(super) fn chosen(usage: &Usage, remedies: Vec<Remedy>) -> Vec<Remedy> {
    let problem = &usage.problem;
    let is_doubtful = |choice: &Choice| usage.clock.is_none() && matches!(choice.remedy.change, Change::Swap { .. });
    let mut choices: Vec<Choice> = remedies.into_iter().map(|remedy| choice(problem, remedy)).collect();
    choices.sort_by(|a, b| {
        let rank = |choice: &Choice| (!is_leak(choice), is_doubtful(choice));
        let key = |choice: &Choice| (rank(choice), Reverse(choice.remedy.saves), choice.cost, choice.kind);
        key(a).cmp(&key(b)).then_with(|| a.reach.cmp(&b.reach))
    });
    let mut cheapest: BTreeMap<u8, Bytes> = BTreeMap::new();
    choices.retain(|choice| {
        let before = cheapest.get(&choice.kind).copied();
        let cheaper = before.is_none_or(|before| choice.cost < before);
        if cheaper {
            cheapest.insert(choice.kind, choice.cost);
        }
        cheaper
    });
    let mut told: Vec<Vec<Absence>> = Vec::new();
    choices.retain(|choice| {
        let Change::Swap { absences, .. } = &choice.remedy.change else { return true };
        let is_new = !told.contains(absences);
        told.push(absences.clone());
        is_new
    });
    let idle: Vec<bool> = choices.iter().map(|wide| choices.iter().any(|narrow| replaces(narrow, wide))).collect();
    let mut kept = idle.iter();
    choices.retain(|_| kept.next().is_some_and(|&idle| !idle));
    picked(&choices).into_iter().map(|place| choices[place].remedy.clone()).collect()
}

fn is_leak(choice: &Choice) -> bool {
    matches!(&choice.remedy.change, Change::Release(Release { why: Lateness::Leak { .. }, .. }))
}

/// Whether `narrow` does nearly all that `wide` does, to fewer buffers.
fn replaces(narrow: &Choice, wide: &Choice) -> bool {
    let (less, more) = (narrow.remedy.saves.get(), wide.remedy.saves.get());
    narrow.kind == wide.kind
        && narrow.reach.len() < wide.reach.len()
        && more.saturating_sub(less) < more / WIDER
        && narrow.reach.iter().all(|buffer| wide.reach.binary_search(buffer).is_ok())
}

/// The places of the best of each kind and then of the best of all, in order.
fn picked(choices: &[Choice]) -> Vec<usize> {
    let mut picked: Vec<usize> = Vec::new();
    for most_of_a_kind in [1, MOST_OF_A_KIND] {
        for place in 0..choices.len() {
            let of_kind = picked.iter().filter(|&&other| choices[other].kind == choices[place].kind).count();
            if of_kind < most_of_a_kind && picked.len() < MOST && !picked.contains(&place) {
                picked.push(place);
            }
        }
    }
    picked.sort_unstable();
    picked
}

fn choice(problem: &Problem, remedy: Remedy) -> Choice {
    let size = |index: &BufferIndex| problem.buffer(*index).size;
    let (kind, mut reach) = match &remedy.change {
        Change::Plan => (0, Vec::new()),
        Change::InPlace { pairs } => (1, pairs.iter().take(1).map(|&(_, output)| output).collect()),
        Change::Order { pairs } => (2, pairs.iter().take(1).map(|&(buffer, _)| buffer).collect()),
        Change::Release(release) => (3, release.family.alive.clone()),
        Change::Split { family, .. } => (4, family.alive.clone()),
        // Moving one tensor is another kind of change than moving many.
        Change::Swap { family: Family { bond: Bond::Tensor, alive, .. }, .. } => (5, alive.clone()),
        Change::Swap { family, .. } => (6, family.alive.clone()),
        Change::Alignment { .. } => (7, Vec::new()),
    };
    reach.sort_unstable();
    let cost = match &remedy.change {
        Change::Swap { per_step, .. } => *per_step,
        _ => reach.iter().map(size).sum(),
    };
    Choice { remedy, kind, cost, reach }
}
