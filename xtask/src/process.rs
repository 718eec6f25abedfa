//! Runs cargo for the steps, with its output kept back until somebody needs to see it.

use std::env;
use std::io::Read as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::repository::Repository;

/// Cargo with these arguments, at the root of the repository; the same cargo that runs this program.
pub(crate) fn cargo(repository: &Repository, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(&repository.root).stdin(Stdio::null());
    command
}

/// Runs a command to its end and returns all it printed, both streams in order of arrival.
///
/// When the command fails, that output is the error.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let (mut reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    command.stdout(writer.try_clone().context("cannot share a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    // The command holds the ends that are written to: the reader would wait for them.
    drop(command);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).context("cannot read the output")?;
    let status = child.wait().context("cannot wait for the command")?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !status.success() {
        bail!("{}\n{status}", text.trim_end());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn here() -> Repository {
        Repository { root: PathBuf::from("."), data: None }
    }

    #[test]
    fn a_command_that_succeeds_gives_its_output() {
        let text = output(cargo(&here(), &["--version"])).unwrap();
        assert!(text.starts_with("cargo "), "{text}");
    }

    #[test]
    fn a_command_that_fails_gives_its_output_as_the_error() {
        let error = output(cargo(&here(), &["no-such-command"])).unwrap_err();
        assert!(error.to_string().contains("no-such-command"), "{error}");
    }
}
