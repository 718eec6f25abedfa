//! `lowtide check`: whether a plan, whoever made it, is an answer to a problem. The verdict names the buffers and
//! the rows of the plan they stand on.

mod finding;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lowtide_formats::{ErrorKind, PlanFile};

pub(crate) use finding::Finding;

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
    /// What stdout gets
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lowtide check lifetimes.csv plan.csv
  lowtide check trace.csv.gz plan.json --step 3
  lowtide check lifetimes.csv plan.csv --capacity 1.5GiB";

/// What stdout gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// The verdict in one line
    #[default]
    Text,
    /// One flat object
    Json,
}

/// Checks and tells.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let (problem, plan) = arguments.sources()?;
    let question = Question::read(&problem, &arguments.terms)?;
    let file = plan.read(PlanFile::read).map_err(|failure| arguments.without_plan(failure, &problem))?;
    let finding =
        Finding::new(question.problem(), &file).map_err(|error| Failure::problem(question.name(), None, error))?;
    if arguments.json || arguments.format == Format::Json {
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

    /// The same failure, with how to make a plan where the file is none.
    fn without_plan(&self, failure: Failure, problem: &Source) -> Failure {
        let Failure::Contents { source, .. } = &failure else { return failure };
        match source.kind {
            ErrorKind::MissingValue { column: "offset" }
            | ErrorKind::MissingColumn { column: "offset", .. }
            | ErrorKind::WrongKind { .. } => {
                let make = format!("lowtide plan {}{} -o plan.csv", problem.typed(), self.terms.typed());
                failure.with_hint(format!("a plan has an offset for every buffer; make one with `{make}`"))
            }
            _ => failure,
        }
    }
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
