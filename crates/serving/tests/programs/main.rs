//! Runs small C programs under the library as it is built. Where there is no C compiler, nothing is tested, and that is said.

mod family;
mod opening;
#[path = "../shared/preload.rs"]
mod preload;
mod processes;
mod promises;
mod purge;
mod resizing;
mod sandbox;
mod slabs;
mod steps;
mod summaries;
mod underlying;
