//! `lowtide record`: runs a program and writes down what its PyTorch allocates and frees, as a trace.

mod outcome;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use lowtide_core::Bytes;
use lowtide_core::options::{MIN_SIZE, RECORD, RECORD_LIST};
use tempfile::NamedTempFile;

use crate::arguments::numbers;
use crate::atomic_file::Target;
use crate::console::show;
use crate::program::Program;
use crate::{Answer, Console, Failure};
pub use outcome::inserted;

/// What to run, and what to write.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Write x.csv.gz or x.csv: the trace
    #[arg(short, long, value_name = "FILE", default_value = "trace.csv.gz")]
    output: PathBuf,
    /// Leave out CPU tensors below this size; of devices everything is recorded
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, default_value = "4KiB", allow_negative_numbers = true)]
    min_size: Bytes,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  lowtide record -- python train.py                     writes trace.csv.gz
  lowtide record -o run.csv.gz -- python train.py       writes run.csv.gz
  lowtide record -- torchrun --nproc-per-node 2 t.py    a file for each process

The exit code is the program's; 2 where it ended well and nothing was recorded.";

/// Runs the program and tells what was recorded.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let target = Target::new(&arguments.output, &[])?;
    let name = target.path().to_string_lossy();
    if !name.ends_with(".csv") && !name.ends_with(".csv.gz") {
        let message = format!("a trace is a table, and {} is not named as one", show::path(target.path()));
        return Err(Failure::usage(message, "give `-o` a name that ends in .csv.gz or .csv"));
    }
    let failed = |error| Failure::access("<temporary file>", "write", error);
    let list = NamedTempFile::new().map_err(failed)?;
    let path = std::path::absolute(target.path()).map_err(|error| Failure::access(&name, "write", error))?;
    let answer = Program::new(&arguments.command)
        .with(RECORD.variable(), path)
        .with(RECORD_LIST.variable(), list.path())
        .with(MIN_SIZE.variable(), arguments.min_size.get().to_string())
        .run()?;
    let listed = std::fs::read_to_string(list.path()).map_err(failed)?;
    let recorded = outcome::tell(&listed, &target, console)?;
    if recorded || answer.code() != 0 {
        return Ok(answer);
    }
    let message = "nothing was recorded: the program did not import PyTorch, or made no tensor large enough";
    Err(Failure::usage(message, "run a program that uses PyTorch, without Python's `-I`, `-E` or `-S`"))
}
