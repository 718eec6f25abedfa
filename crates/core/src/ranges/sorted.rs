//! Entries in the order of their keys, in arrays of a few dozen: nearly as fast to search as one array, and never much to
//! move when one comes or goes.

use std::cmp::Ordering;
use std::fmt::Debug;

/// An array of more entries is divided in two.
const MOST: usize = 64;

/// Two neighbours that have no more than this together become one.
const FEW: usize = 24;

/// What is kept: its key, which no other entry has, and a weight by which entries are searched.
pub(super) trait Entry: Copy + Debug {
    type Key: Ord + Copy + Debug;

    fn key(&self) -> Self::Key;

    fn weight(&self) -> u64 {
        0
    }
}

/// Where an entry is, or would be. Any change makes positions void, but for the one that is said to stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    chunk: usize,
    index: usize,
}

#[derive(Clone, Debug)]
struct Chunk<E: Entry> {
    first: E::Key,
    /// The most that an entry weighs.
    heaviest: u64,
    /// Never none.
    entries: Vec<E>,
}

impl<E: Entry> Chunk<E> {
    fn of(entries: Vec<E>) -> Option<Self> {
        let first = entries.first()?.key();
        let heaviest = heaviest(&entries);
        Some(Self { first, heaviest, entries })
    }

    /// Puts another entry at an index.
    fn replace(&mut self, index: usize, entry: E) {
        let gone = std::mem::replace(&mut self.entries[index], entry);
        self.first = self.entries[0].key();
        match entry.weight().cmp(&self.heaviest) {
            Ordering::Less if gone.weight() == self.heaviest => self.heaviest = heaviest(&self.entries),
            Ordering::Less => {}
            _ => self.heaviest = entry.weight(),
        }
    }
}

fn heaviest<E: Entry>(entries: &[E]) -> u64 {
    entries.iter().map(Entry::weight).max().unwrap_or(0)
}

/// Entries by their keys.
///
/// To find, add or remove one takes time that grows with the logarithm of their number, and now and then with the number of
/// chunks.
#[derive(Clone, Debug)]
pub(super) struct Sorted<E: Entry> {
    chunks: Vec<Chunk<E>>,
}

impl<E: Entry> Default for Sorted<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Entry> Sorted<E> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Where the first entry is whose key is not below `key`.
    pub(super) fn lower(&self, key: E::Key) -> Position {
        self.search(|own| own < key)
    }

    /// Where the first entry is whose key is above `key`.
    pub(super) fn upper(&self, key: E::Key) -> Position {
        self.search(|own| own <= key)
    }

    /// Where the first entry is that is not below; it may be behind the last of a chunk.
    fn search(&self, is_below: impl Fn(E::Key) -> bool) -> Position {
        let chunk = self.chunks.partition_point(|chunk| is_below(chunk.first)).saturating_sub(1);
        let entries = self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk.entries);
        Position { chunk, index: entries.partition_point(|entry| is_below(entry.key())) }
    }

    /// The entry at a position; none behind the last.
    pub(super) fn get(&self, at: Position) -> Option<E> {
        let chunk = self.chunks.get(at.chunk)?;
        match chunk.entries.get(at.index) {
            Some(&entry) => Some(entry),
            None => self.chunks.get(at.chunk + 1).map(|chunk| chunk.entries[0]),
        }
    }

    /// The position before another; none before the first.
    pub(super) fn before(&self, at: Position) -> Option<Position> {
        if at.index > 0 {
            return Some(Position { index: at.index - 1, ..at });
        }
        let chunk = at.chunk.checked_sub(1)?;
        Some(Position { chunk, index: self.chunks[chunk].entries.len() - 1 })
    }

    /// The first entry that weighs at least so much.
    pub(super) fn first_weighing(&self, least: u64) -> Option<E> {
        let chunk = self.chunks.iter().find(|chunk| chunk.heaviest >= least)?;
        chunk.entries.iter().find(|entry| entry.weight() >= least).copied()
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, entry: E) {
        self.insert_at(self.lower(entry.key()), entry);
    }

    /// Adds an entry where its key belongs.
    pub(super) fn insert_at(&mut self, at: Position, entry: E) {
        let Position { mut chunk, mut index } = at;
        if self.chunks.is_empty() {
            self.chunks.extend(Chunk::of(vec![entry]));
            return;
        }
        if self.chunks[chunk].entries.len() >= MOST {
            self.divide(chunk);
            let half = self.chunks[chunk].entries.len();
            if index > half {
                (chunk, index) = (chunk + 1, index - half);
            }
        }
        let chunk = &mut self.chunks[chunk];
        chunk.entries.insert(index, entry);
        chunk.heaviest = chunk.heaviest.max(entry.weight());
        chunk.first = chunk.entries[0].key();
    }

    /// Takes the entry of a key out.
    pub(super) fn remove(&mut self, key: E::Key) {
        let at = self.lower(key);
        if self.get(at).is_some_and(|entry| entry.key() == key) {
            self.remove_at(at);
        }
    }

    /// Takes the entry at a position out.
    pub(super) fn remove_at(&mut self, at: Position) {
        let Some(Position { chunk: number, index }) = self.proper(at) else { return };
        let chunk = &mut self.chunks[number];
        let gone = chunk.entries.remove(index);
        let Some(first) = chunk.entries.first() else {
            self.chunks.remove(number);
            return;
        };
        chunk.first = first.key();
        if gone.weight() == chunk.heaviest {
            chunk.heaviest = heaviest(&chunk.entries);
        }
        if chunk.entries.len() < FEW / 2 {
            self.join(number);
            self.join(number.saturating_sub(1));
        }
    }

    /// Puts another entry where one is, whose key lies between those beside it. The position stays.
    pub(super) fn replace_at(&mut self, at: Position, entry: E) {
        let Some(Position { chunk, index }) = self.proper(at) else { return };
        self.chunks[chunk].replace(index, entry);
    }

    /// Puts another entry, with any key that no entry has, in the place of the one of `key`.
    pub(super) fn replace(&mut self, key: E::Key, entry: E) {
        let Some(Position { chunk: number, index }) = self.proper(self.lower(key)) else { return };
        let wanted = entry.key();
        let is_above = number == 0 || wanted >= self.chunks[number].first;
        let is_below = self.chunks.get(number + 1).is_none_or(|next| wanted < next.first);
        if !(is_above && is_below) {
            self.remove_at(Position { chunk: number, index });
            self.insert(entry);
            return;
        }
        let chunk = &mut self.chunks[number];
        let entries = &mut chunk.entries;
        let mut place = entries.partition_point(|entry| entry.key() < wanted);
        if place > index {
            place -= 1;
            entries[index..=place].rotate_left(1);
        } else {
            entries[place..=index].rotate_right(1);
        }
        chunk.replace(place, entry);
    }

    /// The entries from one position up to another.
    pub(super) fn between(&self, from: Position, to: Position) -> Between<'_, E> {
        Between { sorted: self, from, to }
    }

    /// All entries.
    pub(super) fn iter(&self) -> Between<'_, E> {
        self.between(Position { chunk: 0, index: 0 }, self.end())
    }

    /// Behind the last.
    pub(super) fn end(&self) -> Position {
        Position { chunk: self.chunks.len(), index: 0 }
    }

    /// The same position inside a chunk; none behind the last entry.
    fn proper(&self, at: Position) -> Option<Position> {
        let chunk = self.chunks.get(at.chunk)?;
        if at.index < chunk.entries.len() {
            return Some(at);
        }
        (at.chunk + 1 < self.chunks.len()).then_some(Position { chunk: at.chunk + 1, index: 0 })
    }

    fn divide(&mut self, chunk: usize) {
        let lower = &mut self.chunks[chunk];
        let upper = Chunk::of(lower.entries.split_off(MOST / 2));
        lower.heaviest = heaviest(&lower.entries);
        if let Some(upper) = upper {
            self.chunks.insert(chunk + 1, upper);
        }
    }

    /// Makes a chunk and the next one array where both are short.
    fn join(&mut self, number: usize) {
        let Some(next) = self.chunks.get(number + 1) else { return };
        if self.chunks[number].entries.len() + next.entries.len() > FEW {
            return;
        }
        let next = self.chunks.remove(number + 1);
        let chunk = &mut self.chunks[number];
        chunk.entries.extend(next.entries);
        chunk.heaviest = chunk.heaviest.max(next.heaviest);
    }
}

/// The entries between two positions, in order.
#[derive(Clone, Debug)]
pub(super) struct Between<'a, E: Entry> {
    sorted: &'a Sorted<E>,
    from: Position,
    to: Position,
}

impl<E: Entry> Between<'_, E> {
    /// Whether nothing is left, where `from` lies in a chunk.
    fn is_over(&self, from: Position) -> bool {
        let to = self.sorted.proper(self.to).unwrap_or_else(|| self.sorted.end());
        (from.chunk, from.index) >= (to.chunk, to.index)
    }
}

impl<E: Entry> Iterator for Between<'_, E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        let at = self.sorted.proper(self.from).filter(|&at| !self.is_over(at))?;
        self.from = Position { index: at.index + 1, ..at };
        self.sorted.get(at)
    }
}

impl<E: Entry> DoubleEndedIterator for Between<'_, E> {
    fn next_back(&mut self) -> Option<E> {
        self.sorted.proper(self.from).filter(|&at| !self.is_over(at))?;
        self.to = self.sorted.before(self.to)?;
        self.sorted.get(self.to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Pair {
        key: u16,
        weight: u64,
    }

    impl Entry for Pair {
        type Key = u16;

        fn key(&self) -> u16 {
            self.key
        }

        fn weight(&self) -> u64 {
            self.weight
        }
    }

    /// Adds what is missing, and takes out or replaces what is there; the same in a plain vector.
    fn change(sorted: &mut Sorted<Pair>, model: &mut Vec<Pair>, pair: Pair, removes: bool) {
        match model.binary_search_by_key(&pair.key, |own| own.key) {
            Ok(place) if removes => {
                model.remove(place);
                sorted.remove(pair.key);
            }
            Ok(place) => {
                let gone = model.remove(place);
                let other = Pair { key: pair.weight as u16 * 12, ..pair };
                match model.binary_search_by_key(&other.key, |own| own.key) {
                    // The key is another's.
                    Ok(_) => {
                        model.insert(place, pair);
                        sorted.replace_at(sorted.lower(pair.key), pair);
                    }
                    Err(place) => {
                        model.insert(place, other);
                        sorted.replace(gone.key, other);
                    }
                }
            }
            Err(place) if !removes => {
                model.insert(place, pair);
                sorted.insert(pair);
            }
            Err(_) => sorted.remove(pair.key),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn entries_are_those_of_a_sorted_vector(
            phases in prop::collection::vec((any::<bool>(), prop::collection::vec((0..600_u16, 0..50_u64), 0..900)), 1..5),
            asked in 0..600_u16,
            to in 0..600_u16,
        ) {
            let (mut sorted, mut model) = (Sorted::new(), Vec::new());
            for (removes, pairs) in phases {
                for (key, weight) in pairs {
                    change(&mut sorted, &mut model, Pair { key, weight }, removes && weight > 5);
                }
                prop_assert_eq!(sorted.iter().collect::<Vec<_>>(), model.clone());
                prop_assert!(sorted.iter().rev().eq(model.iter().rev().copied()));
                prop_assert_eq!(sorted.is_empty(), model.is_empty());
                for least in [0, 25, 48, 49, 50] {
                    let first = model.iter().find(|pair| pair.weight >= least).copied();
                    prop_assert_eq!(sorted.first_weighing(least), first);
                }
                let place = model.partition_point(|pair| pair.key < asked);
                let behind = model.partition_point(|pair| pair.key <= asked);
                let before = sorted.before(sorted.lower(asked)).and_then(|at| sorted.get(at));
                prop_assert_eq!(before, place.checked_sub(1).map(|place| model[place]));
                prop_assert_eq!(sorted.get(sorted.lower(asked)), model.get(place).copied());
                prop_assert_eq!(sorted.get(sorted.upper(asked)), model.get(behind).copied());
                let end = model.partition_point(|pair| pair.key < to).max(place);
                let found = sorted.between(sorted.lower(asked), sorted.lower(to));
                prop_assert_eq!(found.clone().collect::<Vec<_>>(), model[place..end].to_vec());
                prop_assert!(found.rev().eq(model[place..end].iter().rev().copied()));
            }
        }
    }

    #[test]
    fn what_is_left_of_many_lies_in_few_arrays() {
        let mut sorted = Sorted::new();
        for key in 0..10_000 {
            sorted.insert(Pair { key, weight: 1 });
        }
        assert!(sorted.chunks.iter().all(|chunk| chunk.entries.len() <= MOST));
        for key in (0..10_000).filter(|key| key % 100 != 0) {
            sorted.remove(key);
        }
        assert_eq!(sorted.iter().count(), 100);
        assert!(sorted.chunks.len() <= 30, "{} arrays", sorted.chunks.len());
    }
}
