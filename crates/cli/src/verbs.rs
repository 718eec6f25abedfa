//! The verbs, one module each: it parses the arguments of its verb, calls the crates below, and shows what they said.
//!
//! A new verb is a module here, an entry of `Verb`, and a line of `dispatch`.

pub mod bench;
pub mod check;
pub mod completions;
pub mod config;
pub mod demo;
pub mod estimate;
pub mod explain;
pub mod plan;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod watch;

use crate::{Answer, Console, Failure, Verb};

/// Does what `verb` says.
pub(crate) fn dispatch(verb: Verb, console: &mut Console) -> Result<Answer, Failure> {
    match verb {
        Verb::Plan(arguments) => plan::run(&arguments, console),
        Verb::Explain(arguments) => explain::run(&arguments, console),
        Verb::Report(arguments) => report::run(&arguments, console),
        Verb::Replay(arguments) => replay::run(&arguments, console),
        Verb::Record(arguments) => record::run(&arguments, console),
        Verb::Run(arguments) => run::run(&arguments, console),
        Verb::Config(arguments) => config::run(&arguments, console),
        Verb::Watch(arguments) => watch::run(&arguments, console),
        Verb::Estimate(arguments) => estimate::run(&arguments, console),
        Verb::Check(arguments) => check::run(&arguments, console),
        Verb::Bench(arguments) => bench::run(&arguments, console),
        Verb::Demo(arguments) => demo::run(&arguments, console),
        Verb::Completions(arguments) => completions::run(&arguments, console),
    }
}
