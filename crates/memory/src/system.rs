//! The one place of this crate that speaks to the operating system. `pages`, `numa`, `scratch`, `process` and `worker`
//! make its calls; `files` reads what it says in files.
//!
//! Calls go through `rustix`, which enters the system itself: it allocates nothing, leaves `errno` alone, and is no point
//! at which a thread is cancelled, so that it can be used inside an allocator. `libc` remains for what `rustix` has not
//! (threads, signal masks, the use of resources, NUMA policies) and for constants of the C library.

pub mod files;
pub(crate) mod numa;
pub(crate) mod pages;
pub mod process;
pub(crate) mod scratch;
pub(crate) mod worker;
