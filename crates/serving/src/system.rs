//! The one place of this crate that calls the system, the loader or the C library's threads; what the system says in
//! files, `lowtide_memory` reads.
//!
//! Whoever calls here may be inside `malloc`: nothing allocates unless that is said, and calls go through `rustix`,
//! which leaves `errno` alone and is no point at which a thread is cancelled. `libc` remains for what `rustix` has not,
//! and where the C library itself has to know: its threads, its clock, its handlers.

pub(crate) mod errno;
pub(crate) mod loader;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod threads;
