//! `lowtide check`: whether a plan, whoever made it, is an answer to a problem. The verdict names the buffers and
//! the rows of the plan they stand on.

mod finding;

use std::path::PathBuf;

use clap::Args;
use lowtide_formats::{ErrorKind, Input, PlanFile};

pub(crate) use finding::Finding;

use crate::arguments::view::Readers;
use crate::console::Emphasis;
use crate::console::show;
use crate::input::question::{Question, Terms};
use crate::input::source::Source;
use crate::{Answer, Console, Failure};

/// A problem and a plan for it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Lifetimes CSV, trace CSV or problem JSON, plain or gzip; `-` for stdin
    problem: PathBuf,
    /// Plan JSON, or CSV with the columns id and offset; `-` for stdin
    plan: PathBuf,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    readers: Readers,
}

const EXAMPLES: &str = "\
Examples:
  lowtide check lifetimes.csv plan.csv
  lowtide check trace.csv.gz plan.json --step 3
  lowtide check lifetimes.csv plan.csv --capacity 1.5GiB";

/// Checks, and reports the verdict.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let (problem, plan) = arguments.sources()?;
    let (question, file) = match arguments.read(&problem, &plan, console) {
        Ok(read) => read,
        Err(failure) if are_swapped(&problem, &plan, console) => {
            let hint = format!("the problem comes first: `lowtide check {} {}`", plan.typed(), problem.typed());
            return Err(failure.with_hint(hint));
        }
        Err(failure) => return Err(failure),
    };
    let finding =
        Finding::new(question.problem(), &file).map_err(|error| Failure::problem(question.name(), None, error))?;
    if arguments.readers.are_scripts() {
        console.print_json(&finding)?;
    } else {
        tell(&finding, &plan, console)?;
    }
    Ok(Answer::from_bool(finding.valid))
}

impl Arguments {
    fn sources(&self) -> Result<(Source, Source), Failure> {
        let (problem, plan) = (Source::new(Some(&self.problem)), Source::new(Some(&self.plan)));
        if problem == Source::Stdin && plan == Source::Stdin {
            let message = "the problem and the plan cannot both come from stdin";
            return Err(Failure::usage(message, "give a file for one of them"));
        }
        Ok((problem, plan))
    }

    fn read(&self, problem: &Source, plan: &Source, console: &mut Console) -> Result<(Question, PlanFile), Failure> {
        let question = Question::read(problem, &self.terms, console)?;
        let file = plan.read(console, PlanFile::read).map_err(|failure| self.without_plan(failure, problem))?;
        Ok((question, file))
    }

    /// The same failure, with how to make a plan where the file is none.
    fn without_plan(&self, failure: Failure, problem: &Source) -> Failure {
        let Failure::Contents { source, .. } = &failure else { return failure };
        match source.kind {
            ErrorKind::MissingValue { column: "offset" }
            | ErrorKind::MissingColumn { column: "offset", .. }
            | ErrorKind::WrongKind { .. } => {
                let typed = problem.typed();
                let output = if typed == "plan.csv" { "new-plan.csv" } else { "plan.csv" };
                let make = format!("lowtide plan {typed}{} -o {output}", self.terms.typed());
                failure.with_hint(format!("a plan has an offset for every buffer; make one with `{make}`"))
            }
            _ => failure,
        }
    }
}

/// Whether the plan stands where the problem should, and the problem where the plan should.
fn are_swapped(problem: &Source, plan: &Source, console: &mut Console) -> bool {
    let is_plan = |source: &Source, console: &mut Console| source.read(console, PlanFile::read).is_ok();
    let are_files = problem.path().is_some() && plan.path().is_some();
    are_files
        && is_plan(problem, console)
        && !is_plan(plan, console)
        && plan.read(console, Input::read).is_ok_and(|input| !matches!(input, Input::Plan(_)))
}

fn tell(finding: &Finding, plan: &Source, console: &mut Console) -> Result<(), Failure> {
    let line = if finding.valid {
        let peak = finding.peak.unwrap_or_default();
        let ratio = show::ratio(peak, finding.lower_bound);
        let verdict = console.paint(Emphasis::Good, "valid:");
        format!("{verdict} peak {peak} · lower bound {} · {ratio}× the bound", finding.lower_bound)
    } else {
        let verdict = console.paint(Emphasis::Bad, "invalid:");
        format!("{verdict} {}{}", finding.words, finding.place(plan))
    };
    console.print(line)
}
