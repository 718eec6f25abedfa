//! What is known of each mark, in as little space as there are marks at a time. A mark that was forgotten is never
//! mistaken for a later one in its place.

use crate::source::Mark;

/// A value for each mark that is not forgotten.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, value: T) -> Mark {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        Mark(u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// The value of a mark, unless it was forgotten.
    pub(crate) fn get_mut(&mut self, mark: Mark) -> Option<&mut T> {
        self.slot(mark)?.value.as_mut()
    }

    /// The values of all marks that are not forgotten.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// Forgets a mark.
    pub(crate) fn remove(&mut self, mark: Mark) -> Option<T> {
        let slot = self.slot(mark)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(index(mark));
        Some(value)
    }

    fn slot(&mut self, mark: Mark) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(index(mark) as usize)?;
        (u64::from(slot.generation) == mark.0 >> 32).then_some(slot)
    }
}

/// The lower half of a mark is its place, the upper one how often that was used before.
fn index(mark: Mark) -> u32 {
    mark.0 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_mark_is_not_the_next_one_in_its_place() {
        let mut slots = Slots::default();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(slots.slots.len(), 1);
        assert_ne!(first, second);
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
    }

    #[test]
    fn a_mark_of_nobody_has_no_value() {
        let mut slots = Slots::<u8>::default();
        assert_eq!(slots.get_mut(Mark(0)), None);
        assert_eq!(slots.remove(Mark(u64::MAX)), None);
    }
}
