//! Which buffers are one and the same tensor, step after step, and which are of one make: a change to a program reaches
//! all of them, and a peak that comes again in every step is lowered only by a change to all.

use std::collections::BTreeMap;

use lowtide_core::{Alike, Alive, Bond, BufferIndex, Bytes, Family, Label, Lifetime, StreamId, TextIndex, Usage};
use rustc_hash::{FxHashMap, FxHashSet};

/// A buffer that lives for less than this part of a step is on its way from one operator to the next.
const BRIEF: u64 = 16;

/// How many allocations may lie between one that matters and a buffer's end, and how much smaller than that buffer they
/// must be not to matter.
const SMALL_ONES: usize = 8;
const SMALL: u64 = 64;

/// What buffers of one make have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Make {
    pub size: Bytes,
    pub site: Option<TextIndex>,
    pub stream: StreamId,
    /// How many steps end while it lives; two stands for more.
    pub crossings: u8,
}

/// A buffer among those of its make: in which step it begins, or how long it lives where no steps are known; and when
/// it begins.
type Entry = (Make, u64, i64, BufferIndex);

/// All buffers by beginning and by make.
pub(super) struct Families<'a> {
    usage: &'a Usage,
    by_begin: Vec<(i64, BufferIndex)>,
    by_make: Vec<Entry>,
    /// Where each step begins in `by_begin`, what follows the last one included; empty where fewer than two are known.
    steps: Vec<usize>,
    /// How many events a step has.
    step_length: u64,
    /// When the last buffer ends.
    pub end: i64,
}

impl<'a> Families<'a> {
    pub fn new(usage: &'a Usage) -> Self {
        let begin = |index: BufferIndex| (usage.problem.buffer(index).lifetime.lower, index);
        let mut by_begin: Vec<(i64, BufferIndex)> = usage.problem.indices().map(begin).collect();
        by_begin.sort_unstable();
        let (first, last) = (usage.steps.first(), usage.steps.last());
        let mut families = Self { usage, by_begin, by_make: Vec::new(), steps: Vec::new(), step_length: 0, end: 0 };
        let span = usage.span();
        (families.step_length, families.end) = (span.end.abs_diff(span.start), span.end);
        if let (Some(first), Some(last)) = (first, last)
            && first.at < last.at
        {
            families.step_length = last.at.abs_diff(first.at) / (usage.steps.len() as u64 - 1);
            let begun = |time: i64| families.by_begin.partition_point(|&(begin, _)| begin <= time);
            let closed = usage.steps.iter().map(|end| begun(end.at));
            families.steps = std::iter::once(0).chain(closed).collect();
        }
        let mut by_make: Vec<Entry> = usage.problem.indices().map(|index| families.entry(index)).collect();
        by_make.sort_unstable();
        families.by_make = by_make;
        families
    }

    fn life(&self, index: BufferIndex) -> Lifetime {
        self.usage.problem.buffer(index).lifetime
    }

    /// Whether there are steps enough for tensors to come again in them.
    pub fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    fn entry(&self, index: BufferIndex) -> Entry {
        let life = self.life(index);
        let slot = if self.has_steps() { self.step_of(life.lower) as u64 } else { life.length() };
        (self.make(index), slot, life.lower, index)
    }

    /// The step, counted from zero, that `time` lies in.
    pub fn step_of(&self, time: i64) -> usize {
        self.usage.steps.partition_point(|end| end.at < time)
    }

    /// What `index` has in common with others of its make.
    pub fn make(&self, index: BufferIndex) -> Make {
        let label = self.usage.label(index);
        let life = self.life(index);
        let crossed =
            if self.has_steps() { self.step_of(life.upper).saturating_sub(self.step_of(life.lower)) } else { 0 };
        let size = self.usage.problem.buffer(index).size;
        Make { size, site: label.site, stream: label.stream, crossings: crossed.min(2) as u8 }
    }

    /// Every buffer of that size, site and stream.
    pub fn of_make(&self, make: Make) -> impl Iterator<Item = BufferIndex> + '_ {
        let same = move |other: &Make| (other.size, other.site, other.stream) == (make.size, make.site, make.stream);
        let from = self.by_make.partition_point(|entry| entry.0 < Make { crossings: 0, ..make });
        self.by_make[from..].iter().take_while(move |entry| same(&entry.0)).map(|entry| entry.3)
    }

    /// Whether `index` is on its way from one operator to the next rather than kept.
    pub fn is_brief(&self, index: BufferIndex) -> bool {
        self.life(index).length().saturating_mul(BRIEF) < self.step_length
    }

    /// When the program let go of `index`.
    pub fn let_go(&self, index: BufferIndex) -> i64 {
        let Lifetime { lower, upper } = self.life(index);
        self.usage.label(index).freed.map_or(upper, |freed| freed.clamp(lower, upper))
    }

    /// What `index` is in `step`, counted from zero: the buffer that came at the same place in a step with as many
    /// allocations, or else the one of the same make that came as the same one of these.
    pub fn in_step(&self, index: BufferIndex, step: usize) -> Option<BufferIndex> {
        let entry = self.entry(index);
        self.at_same_place(index, entry.1 as usize, step).or_else(|| {
            let from = self.by_make.partition_point(|other| (other.0, other.1) < (entry.0, entry.1));
            let place = self.by_make[from..].partition_point(|other| *other < entry);
            let there = self.by_make.partition_point(|other| (other.0, other.1) < (entry.0, step as u64));
            let found = self.by_make.get(there + place)?;
            ((found.0, found.1) == (entry.0, step as u64)).then_some(found.3)
        })
    }

    fn at_same_place(&self, index: BufferIndex, own: usize, step: usize) -> Option<BufferIndex> {
        let allocations = |step: usize| {
            let end = self.steps.get(step + 1).copied().unwrap_or(self.by_begin.len());
            Some(&self.by_begin[(*self.steps.get(step)?).min(end)..end])
        };
        let (here, there) = (allocations(own)?, allocations(step)?);
        if here.len() != there.len() {
            return None;
        }
        let (_, found) = there[here.binary_search(&(self.life(index).lower, index)).ok()?];
        let into_step = |index: BufferIndex, step: usize| {
            let last = step.checked_sub(1).map(|last| self.usage.steps[last].at);
            last.map(|last| self.life(index).lower.wrapping_sub(last))
        };
        let (one, other) = (self.make(index), self.make(found));
        let same = into_step(index, own) == into_step(found, step) && Make { size: other.size, ..one } == other;
        same.then_some(found)
    }

    /// What `index` is at other times, in no order: one in each other step, or where no steps are known all of its make
    /// that live as long.
    fn elsewhere(&self, index: BufferIndex) -> Vec<BufferIndex> {
        let entry = self.entry(index);
        if self.has_steps() {
            let others = (0..self.steps.len()).filter(|&step| step as u64 != entry.1);
            return others.filter_map(|step| self.in_step(index, step)).collect();
        }
        let from = self.by_make.partition_point(|other| (other.0, other.1) < (entry.0, entry.1));
        let same = self.by_make[from..].iter().take_while(|other| (other.0, other.1) == (entry.0, entry.1));
        same.map(|other| other.3).filter(|&other| other != index).collect()
    }

    /// The family of `alive`. One tensor stands alone where no steps are known.
    pub fn family(&self, bond: Bond, alive: Vec<BufferIndex>) -> Family {
        if bond == Bond::Tensor && !self.has_steps() {
            return Family { bond, alive, elsewhere: Vec::new() };
        }
        let mut present = alive.clone();
        present.sort_unstable();
        let mut elsewhere: Vec<BufferIndex> = alive.iter().flat_map(|&index| self.elsewhere(index)).collect();
        elsewhere.retain(|index| present.binary_search(index).is_err());
        elsewhere.sort_unstable_by_key(|&index| (self.life(index).lower, index));
        elsewhere.dedup();
        Family { bond, alive, elsewhere }
    }

    /// Families of one tensor of `alive`: itself, and where no steps are known also with all that are like it.
    pub fn of_tensor(&self, alive: BufferIndex) -> impl Iterator<Item = Family> + '_ {
        let wider = (!self.has_steps()).then_some(Bond::Alike);
        std::iter::once(Bond::Tensor).chain(wider).map(move |bond| self.family(bond, vec![alive]))
    }

    /// Families that `alive`, the largest first, falls into, from single tensors to categories: of each bond the `most`
    /// that hold most, none twice.
    pub fn of_alive(&self, alive: &[Alive], most: usize) -> Vec<Family> {
        let tensors = alive.iter().take(most).map(|alive| self.family(Bond::Tensor, vec![alive.buffer]));
        let mut families: Vec<Family> = tensors.collect();
        let alike = grouped(alive, |index| Some(self.make(index))).into_iter().filter(|group| group.buffers.len() > 1);
        families.extend(alike.take(most).map(|group| self.family(Bond::Alike, group.buffers)));
        for (bond, text) in [(Bond::Site, site as fn(&Label) -> _), (Bond::Category, category)] {
            let mut wider = self.of_text(alive, most, bond, text);
            wider.retain(|wide| families.iter().all(|known| known.alive != wide.alive));
            families.append(&mut wider);
        }
        families
    }

    /// Families of all, at any time, that have a text in common and stay for as many steps.
    fn of_text(&self, alive: &[Alive], most: usize, bond: Bond, text: fn(&Label) -> Option<TextIndex>) -> Vec<Family> {
        let key = |index: BufferIndex| Some((text(self.usage.label(index))?, self.make(index).crossings));
        let groups = grouped(alive, key).into_iter().filter(|group| group.buffers.len() > 1).take(most);
        let mut families: Vec<Family> =
            groups.map(|group| Family { bond, alive: group.buffers, elsewhere: Vec::new() }).collect();
        let place_of: FxHashMap<_, usize> =
            families.iter().enumerate().map(|(place, family)| (key(family.alive[0]), place)).collect();
        let present: FxHashSet<BufferIndex> = alive.iter().map(|alive| alive.buffer).collect();
        for &(_, index) in self.by_begin.iter().filter(|(_, index)| !present.contains(index)) {
            if let Some(&place) = key(index).and_then(|key| place_of.get(&Some(key))) {
                families[place].elsewhere.push(index);
            }
        }
        families
    }

    /// What is `alive` by size, stream and site, each in the order of its beginning.
    pub fn alike(&self, alive: &[Alive]) -> Vec<Alike> {
        let mut groups = grouped(alive, |index| Some(Make { crossings: 0, ..self.make(index) }));
        for group in &mut groups {
            group.buffers.sort_by_key(|&index| (self.life(index).lower, index));
        }
        groups
    }

    /// How many buffers begin before `time`.
    fn begun(&self, time: i64) -> usize {
        self.by_begin.partition_point(|&(begin, _)| begin < time)
    }

    /// What the last allocation that matters in front of the end of `index` made, if the program held `index` then: when
    /// and what, all that began at once. Much smaller ones in between are passed over. Nothing for one that is there to
    /// the last.
    pub fn made_before_end(&self, index: BufferIndex) -> &[(i64, BufferIndex)] {
        let life = self.life(index);
        if life.upper >= self.end {
            return &[];
        }
        let least = self.usage.problem.buffer(index).size.get().div_ceil(SMALL);
        let matters = |&&(_, other): &&(i64, BufferIndex)| self.usage.problem.buffer(other).size.get() >= least;
        let end = self.begun(life.upper);
        let last = self.by_begin[end.saturating_sub(SMALL_ONES)..end].iter().rev().find(matters);
        let held = |&made: &i64| life.lower < made && made < self.let_go(index);
        match last.map(|&(made, _)| made).filter(held) {
            Some(made) => &self.by_begin[self.begun(made)..self.begun(made + 1)],
            None => &[],
        }
    }

    /// A buffer of the same make that began after `index` and at most `events` before its end.
    pub fn successor_at_end(&self, index: BufferIndex, events: i64) -> Option<BufferIndex> {
        let end = self.let_go(index);
        let near = end.saturating_sub(events).max(self.life(index).lower + 1).min(end);
        let near = &self.by_begin[self.begun(near)..self.begun(end)];
        near.iter().map(|&(_, other)| other).find(|&other| self.make(other) == self.make(index))
    }
}

fn site(label: &Label) -> Option<TextIndex> {
    label.site
}

fn category(label: &Label) -> Option<TextIndex> {
    label.category
}

/// Buffers by key, each group in the order given, those first that hold most together.
pub(super) fn grouped<K: Ord>(alive: &[Alive], key: impl Fn(BufferIndex) -> Option<K>) -> Vec<Alike> {
    let mut place_of: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Alike> = Vec::new();
    for &Alive { buffer, bytes } in alive {
        let Some(key) = key(buffer) else { continue };
        let place = *place_of.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Alike { buffers: Vec::new(), bytes: Bytes::ZERO });
        }
        groups[place].buffers.push(buffer);
        groups[place].bytes += bytes;
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    groups
}
