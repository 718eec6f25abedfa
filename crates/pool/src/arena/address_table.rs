//! A number for each of many places in a range of addresses, found without a search. Parts of the table are made when a place
//! in them is first used.

/// How many entries a leaf has, and how many leaves a branch has.
const ENTRIES: usize = 1024;
const NONE: u32 = u32::MAX;

type Leaf = Box<[u32]>;
type Branch = Box<[Option<Leaf>]>;

/// Numbers by offsets. An entry stands for `1 << shift` bytes.
#[derive(Debug)]
pub(super) struct AddressTable {
    shift: u32,
    branches: Vec<Option<Branch>>,
}

impl AddressTable {
    /// A table with nothing in it and an entry for every `bytes`, a power of two.
    pub(super) fn new(bytes: u64) -> Self {
        Self { shift: bytes.max(1).ilog2(), branches: Vec::new() }
    }

    /// What an entry stands for.
    pub(super) fn entry_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// The number of the entry that `offset` lies in.
    pub(super) fn get(&self, offset: u64) -> Option<u32> {
        let (branch, leaf, entry) = self.place(offset);
        let leaf = self.branches.get(branch)?.as_ref()?[leaf].as_ref()?;
        Some(leaf[entry]).filter(|&number| number != NONE)
    }

    /// Gives the entry that `offset` lies in a number, or takes it away.
    pub(super) fn set(&mut self, offset: u64, number: Option<u32>) {
        let (branch, leaf, entry) = self.place(offset);
        if self.branches.len() <= branch {
            self.branches.resize_with(branch + 1, || None);
        }
        let branch = self.branches[branch].get_or_insert_with(|| (0..ENTRIES).map(|_| None).collect());
        let leaf = branch[leaf].get_or_insert_with(|| vec![NONE; ENTRIES].into());
        leaf[entry] = number.unwrap_or(NONE);
    }

    fn place(&self, offset: u64) -> (usize, usize, usize) {
        let entry = (offset >> self.shift) as usize;
        (entry / (ENTRIES * ENTRIES), entry / ENTRIES % ENTRIES, entry % ENTRIES)
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
            // Neighbours, and entries of other leaves and branches.
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
