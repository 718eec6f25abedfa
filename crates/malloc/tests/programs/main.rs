//! Runs small C programs under the library as it is built. Where there is no C compiler, nothing is tested, and that is said.

mod below;
mod family;
mod giving_back;
#[path = "../preload/mod.rs"]
mod preload;
mod processes;
mod resizing;
mod stage;
mod steps;
mod summaries;
