//! `lowtide report`: where memory went, as a view for the terminal, as numbers, or as one HTML page; and how two runs
//! differ.

mod compare;
mod data;
mod html;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lowtide_formats::Input;
use lowtide_report::{Grouping, terminal};

pub(crate) use html::write as write_page;

use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::console::Emphasis;
use crate::console::{progress, show};
use crate::input::question::{Part, Question, Terms};
use crate::input::recorded::Recorded;
use crate::input::source::Source;
use crate::planning::solving::Effort;
use crate::planning::study::{Before, Contradiction, Study};
use crate::{Answer, Console, Failure};

/// What to report on, and where the report goes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A trace, a PyTorch snapshot, lifetimes, a problem or a report; two of them are compared; stdin for `-` or when absent
    #[arg(value_name = "INPUT", num_args = 0..=2)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    part: Part,
    /// With two inputs: exit 1 when the peak of the second is higher by more than this, such as 2% or 64MiB
    #[arg(long, value_name = "AMOUNT", value_parser = compare::Tolerance::parse, allow_negative_numbers = true)]
    fail_over: Option<compare::Tolerance>,
    /// Write x.html: the page, with its data inside; x.csv or x.csv.gz: the run as a trace; x.json: the numbers
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put buffers together by this [default: what separates them best]
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<By>,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    effort: Effort,
}

const EXAMPLES: &str = "\
Examples:
  lowtide report trace.csv.gz                        a view in the terminal
  lowtide report snapshot.pickle -o report.html      a page with everything in it
  lowtide report snapshot.pickle -o trace.csv.gz     a PyTorch snapshot as a trace
  lowtide report before.csv after.csv --fail-over 2% exit 1 when the peak rose

A snapshot is what `torch.cuda.memory._dump_snapshot` wrote. Nothing in it is executed.";

/// What buffers are put together by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum By {
    /// What they are for
    Category,
    /// The file that asked for them, or the part of the model that their ids name
    Module,
    /// The line that asked for them
    Line,
    /// Their size
    Size,
}

impl From<By> for Grouping {
    fn from(by: By) -> Self {
        match by {
            By::Category => Self::Category,
            By::Module => Self::Module,
            By::Line => Self::Line,
            By::Size => Self::Size,
        }
    }
}

/// The files that a report can be written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Html,
    Csv,
    CsvGz,
    Json,
}

impl Kind {
    fn of(path: &Path) -> Result<Self, Failure> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("html" | "htm") => Ok(Self::Html),
            Some("csv") => Ok(Self::Csv),
            Some("gz")
                if path.with_extension("").extension().is_some_and(|inner| inner.eq_ignore_ascii_case("csv")) =>
            {
                Ok(Self::CsvGz)
            }
            Some("json") => Ok(Self::Json),
            _ => {
                let name = show::escaped(&path.to_string_lossy()).into_owned();
                let message = "the output is none of .html, .csv, .csv.gz and .json";
                Err(Failure::unfit(&name, message, "name it such as report.html"))
            }
        }
    }
}

/// Studies the inputs, shows and writes.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let sources = arguments.sources()?;
    let output = arguments.output(&sources)?;
    if let (Some((target, kind @ (Kind::Csv | Kind::CsvGz))), [source]) = (&output, &*sources) {
        return write_trace(source, target, *kind, console);
    }
    let inputs: Result<Vec<_>, Failure> =
        sources.iter().map(|source| Ok((source, source.read(console, Input::read)?))).collect();
    let runs = runs(inputs?, &arguments.part.unlimited(), console)?;
    if arguments.fail_over.is_some() && runs.len() < 2 {
        let hint = "give two: `lowtide report BEFORE AFTER --fail-over 2%`";
        return Err(Failure::usage("`--fail-over` compares two runs; there is one", hint));
    }
    let before = if runs.len() == 1 { Before::All } else { Before::Recorded };
    let mut studies = Vec::new();
    for (name, question) in runs {
        let told = question.notes().len();
        let study = match Study::new(question, name, &arguments.effort, before)? {
            Ok(study) => study,
            Err(Contradiction(sentence)) => {
                console.print(sentence)?;
                return Ok(Answer::No);
            }
        };
        study.notes[told..].iter().for_each(|note| console.say(format!("note: {}: {note}", study.name)));
        studies.push(study);
    }
    match &*studies {
        [study] => arguments.one(study, &sources[0], output.as_ref(), console),
        [before, after] => compare::run(arguments, before, after, output.as_ref(), console),
        other => Err(Failure::Fault(format!("{} runs to report on", other.len()))),
    }
}

/// The runs to report on with their names: of each input, or of a report that compares two.
fn runs(
    inputs: Vec<(&Source, Input)>,
    terms: &Terms,
    console: &mut Console,
) -> Result<Vec<(String, Question)>, Failure> {
    let mut runs = Vec::new();
    let is_one = inputs.len() == 1;
    for (source, input) in inputs {
        match input {
            Input::Report(compared) if is_one && compared.len() == 2 => {
                for run in compared {
                    let name = run.name.clone();
                    runs.push((name, Question::new(source.to_string(), Input::Report(vec![run]), terms)?));
                }
            }
            input => {
                let question = Question::new(source.to_string(), input, terms)?;
                question.tell(console);
                runs.push((source.short_name(), question));
            }
        }
    }
    Ok(runs)
}

fn write_trace(source: &Source, target: &Target, kind: Kind, console: &mut Console) -> Result<Answer, Failure> {
    let trace = Recorded::read(source, console)?.trace;
    let line = progress::Doing::new(&format!("writing {}", show::path(target.path())));
    target.write(|out| match kind {
        Kind::CsvGz => lowtide_formats::write_trace_gzip(&trace, out),
        _ => lowtide_formats::write_trace(&trace, out),
    })?;
    drop(line);
    let path = show::path(target.path());
    console.say(format!("wrote {path}; next: `lowtide plan {path}`"));
    Ok(Answer::Yes)
}

impl Arguments {
    /// The files, of which at most one is stdin.
    fn sources(&self) -> Result<Vec<Source>, Failure> {
        if self.inputs.is_empty() {
            return Ok(vec![Source::Stdin]);
        }
        let sources: Vec<Source> = self.inputs.iter().map(|path| Source::new(Some(path))).collect();
        if *sources == [Source::Stdin, Source::Stdin] {
            return Err(Failure::usage("the two runs cannot both come from stdin", "give a file for one of them"));
        }
        Ok(sources)
    }

    /// Where the report is to be written, looked at before any work is done.
    fn output(&self, sources: &[Source]) -> Result<Option<(Target, Kind)>, Failure> {
        let Some(path) = &self.output else { return Ok(None) };
        let kind = Kind::of(path)?;
        let is_trace = matches!(kind, Kind::Csv | Kind::CsvGz);
        if is_trace
            && (self.part.step.is_some() || self.part.align.is_some() || self.view.is_json() || self.by.is_some())
        {
            let message = "a trace is written whole: it takes no `--step`, `--align`, `--by` or `--json`";
            return Err(Failure::usage(message, "leave them out, or write .html or .json"));
        }
        if matches!(kind, Kind::Csv | Kind::CsvGz) && sources.len() > 1 {
            return Err(Failure::usage("two runs are not one trace", "write .html or .json, or give one input"));
        }
        let sources: Vec<&Source> = sources.iter().collect();
        Ok(Some((Target::new(path, &sources)?, kind)))
    }

    fn one(
        &self,
        study: &Study,
        source: &Source,
        output: Option<&(Target, Kind)>,
        console: &mut Console,
    ) -> Result<Answer, Failure> {
        let (usage, live) = study.explained();
        let by = self.by.map_or_else(|| Grouping::telling(usage), Grouping::from);
        let numbers = data::One::new(study, by);
        if self.view.is_json() {
            console.print_json(&numbers)?;
        } else {
            for line in self.view.sheet().headline(&study.headline()) {
                let line = console.paint(Emphasis::Strong, line);
                console.print(line)?;
            }
            for line in terminal(usage, live, by, self.view.sheet()) {
                console.print(line)?;
            }
        }
        console.finish()?;
        if let Some((target, kind)) = output {
            match kind {
                Kind::Html => html::write(&[study], &[], target)?,
                Kind::Json | Kind::Csv | Kind::CsvGz => data::write(&numbers, target)?,
            }
            console.say(wrote(target, *kind, 1));
        } else if !self.view.is_json() {
            let again = format!("lowtide report {}{} -o report.html", source.typed(), self.typed());
            console.say(format!("next: `{again}` makes a page to explore"));
        }
        Ok(Answer::Yes)
    }

    fn typed(&self) -> String {
        let by = self.by.map(|by| format!(" --by {}", Grouping::from(by).name()));
        format!("{}{}{}", self.part.typed(), by.unwrap_or_default(), self.effort.typed())
    }
}

/// What was written, and what to do with it.
fn wrote(target: &Target, kind: Kind, runs: usize) -> String {
    let path = show::path(target.path());
    match kind {
        Kind::Html if runs > 1 => format!("wrote {path}; next: open it in a browser, or `lowtide report {path}`"),
        Kind::Html => format!("wrote {path}; next: open it in a browser, or `lowtide explain {path}`"),
        Kind::Csv | Kind::CsvGz | Kind::Json => format!("wrote {path}"),
    }
}
