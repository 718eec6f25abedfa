//! The `lowtide` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lowtide_cli::run(std::env::args_os())
}
