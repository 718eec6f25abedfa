//! What the verbs that plan have in common: how hard to search, and one run planned and explained.

pub(crate) mod solving;
pub(crate) mod study;
