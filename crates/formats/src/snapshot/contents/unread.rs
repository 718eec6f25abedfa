//! Keys of known records that mean nothing here: newer versions of PyTorch add some. They are counted, so that it can
//! be said what was not read.

use std::collections::BTreeMap;

/// How many different keys are counted by name.
const NAMED: usize = 64;

/// What was not read.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// By the kind of record and the key's text.
    named: BTreeMap<(&'static str, u32), u64>,
    others: u64,
}

impl Unread {
    pub(crate) fn count(&mut self, record: &'static str, key: u32) {
        if self.named.len() < NAMED || self.named.contains_key(&(record, key)) {
            *self.named.entry((record, key)).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// The kinds of record and keys, and how often each was there.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u32, u64)> {
        self.named.iter().map(|(&(record, key), &count)| (record, key, count))
    }

    /// How often there were keys beyond those that are named.
    pub(crate) fn others(&self) -> u64 {
        self.others
    }
}
