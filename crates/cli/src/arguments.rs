//! The command line as a whole: which verbs there are, and the options that every one of them has.

pub(crate) mod mistakes;
pub(crate) mod numbers;
pub(crate) mod typed;
pub(crate) mod view;

use clap::{Parser, Subcommand, ValueEnum};

use crate::verbs::{
    bench, check, completions, config, demo, estimate, explain, plan, record, replay, report, run, watch,
};

/// Find out where PyTorch memory goes, whether a model fits, and use less of it
#[derive(Debug, Parser)]
#[command(name = "lowtide", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true, display_order = 100)]
    pub color: Color,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  lowtide demo                            a recorded training step, planned and drawn
  lowtide plan lifetimes.csv -o plan.csv  an offset for every buffer
  lowtide explain trace.csv.gz            why the peak is what it is
  lowtide report trace.csv.gz -o r.html   a page with pictures
  lowtide replay trace.csv.gz             what each allocator would reserve
  lowtide record -- python train.py       a trace of a program that uses PyTorch
  lowtide watch -- python serve.py        whether its memory leaks
  lowtide check lifetimes.csv plan.csv    whether a plan is valid

Exit codes: 0 done, it fits; 1 the answer is no, or none was found in time;
2 bad usage, bad input or an internal error; 127 or 126 no such program, or one
that cannot be run; otherwise that of the program that was run";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Plan an offset for every buffer of a problem or a recorded run
    Plan(plan::Arguments),
    /// Explain why the peak is what it is, and what would lower it
    Explain(explain::Arguments),
    /// Show where memory went: in the terminal, as a page, or how two runs differ
    Report(report::Arguments),
    /// Replay a recorded run on several allocators: what each would reserve and cost
    Replay(replay::Arguments),
    /// Run a program and record what its PyTorch allocates
    Record(record::Arguments),
    /// Run a program with Lowtide as its memory allocator
    Run(run::Arguments),
    /// Show the options that are in force, and where each value came from
    Config(config::Arguments),
    /// Watch a program's memory over time, and report whether it leaks
    Watch(watch::Arguments),
    /// Estimate without a GPU whether a PyTorch model's training will fit
    Estimate(estimate::Arguments),
    /// Check whether a plan is valid
    Check(check::Arguments),
    /// Measure the planner and the allocators, alone or beside others
    Bench(bench::Arguments),
    /// Plan and draw a recorded training step that comes with the program
    Demo(demo::Arguments),
    /// Print a script that completes `lowtide` in a shell
    Completions(completions::Arguments),
}

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// Makes this the choice for everything that the process writes.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::AlwaysAnsi,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            let of_its_own = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let of_a_part = verb.get_subcommands().filter_map(|part| part.get_after_help()).map(ToString::to_string);
            let help: String = of_a_part.chain([of_its_own]).collect();
            assert!(help.contains("Example") && help.contains("  lowtide "), "{}", verb.get_name());
        }
    }
}
