//! `lowtide bench plan`: plans many files one after the other and tabulates how low and how fast, with rivals run
//! on the same files in the same run.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::instances::{self, Asked, Instance};
use super::report::{Report, Row, Skipped};
use super::rival::{Attempt, Challenge, NotFound, Rival};
use super::table;
use crate::arguments::typed::Typed;
use crate::arguments::view::Readers;
use crate::console::Emphasis;
use crate::console::show;
use crate::input::question::Terms;
use crate::planning::solving::{Effort, was_interrupted};
use crate::program::resources::{self, Who, measured};
use crate::verbs::bench::synthetic::Synthetic;
use crate::verbs::plan::Summary;
use crate::{Answer, Console, Failure};

/// What to plan, and who else plans it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("step", |step| step.help(STEP)))]
pub struct Arguments {
    /// Files, and folders that are searched for .csv, .csv.gz, .json and .json.gz; of a trace without --step the
    /// middle step is taken
    #[arg(required_unless_present = "synthetic", value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    effort: Effort,
    /// Another planner, run by sh on the same problems; may be given several times
    #[arg(long = "rival", value_name = "NAME=COMMAND")]
    rivals: Vec<Rival>,
    /// Also plan a made problem of N buffers, of which about ALIVE (5000) live at once; may be given several times
    #[arg(long, value_name = "N[:ALIVE]")]
    synthetic: Vec<Synthetic>,
    #[command(flatten)]
    readers: Readers,
}

const STEP: &str = "The step of recorded runs, instead of the middle one of each";

const EXAMPLES: &str = "\
Examples:
  lowtide bench plan lifetimes/ --time-limit 2
  lowtide bench plan hard/ --capacity 1MiB
  lowtide bench plan --synthetic 1000000
  lowtide bench plan hard/ --rival 'other=other --in={input} --out={output}'

A rival's command is given
  {input}     a lifetimes CSV, without classes
  {output}    where it must write a CSV with id and offset
  {capacity}  that of --capacity, or else the file's lower bound
  {time}      the seconds it should take; use `timeout` if it does not keep them
and its plans are judged by the same validator. CPU seconds are user and system
time together: around the solve, or of the rival's whole command.";

/// Plans everything and prints the table.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    refuse_twins(&arguments.rivals)?;
    let made = arguments.synthetic.iter().copied().map(Instance::Made);
    let instances: Vec<Instance> = made.chain(instances::find(&arguments.paths)?).collect();
    let mut bench = Bench { arguments, rivals: arguments.rivals.clone(), report: Report::default() };
    for (place, instance) in instances.iter().enumerate() {
        if was_interrupted() {
            bench.report.not_planned = instances[place..].iter().map(Instance::name).collect();
            break;
        }
        bench.measure(instance, &format!("{}/{}", place + 1, instances.len()), console);
    }
    bench.finish(console)
}

/// The table and the totals tell rivals apart by their names.
fn refuse_twins(rivals: &[Rival]) -> Result<(), Failure> {
    let mut names = HashSet::new();
    match rivals.iter().find(|rival| !names.insert(&rival.name)) {
        Some(twin) => {
            let message = format!("there are two rivals called `{}`", twin.name);
            Err(Failure::usage(message, "give every rival a name of its own"))
        }
        None => Ok(()),
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    /// Those that are there, as far as is known.
    rivals: Vec<Rival>,
    report: Report,
}

impl Bench<'_> {
    /// Plans one instance, or skips it loudly.
    fn measure(&mut self, instance: &Instance, place: &str, console: &mut Console) {
        match self.row(instance, place, console) {
            Ok(row) => self.report.instances.push(row),
            Err(failure) => {
                console.say(format!("skipped {failure}"));
                let name = instance.name();
                let text = failure.to_string();
                let reason = text.strip_prefix(&name).map_or(&*text, |rest| rest.trim_start_matches(": ")).to_owned();
                self.report.skipped.push(Skipped { name, reason });
            }
        }
    }

    fn row(&mut self, instance: &Instance, place: &str, console: &mut Console) -> Result<Row, Failure> {
        let effort = &self.arguments.effort;
        let asked = instance.ask(&self.arguments.terms, effort.seed, console)?;
        let problem = asked.question.problem();
        let (solved, cpu_seconds) = measured(Who::Own, || effort.solve(problem, &format!("{place} {}", asked.label)));
        let solved = solved.map_err(|error| Failure::solve(&instance.name(), error))?;
        let summary = Summary::new(problem, &solved, effort);
        let rivals = self.challenge(&asked, &summary, console);
        Ok(Row {
            file: instance.name(),
            label: asked.label,
            step: asked.step,
            summary,
            cpu_seconds,
            peak_memory: resources::peak_memory().filter(|_| matches!(instance, Instance::Made(_))),
            rivals,
        })
    }

    /// Has every rival try; one whose command is not there is tried no more.
    fn challenge(&mut self, asked: &Asked, summary: &Summary, console: &mut Console) -> Vec<Attempt> {
        let problem = asked.question.problem();
        let capacity = self.arguments.terms.capacity.as_ref().map_or(summary.lower_bound, Typed::value);
        let time = self.arguments.effort.time_limit().unwrap_or(Duration::from_secs(5));
        let mut attempts = Vec::new();
        let rivals_skipped = &mut self.report.rivals_skipped;
        self.rivals.retain(|rival| {
            if was_interrupted() {
                return true;
            }
            match rival.run(Challenge { problem, capacity, time }, summary.lower_bound) {
                // Ctrl-C ended the rival too; what it left is not what it can.
                Ok(_) if was_interrupted() => true,
                Ok(attempt) => {
                    if let Some(reason) = &attempt.reason {
                        console.say(format!("{} has no plan for {}: {reason}", rival.name, asked.label));
                    }
                    attempts.push(attempt);
                    true
                }
                Err(NotFound(reason)) => {
                    console.say(format!("skipped rival {}: its command was not found ({reason})", rival.name));
                    rivals_skipped.push(Skipped { name: rival.name.clone(), reason });
                    false
                }
            }
        });
        attempts
    }

    fn finish(mut self, console: &mut Console) -> Result<Answer, Failure> {
        self.report.interrupted = was_interrupted();
        if self.report.interrupted {
            console.say(self.report.interruption());
        }
        if self.report.instances.is_empty() {
            let message =
                format!("nothing could be planned; {} skipped", show::counted(self.report.skipped.len(), "file"));
            return Err(Failure::usage(message, "give lifetimes CSV, trace CSV or problem JSON, or a folder of them"));
        }
        let names: Vec<String> = self.rivals.iter().map(|rival| rival.name.clone()).collect();
        self.report.add_up(&names);
        if self.arguments.readers.are_scripts() {
            console.print_json(&self.report)?;
        } else {
            self.print(console)?;
        }
        let asked = self.report.instances.len() + self.report.not_planned.len();
        Ok(Answer::from_bool(self.report.totals.fit == asked))
    }

    fn print(&self, console: &mut Console) -> Result<(), Failure> {
        let lines = table::lines(&self.report, self.arguments.terms.capacity.is_some());
        let last = lines.len() - 1;
        for (place, line) in lines.into_iter().enumerate() {
            let line = if place == 0 || place == last { console.paint(Emphasis::Strong, line) } else { line };
            console.print(line)?;
        }
        for row in &self.report.instances {
            if let Some(bytes) = row.peak_memory {
                console.print(format!("{}: the process had {bytes} at most by then", row.label))?;
            }
        }
        for (what, skipped) in [("skipped", &self.report.skipped), ("rivals skipped", &self.report.rivals_skipped)] {
            if !skipped.is_empty() {
                let names: Vec<String> =
                    skipped.iter().map(|skipped| show::escaped(&skipped.name).into_owned()).collect();
                console.print(format!("{what}: {} ({})", names.len(), names.join(", ")))?;
            }
        }
        if !self.report.not_planned.is_empty() {
            console.print(self.report.not_planned_line())?;
        }
        Ok(())
    }
}
