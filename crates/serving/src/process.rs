//! A process from its start to its end, and the arena's life in it: `lifecycle` makes the arena and steps aside when
//! something is wrong with it; the rest are moments at which a process changes under it.

pub(crate) mod alterations;
pub(crate) mod evidence;
pub(crate) mod exit;
pub(crate) mod forks;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod locking;
pub(crate) mod namespaces;
pub(crate) mod start;
