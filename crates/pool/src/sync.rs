//! The locks and atomics that the table of slots is made of: those of the standard library, or shuttle's, whose tests choose
//! which thread goes on at each of them.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};
