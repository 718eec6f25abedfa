//! Requests for memory. From the outside in: `exports` is what the program calls, `large` decides between the arena and
//! the underlying allocator, `cache` keeps what a thread has freed last while there is no arena, and `underlying` is whoever served the
//! program before.

pub(crate) mod cache;
pub(crate) mod deferred;
pub(crate) mod early;
pub(crate) mod exports;
pub(crate) mod large;
pub(crate) mod nested;
pub(crate) mod thread;
pub(crate) mod underlying;
pub(crate) mod zeroing;
