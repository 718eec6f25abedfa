//! The command as its users meet it: exit codes, streams, files and words.

// A test may unwrap; clippy's own exception knows only functions marked as tests, not what they call.
#![allow(clippy::unwrap_used)]

mod bench;
mod check;
mod config;
mod data;
mod demo;
mod documented;
mod explain;
mod host;
mod hostile;
mod input;
mod interrupt;
mod malloc;
mod plan;
mod pool;
mod record;
mod replay;
mod report;
mod run;
mod support;
mod watch;
mod writing;
