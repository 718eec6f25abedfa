//! `lowtide demo`: a training step that was recorded on a GPU comes with the program and is planned on the spot. The
//! study is data; what is shown is only a view of it.

mod chart;

use clap::{Args, ValueEnum};
use lowtide_core::{Bytes, StepIndex, Trace};
use lowtide_formats::Input;
use serde::Serialize;

use crate::console::Emphasis;
use crate::plan::{Summary, headline};
use crate::question::{Question, Terms};
use crate::solving::Effort;
use crate::{Answer, Console, Failure};

/// How the demo is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lowtide demo\n  lowtide demo --json")]
pub struct Arguments {
    /// Draw with plain ASCII characters
    #[arg(long)]
    ascii: bool,
    /// What stdout gets
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

/// What stdout gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// A small chart
    #[default]
    Text,
    /// One flat object
    Json,
}

/// Six training steps of a language model with experts on one GPU, as PyTorch asked for memory.
const RUN: &[u8] = include_bytes!("../data/mixtral_moe.csv.gz");

/// A step after the first, which also sets up.
const STEP: StepIndex = StepIndex(2);

/// What PyTorch's caching allocator had reserved at most in that run, measured while it was recorded.
const RESERVED: Bytes = Bytes::new(13_365_149_696);

/// A recorded run, planned: one step of it, and all of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Study {
    /// Of the step.
    #[serde(flatten)]
    step: Summary,
    run_steps: usize,
    run_buffers: usize,
    run_peak: Option<Bytes>,
    run_lower_bound: Bytes,
    run_naive: Bytes,
    /// What PyTorch's caching allocator had reserved in the whole run.
    run_reserved: Bytes,
}

impl Study {
    fn new() -> Result<Self, Failure> {
        let trace = recorded()?;
        let steps = trace.steps().count();
        let run = planned(trace.clone(), None)?;
        let step = planned(trace, Some(STEP))?;
        Ok(Self {
            step,
            run_steps: steps,
            run_buffers: run.buffers,
            run_peak: run.peak,
            run_lower_bound: run.lower_bound,
            run_naive: run.naive,
            run_reserved: RESERVED,
        })
    }
}

fn recorded() -> Result<Trace, Failure> {
    match Input::read(RUN) {
        Ok(Input::Trace(trace)) => Ok(trace),
        Ok(other) => Err(Failure::Fault(format!("the bundled run is {}", other.what()))),
        Err(error) => Err(Failure::Fault(format!("the bundled run cannot be read: {error}"))),
    }
}

/// For each of the two plans. Both end by proof well before, unless the machine is very busy.
const TIME_LIMIT: std::time::Duration = std::time::Duration::from_secs(3);

fn planned(trace: Trace, step: Option<StepIndex>) -> Result<Summary, Failure> {
    let name = "the bundled run";
    let terms = Terms { step: step.map(|step| step.0), ..Terms::default() };
    let question = Question::new(name.to_owned(), Input::Trace(trace), &terms)?;
    let effort = Effort { time_limit: Some(TIME_LIMIT), ..Effort::default() };
    let solved = effort.solve(question.problem(), name).map_err(|error| Failure::solve(name, error))?;
    Ok(Summary::new(question.problem(), &solved, &effort))
}

/// Plans the step and the run, and shows what came of it.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let study = Study::new()?;
    if arguments.json || arguments.format == Format::Json {
        console.print_json(&study)?;
        return Ok(Answer::Yes);
    }
    show(&study, arguments.ascii, console)?;
    console.finish()?;
    console.say("next: `lowtide plan YOUR.csv` plans your own; `lowtide plan --help` says how such a file looks");
    Ok(Answer::Yes)
}

fn show(study: &Study, ascii: bool, console: &mut Console) -> Result<(), Failure> {
    let headline = console.paint(Emphasis::Strong, headline(&study.step));
    console.print(headline)?;
    let Study { step, run_steps, run_buffers, .. } = study;
    console.print(format!(
        "step {STEP} of {run_steps} of a Mixtral training run on an H200: {} of {}",
        crate::show::thousands(step.buffers),
        crate::show::counted(*run_buffers, "buffer"),
    ))?;
    let ink = if ascii { chart::Ink::Ascii } else { chart::Ink::Blocks };
    for (title, bars) in [("this step", step_bars(study)), ("the whole run", run_bars(study))] {
        let title = console.paint(Emphasis::Strong, title);
        console.print(format!("\n{title}"))?;
        for line in chart::lines(&bars, ink) {
            console.print(format!("  {line}"))?;
        }
    }
    console.print("")
}

fn step_bars(study: &Study) -> Vec<chart::Bar> {
    let Summary { naive, peak, lower_bound, .. } = study.step;
    vec![bar("without reuse", naive), bar("planned", peak.unwrap_or_default()), bar("lower bound", lower_bound)]
}

fn run_bars(study: &Study) -> Vec<chart::Bar> {
    vec![
        bar("PyTorch had reserved", study.run_reserved),
        bar("planned", study.run_peak.unwrap_or_default()),
        bar("lower bound", study.run_lower_bound),
    ]
}

fn bar(label: &'static str, amount: Bytes) -> chart::Bar {
    chart::Bar { label, amount }
}
