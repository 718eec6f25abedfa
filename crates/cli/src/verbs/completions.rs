//! `lowtide completions`: a script that completes the command line in a shell.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Answer, Cli, Console, Failure};

/// Which shell the script is for.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lowtide completions bash > ~/.local/share/bash-completion/completions/lowtide")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "lowtide", &mut script);
    console.data().write_all(&script).map_err(Failure::stdout)?;
    Ok(Answer::Yes)
}
