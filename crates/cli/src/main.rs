//! The `lowtide` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(lowtide_cli::run(std::env::args_os()))
}
