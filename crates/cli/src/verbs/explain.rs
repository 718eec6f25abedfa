//! `lowtide explain`: why the peak is what it is, and which single change would lower it.

use std::path::PathBuf;

use clap::Args;
use lowtide_core::{Explanation, Layout, Origin, StepIndex, Usage};
use lowtide_plan::{At, ExplainError, StepError};
use lowtide_report::{ExplanationNumbers, explained, moment_parts};

use crate::arguments::numbers;
use crate::arguments::view::View;
use crate::console::Emphasis;
use crate::console::{progress, show};
use crate::input::question::{Part, Question};
use crate::input::source::Source;
use crate::planning::solving::Effort;
use crate::planning::study::{self, Contradiction};
use crate::{Answer, Console, Failure};

/// What to explain, and how it is told.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A trace, a PyTorch snapshot, lifetimes, a problem or a report; stdin for `-` or when absent
    input: Option<PathBuf>,
    /// The moment: an event such as 5321, or step:3 for the highest of a step [default: the peak]
    #[arg(long, value_name = "EVENT|STEP", value_parser = parse_at, allow_hyphen_values = true)]
    at: Option<At>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    effort: Effort,
}

const EXAMPLES: &str = "\
Examples:
  lowtide explain trace.csv.gz              why the peak is what it is
  lowtide explain trace.csv.gz --at step:3  the highest moment of one step
  lowtide explain snapshot.pickle --json    for a script

Savings are exact for a change as described; whether a program allows the change is for you to say.";

fn parse_at(text: &str) -> Result<At, String> {
    let expected = || "write an event such as 5321, or a step such as step:3".to_owned();
    match text.strip_prefix("step") {
        Some(step) => {
            let step = step.strip_prefix([':', '=', ' ']).unwrap_or(step);
            numbers::whole(step).map(|step| At::Step(StepIndex(step))).map_err(|_| expected())
        }
        None => numbers::event(text).map(At::Event).ok_or_else(expected),
    }
}

/// Explains and shows.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let source = Source::new(arguments.input.as_deref());
    let question = Question::read(&source, &arguments.part.unlimited(), console)?;
    question.tell(console);
    let name = question.name().to_owned();
    let mut usage = question.into_usage();
    let at = arguments.at.unwrap_or(At::Peak);
    let focus = study::focus(&usage, &name)?;
    let pool = focus.as_ref().map(|focus| focus.pool.clone());
    usage = focus.map_or(usage, |focus| focus.usage);
    let (explanation, contradiction) = of_usage(&mut usage, at, &arguments.effort, &name)?;
    let answer = Answer::from_bool(contradiction.is_none());
    if let Some(Contradiction(sentence)) = contradiction {
        console.say(sentence);
    }
    if arguments.view.is_json() {
        console.print_json(&ExplanationNumbers::new(&usage, pool, &explanation))?;
        return Ok(answer);
    }
    let sheet = arguments.view.sheet();
    let mut headline = moment_parts(&usage, &explanation);
    headline.extend(pool.map(|pool| format!("in {}, the fullest of several pools", show::name(&pool))));
    for line in sheet.headline(&headline) {
        let line = console.paint(Emphasis::Strong, line);
        console.print(line)?;
    }
    for line in explained(&usage, &explanation, sheet) {
        console.print(line)?;
    }
    console.finish()?;
    if source.path().is_some() {
        let again = format!("lowtide report {}{} -o report.html", source.typed(), arguments.part.typed());
        console.say(format!("next: `{again}` draws it"));
    }
    Ok(answer)
}

/// The explanation of `usage` at `at`, and why there is no plan where there can be none; a plan is made first where there
/// is none yet. Messages call it `name`.
pub(crate) fn of_usage(
    usage: &mut Usage,
    at: At,
    effort: &Effort,
    name: &str,
) -> Result<(Explanation, Option<Contradiction>), Failure> {
    let mut contradiction = None;
    if usage.layouts.iter().all(|layout| layout.origin != Origin::Planned) {
        let solved = effort.solve(&usage.problem, name).map_err(|error| Failure::solve(name, error))?;
        match solved.outcome.plan {
            Some(plan) => usage.layouts.push(Layout { origin: Origin::Planned, plan }),
            None => contradiction = Some(Contradiction::new(&usage.problem, &solved.outcome.fits)),
        }
    }
    let _line = progress::Doing::new(&format!("explaining {name}"));
    let explanation = effort.explain(usage, at).map_err(|error| match error {
        ExplainError::Problem(error) => Failure::problem(name, None, error),
        ExplainError::Solve(error) => Failure::solve(name, error),
        error @ ExplainError::Step(StepError::NoSuchStep { last: None, .. }) => {
            Failure::unfit(name, error, "give an event such as `--at 5321`, or leave out `--at` for the peak")
        }
        error @ (ExplainError::Step(_) | ExplainError::NoSuchEvent { .. }) => {
            Failure::unfit(name, error, "choose one of these, or leave out `--at` for the peak")
        }
    })?;
    Ok((explanation, contradiction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_events_or_steps() {
        assert_eq!(parse_at("5321"), Ok(At::Event(5321)));
        assert_eq!(parse_at("-3"), Ok(At::Event(-3)));
        assert_eq!(parse_at("2,137"), Ok(At::Event(2137)));
        for text in ["step:3", "step3", "step 3", "step=3"] {
            assert_eq!(parse_at(text), Ok(At::Step(StepIndex(3))));
        }
        for text in ["", "step", "step:x", "3.5", "steps:3", "step:-1"] {
            assert!(parse_at(text).is_err(), "{text}");
        }
    }
}
