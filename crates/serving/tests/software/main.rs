//! Runs programs that others wrote under the library as it is built, and checks that each does its own work right. What is
//! not installed is not tested, and that is said.

mod cpython;
mod gcc;
mod git;
mod postgres;
#[path = "../shared/preload.rs"]
mod preload;
mod redis;
mod stress;
mod trial;
