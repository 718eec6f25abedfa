//! `lowtide bench`: measures what Lowtide does, beside rivals in the same run.

pub mod host;
pub mod malloc;
pub mod plan;
pub mod pool;
pub mod synthetic;

mod contestant;
mod ending;
mod instances;
mod paired;
mod process;
mod report;
mod rival;
mod rounds;
mod spread;
mod table;

use clap::{Args, Subcommand};

use crate::{Answer, Console, Failure};

/// What to measure.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Train and infer on the CPU under each allocator
    Host(host::Arguments),
    /// Replace blocks of random sizes under each allocator
    Malloc(malloc::Arguments),
    /// Plan many files, alone or beside other planners
    Plan(plan::Arguments),
    /// Serve recorded runs and made ones, beside PyTorch's allocators and malloc
    Pool(pool::Arguments),
}

/// Measures and tells.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    match &arguments.what {
        What::Host(arguments) => host::run(arguments, console),
        What::Malloc(arguments) => malloc::run(arguments, console),
        What::Plan(arguments) => plan::run(arguments, console),
        What::Pool(arguments) => pool::run(arguments, console),
    }
}

/// How many processors this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}
