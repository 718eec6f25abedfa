//! From an input to the problem that is asked about: which step, at which alignment, in how much memory.

use std::io::Write;

use clap::Args;
use lowtide_core::{Align, BufferIndex, Bytes, Origin, Plan, Problem, StepIndex, Trace, Usage};
use lowtide_formats::{Input, Lifetimes, Run};
use lowtide_plan::{run_usage, step_usage};

use crate::arguments::numbers;
use crate::arguments::typed::Typed;
use crate::input::source::Source;
use crate::{Console, Failure};

/// What is asked of an input; the same for every verb that solves.
#[derive(Clone, Debug, Default, Args)]
pub struct Terms {
    /// The memory there is: bytes, an amount such as 1.5GiB, or a GPU's name such as H200
    #[arg(long, value_name = "SIZE", value_parser = numbers::typed_memory, allow_negative_numbers = true)]
    pub capacity: Option<Typed<Bytes>>,
    #[command(flatten)]
    pub part: Part,
}

/// Which part of an input is looked at, and how; the same for every verb that reads problems.
#[derive(Clone, Debug, Default, Args)]
pub struct Part {
    /// Every offset is a multiple of this, beside the alignments that the input gives
    #[arg(long, value_name = "SIZE", value_parser = numbers::typed_align, allow_negative_numbers = true)]
    pub align: Option<Typed<Align>>,
    /// The step of a recorded run, instead of the whole run
    #[arg(long, value_name = "N", value_parser = numbers::whole, allow_negative_numbers = true)]
    pub step: Option<u64>,
}

impl Terms {
    /// As they can be typed again, behind a command.
    pub(crate) fn typed(&self) -> String {
        let capacity = self.capacity.as_ref().map(|capacity| format!(" --capacity {}", capacity.word()));
        self.part.typed() + &capacity.unwrap_or_default()
    }
}

impl Part {
    /// As it can be typed again, behind a command.
    pub(crate) fn typed(&self) -> String {
        let Self { align, step } = self;
        let align = align.as_ref().map(|align| format!(" --align {}", align.word()));
        let options = [step.map(|step| format!(" --step {step}")), align];
        options.into_iter().flatten().collect()
    }

    /// With as much memory as there is need of.
    pub(crate) fn unlimited(&self) -> Terms {
        Terms { capacity: None, part: self.clone() }
    }
}

/// A problem, and what is left of the file it came from.
pub(crate) struct Question {
    name: String,
    body: Body,
    /// What reading it had to leave open, a line each.
    notes: Vec<String>,
}

enum Body {
    /// A table whose rows are written again with offsets.
    Lifetimes(Box<Lifetimes>),
    Usage(Box<Usage>),
}

impl Question {
    /// Reads `source` and applies `terms`.
    pub fn read(source: &Source, terms: &Terms, console: &mut Console) -> Result<Self, Failure> {
        Self::new(source.to_string(), source.read(console, Input::read)?, terms)
    }

    /// Applies `terms` to `input`, which messages call `name`.
    pub fn new(name: String, input: Input, terms: &Terms) -> Result<Self, Failure> {
        let mut notes = Vec::new();
        let body = match input {
            Input::Snapshot(snapshot) => {
                notes.extend(snapshot.notes.iter().map(ToString::to_string));
                Body::Usage(Box::new(of_trace(&name, &snapshot.trace, terms)?))
            }
            Input::Trace(trace) => Body::Usage(Box::new(of_trace(&name, &trace, terms)?)),
            Input::Plan(_) => {
                let hint = "give the problem that it is a plan for; `lowtide check PROBLEM PLAN` checks a plan";
                return Err(Failure::unfit(&name, "this is a plan, not a problem", hint));
            }
            Input::Report(_) if terms.part.step.is_some() => {
                let hint =
                    "give the trace or snapshot it was made from; `lowtide explain --at step:N` needs no `--step`";
                return Err(Failure::unfit(&name, "a step cannot be cut out of a report", hint));
            }
            Input::Report(runs) => {
                let run = only_run(&name, runs)?;
                notes.extend(run.notes);
                Body::Usage(Box::new(run.usage))
            }
            other if terms.part.step.is_some() => {
                let message = format!("there is no step in {}; only a recorded run has steps", other.what());
                return Err(Failure::unfit(&name, message, "leave out `--step`, or give a trace"));
            }
            Input::Lifetimes(lifetimes) => Body::Lifetimes(Box::new(lifetimes)),
            Input::Problem(problem) => Body::Usage(Box::new(Usage::of(problem))),
            other => return Err(Failure::unfit(&name, format!("cannot plan {}", other.what()), "give a problem")),
        };
        Self { name, body, notes }.under(terms)
    }

    /// A problem that came from no file.
    pub fn made(name: String, problem: Problem, terms: &Terms) -> Result<Self, Failure> {
        Self { name, body: Body::Usage(Box::new(Usage::of(problem))), notes: Vec::new() }.under(terms)
    }

    fn under(mut self, terms: &Terms) -> Result<Self, Failure> {
        if let Some(capacity) = &terms.capacity {
            self.limit(capacity.value())?;
        }
        if let Some(align) = &terms.part.align {
            self.align(align.value())?;
            self.forget_plans();
        }
        Ok(self)
    }

    /// Plans that came with the input are for what it asked.
    fn forget_plans(&mut self) {
        if let Body::Usage(usage) = &mut self.body {
            usage.layouts.retain(|layout| layout.origin == Origin::Recorded);
        }
    }

    fn limit(&mut self, capacity: Bytes) -> Result<(), Failure> {
        let [pool] = self.problem_mut().pools.as_mut_slice() else {
            let message = format!("`--capacity` is for one pool; the problem has {}", self.problem().pools.len());
            return Err(Failure::unfit(&self.name, message, "give each pool its `capacity` in the problem's JSON"));
        };
        pool.capacity = Some(capacity);
        Ok(())
    }

    fn align(&mut self, align: Align) -> Result<(), Failure> {
        for buffer in &mut self.problem_mut().buffers {
            let Some(common) = buffer.align.checked_common_multiple(align) else {
                let message = format!("alignments {} and {align} have no common multiple in range", buffer.align);
                return Err(Failure::usage(message, "use a smaller `--align`"));
            };
            buffer.align = common;
        }
        self.problem().check().map_err(|error| {
            let named = match &error {
                lowtide_core::ProblemError::MisalignedPin { buffer, .. }
                | lowtide_core::ProblemError::TooLarge { buffer, .. } => self.row(*buffer),
                _ => None,
            };
            Failure::problem(&self.name, named, error)
        })
    }

    /// What messages call it: the file, or what made it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What reading it had to leave open, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Says what reading it had to leave open.
    pub fn tell(&self, console: &mut Console) {
        for note in &self.notes {
            console.say(format!("note: {}: {note}", self.name));
        }
    }

    pub fn problem(&self) -> &Problem {
        match &self.body {
            Body::Lifetimes(lifetimes) => &lifetimes.problem,
            Body::Usage(usage) => &usage.problem,
        }
    }

    /// How memory is used: the problem, and what is known beside it.
    pub fn into_usage(self) -> Usage {
        match self.body {
            Body::Lifetimes(lifetimes) => Usage::of(lifetimes.problem),
            Body::Usage(usage) => *usage,
        }
    }

    fn problem_mut(&mut self) -> &mut Problem {
        match &mut self.body {
            Body::Lifetimes(lifetimes) => &mut lifetimes.problem,
            Body::Usage(usage) => &mut usage.problem,
        }
    }

    fn row(&self, buffer: BufferIndex) -> Option<u64> {
        match &self.body {
            Body::Lifetimes(lifetimes) => Some(lifetimes.row(buffer)),
            Body::Usage(_) => None,
        }
    }

    /// The plan as a table: the input's own rows where it was one, with offsets.
    pub fn write_csv(&self, plan: &Plan, out: impl Write) -> Result<(), lowtide_formats::Error> {
        match &self.body {
            Body::Lifetimes(lifetimes) => lifetimes.write_plan(plan, out),
            Body::Usage(usage) => lowtide_formats::write_plan_csv(&usage.problem, plan, out),
        }
    }
}

fn of_trace(name: &str, trace: &Trace, terms: &Terms) -> Result<Usage, Failure> {
    match terms.part.step {
        None => Ok(run_usage(trace)),
        Some(step) => step_usage(trace, StepIndex(step)).map_err(|error| {
            Failure::unfit(name, error, "choose one of these, or leave out `--step` for the whole run")
        }),
    }
}

/// The run of a report that shows one.
fn only_run(name: &str, runs: Vec<Run>) -> Result<Run, Failure> {
    let count = runs.len();
    if let Ok([run]) = <[Run; 1]>::try_from(runs) {
        return Ok(run);
    }
    let message = format!("this report compares {count} runs");
    Err(Failure::unfit(name, message, "give one of the inputs that it was made from"))
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Buffer, Lifetime, Pool};

    use super::*;

    fn made(terms: &Terms, change: impl FnOnce(&mut Problem)) -> Result<Question, Failure> {
        let mut buffer = Buffer::new("a", Lifetime { lower: 0, upper: 1 }, Bytes::new(8));
        buffer.align = Align::new(6).unwrap();
        let mut problem = Problem::new(vec![buffer]);
        change(&mut problem);
        Question::made("here".to_owned(), problem, terms)
    }

    #[test]
    fn an_alignment_is_added_to_those_of_the_input() {
        let terms = Part { align: numbers::typed_align("4").ok(), ..Part::default() }.unlimited();
        assert_eq!(made(&terms, |_| {}).unwrap().problem().buffers[0].align.get(), 12);
        let pinned = made(&terms, |problem| problem.buffers[0].pin = Some(Bytes::new(6)));
        assert_eq!(
            pinned.err().unwrap().to_string(),
            "here: buffer `a` is pinned at 6, which is no multiple of its alignment 12"
        );
    }

    #[test]
    fn a_capacity_needs_one_pool() {
        let terms = Terms { capacity: numbers::typed_size("64").ok(), ..Terms::default() };
        assert_eq!(made(&terms, |_| {}).unwrap().problem().pools[0].capacity, Some(Bytes::new(64)));
        let two = made(&terms, |problem| problem.pools.push(Pool::unlimited("slow")));
        assert_eq!(two.err().unwrap().to_string(), "here: `--capacity` is for one pool; the problem has 2");
    }
}
