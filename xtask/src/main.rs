//! The developer commands: `cargo xtask check` says whether the sources are in order, `cargo xtask test` does that and
//! then runs everything that can be run here, `cargo xtask test --quick` what takes little time. Each is a list of steps;
//! [`step`] runs and counts them, and adding to [`steps`] is all it takes to add one. `cargo xtask soak` is a command of its
//! own: it takes as long as it is told to.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talking to the developer is what this program does")]

mod browser;
mod dependencies;
mod layers;
mod process;
mod python;
mod repository;
mod rust_tests;
mod soak;
mod sources;
mod step;
mod steps;
mod tally;

use std::process::ExitCode;

use anyhow::Result;
use repository::Repository;
use step::Step;

struct Command {
    words: &'static [&'static str],
    purpose: &'static str,
    work: Work,
}

enum Work {
    /// These steps, and no arguments.
    Steps(fn() -> Vec<Step>),
    /// What takes the arguments that follow the words, and says whether all is well.
    Arguments(fn(&[&str]) -> Result<bool>),
}

const COMMANDS: [Command; 4] = [
    Command {
        words: &["check"],
        purpose: "Look at the sources: format, clippy, layers, docs",
        work: Work::Steps(steps::check),
    },
    Command {
        words: &["test"],
        purpose: "Check, then run every test that can be run here",
        work: Work::Steps(steps::test),
    },
    Command {
        words: &["test", "--quick"],
        purpose: "The Rust tests without those that take long, within two minutes of a build",
        work: Work::Steps(steps::quick),
    },
    Command {
        words: &["soak"],
        purpose: "Thirteen programs at once under Lowtide in little memory; `soak --help` has more",
        work: Work::Arguments(soak::run),
    },
];

impl Command {
    /// The arguments that are left for it; none if it is not meant.
    fn rest<'a>(&self, arguments: &'a [&'a str]) -> Option<&'a [&'a str]> {
        let rest = arguments.strip_prefix(self.words)?;
        (rest.is_empty() || matches!(self.work, Work::Arguments(_))).then_some(rest)
    }

    /// Whether all is well.
    fn carry_out(&self, rest: &[&str]) -> Result<bool> {
        match self.work {
            Work::Steps(steps) => {
                let summary = step::run_all(&steps(), &Repository::find()?, &mut std::io::stdout())?;
                Ok(summary.is_good())
            }
            Work::Arguments(run) => run(rest),
        }
    }
}

/// Exit 0: all is well. Exit 1: a step failed, or the soak found something. Exit 2: bad usage, or the repository cannot be found.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] | ["help" | "-h" | "--help"] => {
            print_commands();
            ExitCode::SUCCESS
        }
        _ => match COMMANDS.iter().find_map(|command| Some((command, command.rest(&arguments)?))) {
            Some((command, rest)) => ended(command.carry_out(rest)),
            None => refuse(&format!("there is no command `{}`", arguments.join(" "))),
        },
    }
}

fn ended(outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
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
        if let Work::Steps(steps) = command.work {
            for step in steps() {
                println!("                  {:<9}{}", step.name, step.purpose);
            }
        }
    }
}
