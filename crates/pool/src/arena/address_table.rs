//! A number for each of many places in a range of addresses, found without a search. Parts of the table are made when a place
//! in them is first used, and take memory where they are written.

/// How many entries a leaf has.
const ENTRIES: usize = 1 << 16;

/// Numbers by offsets. An entry stands for `1 << shift` bytes; it has zero, or its number and one.
#[derive(Debug)]
pub(super) struct AddressTable {
    shift: u32,
    leaves: Vec<Option<Box<[u32]>>>,
}

impl AddressTable {
    /// A table with nothing in it and an entry for every `bytes`, a power of two.
    pub(super) fn new(bytes: u64) -> Self {
        Self { shift: bytes.max(1).ilog2(), leaves: Vec::new() }
    }

    /// What an entry stands for.
    pub(super) fn entry_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// The number of the entry that `offset` lies in.
    #[inline]
    pub(super) fn get(&self, offset: u64) -> Option<u32> {
        let (leaf, entry) = self.place(offset);
        self.leaves.get(leaf)?.as_ref()?[entry].checked_sub(1)
    }

    /// Gives the entry that `offset` lies in a number, or takes it away.
    #[inline]
    pub(super) fn set(&mut self, offset: u64, number: Option<u32>) {
        let (leaf, entry) = self.place(offset);
        if self.leaves.len() <= leaf {
            self.leaves.resize_with(leaf + 1, || None);
        }
        // Zeros come from the system without a write.
        let leaf = self.leaves[leaf].get_or_insert_with(|| vec![0; ENTRIES].into());
        leaf[entry] = number.map_or(0, |number| number + 1);
    }

    fn place(&self, offset: u64) -> (usize, usize) {
        let entry = (offset >> self.shift) as usize;
        (entry / ENTRIES, entry % ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_entry_has_the_number_that_it_was_given_last(
            changes in prop::collection::vec((0..64_u64, 0..3_u64, prop::option::of(0..100_u32)), 0..200),
        ) {
            let mut table = AddressTable::new(512);
            let mut model = BTreeMap::new();
            // Neighbours, and entries of the same leaf and of another.
            let offset = |near: u64, far: u64| 512 * (near + [0, 5 * 1024, 3 << 20][far as usize]);
            for (near, far, number) in changes {
                table.set(offset(near, far), number);
                model.insert(offset(near, far), number);
            }
            for (near, far) in (0..64).flat_map(|near| (0..3).map(move |far| (near, far))) {
                let expected = model.get(&offset(near, far)).copied().flatten();
                prop_assert_eq!(table.get(offset(near, far)), expected);
                prop_assert_eq!(table.get(offset(near, far) + 511), expected);
            }
        }
    }
}
