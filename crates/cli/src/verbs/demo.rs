//! `lowtide demo`: a training step that was recorded on a GPU comes with the program, is planned on the spot, and drawn
//! on a page. The results are data; what is shown is only a view of them.

mod chart;

use std::path::PathBuf;

use clap::Args;
use lowtide_core::{Bytes, StepIndex, Trace};
use lowtide_formats::Input;
use lowtide_report::Sheet;
use serde::Serialize;

use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::console::{Emphasis, show};
use crate::input::question::{Part, Question};
use crate::planning::solving::Effort;
use crate::planning::study::{Before, Contradiction, Study};
use crate::verbs::plan::{Summary, headline_parts};
use crate::verbs::report::write_page;
use crate::{Answer, Console, Failure};

/// How the demo is shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where the page goes: a file that ends in .html, or a folder
    #[arg(short, long, value_name = "FILE", default_value = PAGE)]
    output: PathBuf,
    #[command(flatten)]
    view: View,
}

const EXAMPLES: &str = "\
Examples:
  lowtide demo                  writes lowtide-demo.html into this folder
  lowtide demo -o /tmp          writes /tmp/lowtide-demo.html
  lowtide demo -o d.html --json the numbers for a script, and the page";

/// Six training steps of a language model with experts on one GPU, as PyTorch asked for memory.
const RUN: &[u8] = include_bytes!("../../data/mixtral_moe.csv.gz");

/// A step after the first, which also sets up.
const STEP: StepIndex = StepIndex(2);

/// What PyTorch's caching allocator had reserved at most in that run, measured while it was recorded.
const RESERVED: Bytes = Bytes::new(13_365_149_696);

/// What the page is called where no name is given.
const PAGE: &str = "lowtide-demo.html";

/// A recorded run, planned: one step of it, and all of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Results {
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

impl Results {
    fn new(step: &Study, run: &Summary, steps: usize) -> Self {
        Self {
            step: step.summary.clone(),
            run_steps: steps,
            run_buffers: run.buffers,
            run_peak: run.peak,
            run_lower_bound: run.lower_bound,
            run_naive: run.naive,
            run_reserved: RESERVED,
        }
    }
}

fn recorded() -> Result<Trace, Failure> {
    match Input::read(RUN) {
        Ok(Input::Trace(trace)) => Ok(trace),
        Ok(other) => Err(Failure::Fault(format!("the bundled run is {}", other.what()))),
        Err(error) => Err(Failure::Fault(format!("the bundled run cannot be read: {error}"))),
    }
}

const NAME: &str = "the bundled run";

/// For each of the two plans. Both end by proof well before, unless the machine is very busy.
const TIME_LIMIT: std::time::Duration = std::time::Duration::from_secs(3);

/// What is asked, about the whole run or a step of it.
fn question(trace: Trace, step: Option<StepIndex>) -> Result<Question, Failure> {
    let part = Part { step: step.map(|step| step.0), ..Part::default() };
    Question::new(NAME.to_owned(), Input::Trace(trace), &part.unlimited())
}

/// Plans the step and the run, shows what came of it, and draws the step.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    let target = arguments.target()?;
    let effort = Effort { time_limit: Some(TIME_LIMIT), ..Effort::default() };
    let trace = recorded()?;
    let steps = trace.steps().count();
    let whole = question(trace.clone(), None)?;
    let solved = effort.solve(whole.problem(), NAME).map_err(|error| Failure::solve(NAME, error))?;
    let whole = Summary::new(whole.problem(), &solved, &effort);
    let title = format!("Mixtral training, step {STEP} of {steps}");
    let step = Study::new(question(trace, Some(STEP))?, title, &effort, Before::All)?;
    let step = step.map_err(|Contradiction(sentence)| Failure::Fault(format!("{NAME}: {sentence}")))?;
    let results = Results::new(&step, &whole, steps);
    if arguments.view.is_json() {
        console.print_json(&results)?;
    } else {
        print(&results, arguments.view.sheet(), console)?;
    }
    console.finish()?;
    write_page(&[&step], &[], &target)?;
    let page = show::path(target.path());
    console.say(format!("wrote {page}; next: open it in a browser, or `lowtide explain {page}`"));
    Ok(Answer::Yes)
}

impl Arguments {
    /// Where the page goes, looked at before any work is done.
    fn target(&self) -> Result<Target, Failure> {
        if self.output.is_dir() {
            return Target::new(&self.output.join(PAGE), &[]);
        }
        let ending = self.output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if !matches!(ending.as_deref(), Some("html" | "htm")) {
            let name = show::escaped(&self.output.to_string_lossy()).into_owned();
            return Err(Failure::unfit(&name, "the output is neither .html nor a folder", "name it such as demo.html"));
        }
        Target::new(&self.output, &[])
    }
}

fn print(results: &Results, sheet: Sheet, console: &mut Console) -> Result<(), Failure> {
    for line in sheet.headline(&headline_parts(&results.step)) {
        let line = console.paint(Emphasis::Strong, line);
        console.print(line)?;
    }
    let Results { step, run_steps, run_buffers, .. } = results;
    let about = format!(
        "step {STEP} of {run_steps} of a Mixtral training run on an H200: {} of {}",
        show::thousands(step.buffers),
        show::counted(*run_buffers, "buffer"),
    );
    for line in sheet.wrapped(&about, "", "  ") {
        console.print(line)?;
    }
    for (title, bars) in [("this step", step_bars(results)), ("the whole run", run_bars(results))] {
        let title = console.paint(Emphasis::Strong, title);
        console.print(format!("\n{title}"))?;
        for line in chart::lines(&bars, sheet) {
            console.print(format!("  {line}"))?;
        }
    }
    console.print("")
}

fn step_bars(results: &Results) -> Vec<chart::Bar> {
    let Summary { naive, peak, lower_bound, .. } = results.step;
    vec![bar("without reuse", naive), bar("planned", peak.unwrap_or_default()), bar("lower bound", lower_bound)]
}

fn run_bars(results: &Results) -> Vec<chart::Bar> {
    vec![
        bar("PyTorch had reserved", results.run_reserved),
        bar("planned", results.run_peak.unwrap_or_default()),
        bar("lower bound", results.run_lower_bound),
    ]
}

fn bar(label: &'static str, amount: Bytes) -> chart::Bar {
    chart::Bar { label, amount }
}
