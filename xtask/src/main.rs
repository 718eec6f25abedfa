//! The developer commands: `cargo xtask check` says whether the sources are in order, `cargo xtask test` does that and
//! then runs everything that can be run here, `cargo xtask test --quick` what takes little time. Each is a list of steps;
//! [`step`] runs and counts them, and adding to [`steps`] is all it takes to add one.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talking to the developer is what this program does")]

mod browser;
mod dependencies;
mod layers;
mod process;
mod python;
mod repository;
mod rust_tests;
mod sources;
mod step;
mod steps;
mod tally;

use std::process::ExitCode;

use repository::Repository;
use step::Step;

struct Command {
    words: &'static [&'static str],
    purpose: &'static str,
    steps: fn() -> Vec<Step>,
}

const COMMANDS: [Command; 3] = [
    Command { words: &["check"], purpose: "Look at the sources: format, clippy, layers, docs", steps: steps::check },
    Command { words: &["test"], purpose: "Check, then run every test that can be run here", steps: steps::test },
    Command {
        words: &["test", "--quick"],
        purpose: "The Rust tests without those that take long, within two minutes of a build",
        steps: steps::quick,
    },
];

/// Exit 0: all is well. Exit 1: a step failed. Exit 2: bad usage, or the repository cannot be found.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] | ["help" | "-h" | "--help"] => {
            print_commands();
            ExitCode::SUCCESS
        }
        _ => match COMMANDS.iter().find(|command| command.words == arguments) {
            Some(command) => carry_out(command),
            None => refuse(&format!("there is no command `{}`", arguments.join(" "))),
        },
    }
}

fn carry_out(command: &Command) -> ExitCode {
    let outcome = Repository::find()
        .and_then(|repository| Ok(step::run_all(&(command.steps)(), &repository, &mut std::io::stdout())?));
    match outcome {
        Ok(summary) if summary.is_good() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("error: {message}\nhint: `cargo xtask --help` lists the commands");
    ExitCode::from(2)
}

fn print_commands() {
    println!("The developer commands of Lowtide\n\nUsage: cargo xtask COMMAND\n");
    for command in &COMMANDS {
        println!("  {:<14}{}", command.words.join(" "), command.purpose);
        for step in (command.steps)() {
            println!("                  {:<9}{}", step.name, step.purpose);
        }
    }
}
