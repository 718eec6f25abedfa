//! `lowtide plan`: lifetimes, a problem or a recorded run in; an offset for every buffer out, or the answer whether
//! it fits.

mod summary;
mod text;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lowtide_plan::{Fits, Stopped};

pub(crate) use summary::Summary;
pub(crate) use text::{contradiction, headline_parts};

use crate::atomic_file::Target;
use crate::console::show;
use crate::input::question::{Question, Terms};
use crate::input::source::Source;
use crate::planning::solving::{Effort, Solved, was_interrupted};
use crate::{Answer, Console, Failure};

/// What to plan, how hard to look, and where the plan goes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Lifetimes, a trace, a PyTorch snapshot, a problem or a report, plain or gzip; stdin for `-` or when absent
    file: Option<PathBuf>,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    effort: Effort,
    /// Write the plan: x.csv gets the input's rows with offsets, x.json the plan with its bound
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What stdout gets
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lowtide plan lifetimes.csv                     how little memory it takes
  lowtide plan lifetimes.csv -o plan.csv         and where everything goes
  lowtide plan trace.csv.gz --step 3             one step of a recorded run
  lowtide plan lifetimes.csv --capacity 1.5GiB   does it fit?
  lowtide plan lifetimes.csv --work 10000000     the same plan on every machine

The input is told by its header:
  id,lower,upper,size    lifetimes: from event `lower` to just before `upper`;
                         also alignment, gaps, class, and offset for a pin
  event,id,bytes,stream  a recorded run: rows alloc, free, done, step and more
  {\"kind\": \"problem\"}    JSON with all that can bind buffers: pools, aliases,
                         may_share, contiguous";

/// What stdout gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// A headline for people
    #[default]
    Text,
    /// One flat object
    Json,
    /// The plan itself
    Csv,
}

/// The two kinds of file that a plan can be written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Csv,
    Json,
}

impl Kind {
    /// The kind that a file's name asks for.
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = show::escaped(&path.to_string_lossy()).into_owned();
        if name == "-" {
            let hint = "`--format csv` prints the plan to stdout";
            return Err(Failure::unfit(&name, "`-o` writes a file", hint));
        }
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("gz") => {
                let hint = "outputs are not compressed; leave out `.gz`, and run gzip on the file";
                Err(Failure::unfit(&name, "the output ends in .gz", hint))
            }
            _ => {
                let message = "the output is neither .csv nor .json";
                Err(Failure::unfit(&name, message, "name it such as plan.csv or plan.json"))
            }
        }
    }
}

/// Plans, shows and writes.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let source = Source::new(arguments.file.as_deref());
    let output = arguments.output(&source)?;
    let question = Question::read(&source, &arguments.terms, console)?;
    question.tell(console);
    let solved = arguments
        .effort
        .solve(question.problem(), &source.short_name())
        .map_err(|error| Failure::solve(question.name(), error))?;
    let summary = Summary::new(question.problem(), &solved, &arguments.effort);
    arguments.show(&question, &solved, &summary, console)?;
    console.finish()?;
    if was_interrupted() {
        console.say(match solved.outcome.fits {
            Fits::Yes => "interrupted: this is the best plan so far",
            Fits::No(_) => "interrupted, but this is the answer",
            Fits::Unknown => "interrupted before there was an answer",
        });
    }
    if let Some(output) = output {
        let path = show::path(output.0.path());
        if write(&question, &solved, &summary, &output)? {
            let next = format!("lowtide check {} {path}{}", source.typed(), arguments.terms.typed());
            console.say(format!("wrote {path}; next: `{next}`"));
        } else {
            console.say(format!("{path} was not written: there is no plan that fits to write"));
        }
    } else if arguments.format() == Format::Text {
        arguments.suggest(&source, &solved, console);
    }
    Ok(Answer::from_bool(solved.outcome.fits == Fits::Yes))
}

impl Arguments {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Where the plan is to be written, looked at before any work is done.
    fn output(&self, source: &Source) -> Result<Option<(Target, Kind)>, Failure> {
        let Some(path) = &self.output else { return Ok(None) };
        let kind = Kind::of(path)?;
        Ok(Some((Target::new(path, &[source])?, kind)))
    }

    fn show(
        &self,
        question: &Question,
        solved: &Solved,
        summary: &Summary,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match (self.format(), &solved.outcome.plan) {
            (Format::Text, _) => text::show(question.problem(), solved, summary, console),
            (Format::Json, _) => console.print_json(summary),
            (Format::Csv, Some(plan)) if solved.outcome.fits == Fits::Yes => {
                question.write_csv(plan, console.data()).map_err(|error| Failure::contents("<stdout>", error))
            }
            (Format::Csv, _) => {
                console.say(text::answer(question.problem(), solved, summary));
                console.say("no plan was printed");
                Ok(())
            }
        }
    }

    /// The command that comes next where nothing was written.
    fn suggest(&self, source: &Source, solved: &Solved, console: &mut Console) {
        match solved.outcome.fits {
            Fits::Yes => {
                let options = format!("{}{}", self.terms.typed(), self.effort.typed());
                let again = format!("lowtide plan {}{options} -o plan.csv", source.typed());
                console.say(format!("nothing was written; next: `{again}`"));
            }
            Fits::No(_) => console.say(format!("nothing was written; next: {}", self.remedy(solved))),
            Fits::Unknown => console.hint(self.way_on(solved.outcome.stopped)),
        }
    }

    /// What to change where it cannot fit.
    fn remedy(&self, solved: &Solved) -> &'static str {
        match (&solved.outcome.plan, &self.terms.capacity) {
            (None, _) => "move or drop one of the two pins",
            (_, Some(_)) => "the same with a larger `--capacity`, or without",
            (_, None) => "the same with a larger `capacity` in the problem's `pools`",
        }
    }

    /// What may find what was not found.
    fn way_on(&self, stopped: Stopped) -> String {
        let Effort { work, seed, without, .. } = &self.effort;
        match (stopped, work) {
            (Stopped::Cancelled, _) => "it may be found if it is not interrupted".to_owned(),
            (Stopped::Work, Some(work)) => {
                format!("more work may find it: `--work {}`", work.max(&1).saturating_mul(MORE))
            }
            (Stopped::Time, _) => format!("more time may find it: `--time-limit {}`", self.effort.longer()),
            _ if !without.is_empty() => "what was left out may find it: the same without `--without`".to_owned(),
            _ => format!("another start may find it: `--seed {}`", seed.wrapping_add(1)),
        }
    }
}

/// How many times as much is worth another try.
const MORE: u64 = 10;

/// Writes the plan if it is an answer, and says what was done.
fn write(
    question: &Question,
    solved: &Solved,
    summary: &Summary,
    (target, kind): &(Target, Kind),
) -> Result<bool, Failure> {
    let Some(plan) = solved.outcome.plan.as_ref().filter(|_| solved.outcome.fits == Fits::Yes) else {
        return Ok(false);
    };
    target.write(|out| match kind {
        Kind::Csv => question.write_csv(plan, out),
        Kind::Json => lowtide_formats::write_plan(question.problem(), plan, &summary.beside_plan(), out),
    })?;
    Ok(true)
}
