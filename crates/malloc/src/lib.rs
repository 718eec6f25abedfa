//! The library that goes under a program's own `malloc` by `LD_PRELOAD`. Blocks of 32 KiB and more come from one arena
//! that learns the program's steps; smaller ones stay with the allocator below, at the price of one comparison.
//!
//! From the outside in: `exports` is what the program calls, `large` decides between the arena and the allocator
//! below, `life` makes the arena and steps aside when something is wrong with it, `below` is whoever served the
//! program before.

mod below;
mod deferred;
mod early;
mod exports;
mod faults;
mod forks;
mod large;
mod leaving;
mod life;
mod limits;
mod marks;
mod nested;
mod notice;
mod opening;
mod pressure;
mod service;
mod settings;
mod start;
mod summary;
mod thread;
mod zeroing;

/// The library's own memory comes straight from below, so that the arena never serves itself.
#[global_allocator]
static OWN: below::Own = below::Own;
