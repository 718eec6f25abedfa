//! `lowtide estimate`: will it fit? The Python that has PyTorch traces the training steps that a file defines and plays
//! them on each allocator; this verb finds that Python and hands its answer on.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use lowtide_core::Bytes;
use lowtide_core::options::PYTHON;
use lowtide_report::Ink;

use crate::arguments::numbers;
use crate::arguments::typed::Typed;
use crate::arguments::view::View;
use crate::console::show;
use crate::program::INSTALL;
use crate::{Answer, Console, Failure};

/// What to trace, what it is to fit into, and how it is shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A Python file that defines what is trained; see below
    file: PathBuf,
    /// The memory there is: bytes, an amount such as 24GiB, or a GPU's name such as H200
    #[arg(long, value_name = "SIZE", value_parser = numbers::typed_memory, allow_negative_numbers = true)]
    memory: Option<Typed<Bytes>>,
    /// Search the largest that fits
    #[arg(long, value_name = "WHAT", value_enum, requires = "memory")]
    vary: Option<Vary>,
    /// Training steps to trace; the optimizer's state is there from the second on
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "3", allow_negative_numbers = true)]
    steps: NonZeroUsize,
    /// The Python that has PyTorch [default: the active environment's, or python3]
    #[arg(long, value_name = "PYTHON")]
    python: Option<OsString>,
    /// Write the traced events, for `lowtide report` and `replay`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write x.json: the numbers
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    view: View,
}

/// What may grow until memory is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Vary {
    /// The number of samples
    Batch,
    /// Their length
    Sequence,
}

const EXAMPLES: &str = "\
Examples:
  lowtide estimate train.py                              what a step takes, and of what
  lowtide estimate train.py --memory 24GiB               whether it fits
  lowtide estimate train.py --memory H200 --vary batch   the largest batch that does
  lowtide estimate train.py --json -o estimate.json      for a script

The file defines model() and example() or example(batch), and may define
optimizer(parameters), loss(output) and autocast().
Exit code 1: it fits with none of the allocators.";

/// Runs the estimate in the Python that has PyTorch.
pub fn run(arguments: &Arguments, _console: &mut Console) -> Result<Answer, Failure> {
    check_file(&arguments.file)?;
    let python = arguments.python.clone().unwrap_or_else(python);
    let shown = show::path(Path::new(&python));
    check(&python, &shown)?;
    let mut command = Command::new(&python);
    command.args(["-m", "lowtide.torch.estimation"]).arg(&arguments.file);
    if let Some(memory) = &arguments.memory {
        command.arg(format!("--memory={}", memory.value().get()));
    }
    if let Some(vary) = arguments.vary {
        command.args(["--vary", if vary == Vary::Batch { "batch" } else { "sequence" }]);
    }
    command.args(["--steps", &arguments.steps.to_string()]);
    for (name, path) in [("--trace", &arguments.trace), ("--output", &arguments.output)] {
        if let Some(path) = path {
            command.arg(name).arg(path);
        }
    }
    if arguments.view.is_json() {
        command.arg("--json");
    }
    if arguments.view.ink() == Ink::Ascii {
        command.arg("--ascii");
    }
    let status = command.status().map_err(|error| unrunnable(&shown, &error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Answer::Ended(code.unwrap_or(Answer::TROUBLE)))
}

/// Whether there is a file to estimate.
fn check_file(file: &Path) -> Result<(), Failure> {
    let name = show::escaped(&file.to_string_lossy()).into_owned();
    let hint = "give a Python file that defines model() and example()";
    if file.is_dir() {
        return Err(Failure::unfit(&name, "this is a folder", hint));
    }
    File::open(file).map(drop).map_err(|error| Failure::unfit(&name, format!("cannot open: {error}"), hint))
}

/// The Python that started this, that of the active environment, or the usual one.
pub(crate) fn python() -> OsString {
    let own = env::var_os(PYTHON.variable()).filter(|own| !own.is_empty());
    let active = env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    own.or_else(|| active.map(|folder| Path::new(&folder).join("bin").join("python3").into_os_string()))
        .unwrap_or_else(|| OsString::from("python3"))
}

/// Whether `python` has what it takes.
fn check(python: &OsString, shown: &str) -> Result<(), Failure> {
    const ASK: &str = "import importlib.util as u; print(*[m for m in ('lowtide', 'torch') if u.find_spec(m) is None])";
    let answer = Command::new(python)
        .args(["-c", ASK])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| unrunnable(shown, &error))?;
    let missing = String::from_utf8_lossy(&answer.stdout).trim().replace(' ', " and ");
    if !answer.status.success() {
        return Err(Failure::usage(format!("{shown} is no Python"), "name one that has PyTorch: `--python PYTHON`"));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let hint = format!("name one that has both: `--python PYTHON`; for Lowtide, {INSTALL}");
    Err(Failure::usage(format!("{shown} has no {missing}"), hint))
}

fn unrunnable(shown: &str, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::NotFound => "name a Python that has PyTorch: `--python PYTHON`",
        _ => "check that it is a program, or name another: `--python PYTHON`",
    };
    Failure::usage(format!("cannot run {shown}: {error}"), hint)
}
