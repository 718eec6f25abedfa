//! `lowtide run`: runs a program whose memory Lowtide serves, without a change to it.

use std::ffi::OsString;

use clap::Args;
use lowtide_core::Bytes;

use crate::child::Program;
use crate::{Answer, Console, Failure};

/// What to run, and what to serve.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// Serve PyTorch's tensors on CUDA devices
    #[arg(long)]
    device: bool,
    /// Serve PyTorch's large tensors on the CPU
    #[arg(long)]
    cpu: bool,
    /// Serve PyTorch's pinned memory at its exact size
    #[arg(long)]
    pinned: bool,
    /// The most that is taken of each device: bytes, or such as 40GiB
    #[arg(long, value_name = "SIZE", value_parser = crate::numbers::size, requires = "device", allow_negative_numbers = true)]
    limit: Option<Bytes>,
    /// End the program where Lowtide cannot serve it, instead of going on without
    #[arg(long)]
    strict: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  lowtide run --device -- python train.py                  tensors on CUDA devices
  lowtide run --device --limit 40GiB -- python train.py    on a part of each device
  lowtide run --cpu -- torchrun --nproc-per-node 2 t.py    every process of it

The exit code is the program's.";

/// Runs the program.
pub fn run(arguments: &Arguments, _console: &mut Console) -> Result<Answer, Failure> {
    let Arguments { device, cpu, pinned, limit, strict, ref command } = *arguments;
    let parts = [("device", device), ("cpu", cpu), ("pinned", pinned)];
    let parts: Vec<&str> = parts.into_iter().filter_map(|(part, wanted)| wanted.then_some(part)).collect();
    if parts.is_empty() {
        return Err(Failure::usage("nothing is to be served", "add `--device`, `--cpu` or `--pinned`"));
    }
    let mut program = Program::new(command).with("LOWTIDE_RUN", parts.join(","));
    if let Some(limit) = limit {
        program = program.with("LOWTIDE_LIMIT", limit.get().to_string());
    }
    if strict {
        program = program.with("LOWTIDE_STRICT", "1");
    }
    program.run()
}
