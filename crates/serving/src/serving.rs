//! Requests for memory. From the outside in: `exports` is what the program calls, `large` decides between the arena and
//! the underlying allocator, `slabs` has blocks by size class while there is no arena, `cache` keeps those that a thread has freed last, and small
//! `aligned` ones while there is an arena,
//! and `underlying` is whoever served the program before.

pub(crate) mod aligned;
pub(crate) mod cache;
pub(crate) mod classes;
pub(crate) mod deferred;
pub(crate) mod early;
pub(crate) mod exports;
pub(crate) mod large;
pub(crate) mod leaving;
pub(crate) mod nested;
pub(crate) mod slabs;
pub(crate) mod thread;
pub(crate) mod underlying;
pub(crate) mod zeroing;
