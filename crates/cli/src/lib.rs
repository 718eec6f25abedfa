//! The `lowtide` command line as a library: one module per verb, and what verbs have in common.
//!
//! A verb parses its arguments, calls the crates below and shows what they said; nothing here solves, places or
//! parses. Data goes to stdout and talk to stderr, both through [`Console`]. A verb ends with an
//! [`Answer`] or a [`Failure`], and [`run()`] turns either into an exit code.

mod answer;
mod arguments;
mod beside;
mod child;
mod columns;
mod console;
mod failure;
mod fault;
mod numbers;
mod progress;
mod question;
mod recorded;
mod resources;
mod show;
mod solving;
mod source;
mod study;
mod usage;
mod view;

pub mod bench;
pub mod check;
pub mod completions;
pub mod demo;
pub mod estimate;
pub mod explain;
pub mod plan;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod synthetic;
pub mod watch;

use std::ffi::OsString;

use clap::Parser;

pub use answer::Answer;
pub use arguments::{Cli, Verb};
pub use console::Console;
pub use failure::Failure;

/// Runs the command that `arguments` give, the program's name first, and returns its exit code: 0 for done, 1 for
/// a no, 2 for bad usage, bad input or an internal error. Never panics.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error, &arguments),
    };
    cli.color.apply();
    let mut console = Console::of_process();
    let ended = fault::guard(|| dispatch(cli.verb, &mut console)).and_then(|answer| {
        console.finish()?;
        Ok(answer)
    });
    match ended {
        Ok(answer) => answer.code(),
        Err(failure) => {
            console.report(&failure);
            Answer::TROUBLE
        }
    }
}

fn dispatch(verb: Verb, console: &mut Console) -> Result<Answer, Failure> {
    match verb {
        Verb::Plan(arguments) => plan::run(&arguments, console),
        Verb::Explain(arguments) => explain::run(&arguments, console),
        Verb::Report(arguments) => report::run(&arguments, console),
        Verb::Replay(arguments) => replay::run(&arguments, console),
        Verb::Record(arguments) => record::run(&arguments, console),
        Verb::Run(arguments) => run::run(&arguments, console),
        Verb::Watch(arguments) => watch::run(&arguments, console),
        Verb::Estimate(arguments) => estimate::run(&arguments, console),
        Verb::Check(arguments) => check::run(&arguments, console),
        Verb::Bench(arguments) => bench::run(&arguments, console),
        Verb::Demo(arguments) => demo::run(&arguments, console),
        Verb::Completions(arguments) => completions::run(&arguments, console),
    }
}
