//! The library that serves a program's large blocks, once the one that goes under the program by `LD_PRELOAD` has opened it: until then, and in
//! most processes for ever, that one leads to the underlying allocator. Blocks of 32 KiB and more come from one arena that learns the
//! program's steps; smaller ones stay with the underlying allocator, at the price of one comparison.
//!
//! `serving` is what the program calls and who serves it, `process` what happens to a process from then to its end,
//! `service` the thread that works beside the program, `report` what is said and written. Only `system` calls the system.

#![cfg_attr(test, allow(dead_code, non_snake_case, reason = "tests call single parts and stand in for nobody"))]

mod process;
mod report;
mod service;
mod serving;
mod settings;
mod system;

/// The library's own memory comes straight from the underlying allocator, so that the arena never serves itself.
#[cfg_attr(not(test), global_allocator)]
static OWN: serving::underlying::Own = serving::underlying::Own;
