//! The library that goes under a program's own `malloc` by `LD_PRELOAD`. Most programs end soon and ask for little, so this library is as
//! small as can be: a table of functions, which at first lead to the underlying allocator. Where a program asks for much in large blocks,
//! or marks its steps, the library that serves is opened, and takes the places in the table.
//!
//! Nothing here allocates or panics, and of the standard library only what needs neither is used: every function that is linked in is paid
//! for by every process.

#![cfg_attr(test, allow(dead_code, non_snake_case, reason = "tests call single parts and stand in for nobody"))]

mod dlopen;
mod entries;
mod first;
mod forks;
mod loader;
mod opening;
mod start;
mod thread;
mod underlying;
