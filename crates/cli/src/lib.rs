//! The `lowtide` command line as a library: [one module per verb](verbs), and what verbs have in common.
//!
//! A verb parses its arguments, calls the crates below and shows what they said; nothing here solves, places or
//! parses. Data goes to stdout and talk to stderr, both through [`Console`]. A verb ends with an
//! [`Answer`] or a [`Failure`], and [`run()`] turns either into an exit code.
#![forbid(unsafe_code)]

mod arguments;
mod atomic_file;
mod console;
mod exit;
mod input;
mod options;
mod planning;
mod program;

pub mod verbs;

use std::ffi::OsString;

use clap::Parser;

pub use arguments::{Cli, Verb};
pub use console::Console;
pub use exit::{Answer, Failure};

/// Runs the command that `arguments` give, the program's name first, and returns its exit code: 0 for done, 1 for
/// a no, 2 for bad usage, bad input or an internal error, 126 or 127 for a program that cannot be started, and else that
/// of the program that was run. Never panics.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return arguments::mistakes::answer(&error, &arguments),
    };
    cli.color.apply();
    let mut console = Console::of_process();
    let ended = exit::panics::guard(|| verbs::dispatch(cli.verb, &mut console)).and_then(|answer| {
        console.finish()?;
        Ok(answer)
    });
    match ended {
        Ok(answer) => answer.code(),
        Err(failure) => {
            console.report(&failure);
            failure.code()
        }
    }
}
