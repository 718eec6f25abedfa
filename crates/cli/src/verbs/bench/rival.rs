//! Another planner, run as a command on the same problem. Whatever it says of itself, its plan is read and judged
//! here, and only a valid one counts.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use lowtide_core::{Bytes, Class, Problem};
use lowtide_formats::PlanFile;
use lowtide_plan::{Verdict, validate};
use serde::Serialize;
use tempfile::TempDir;

use crate::console::show;
use crate::program::resources::{Who, measured};

/// A command that plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rival {
    pub name: String,
    command: String,
}

impl FromStr for Rival {
    type Err = String;

    /// Reads `NAME=COMMAND`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("write NAME=COMMAND")?;
        if name.is_empty() || name.contains(char::is_control) {
            return Err("a rival needs a name".to_owned());
        }
        for part in ["{input}", "{output}"] {
            if !command.contains(part) {
                return Err(format!("the command does not say where {part} goes"));
            }
        }
        Ok(Self { name: name.to_owned(), command: command.to_owned() })
    }
}

/// What is asked of a rival.
#[derive(Clone, Copy)]
pub(super) struct Challenge<'a> {
    pub problem: &'a Problem,
    pub capacity: Bytes,
    pub time: Duration,
}

/// What became of a rival on one file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Attempt {
    pub name: String,
    /// Absent where there is no valid plan.
    pub peak: Option<Bytes>,
    pub ratio: Option<f64>,
    pub cpu_seconds: Option<f64>,
    pub seconds: f64,
    /// Why there is no valid plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The command is not there, in the words of the shell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NotFound(pub String);

/// Where a rival's plan is written.
const OUTPUT: &str = "output.csv";

/// What a shell returns for a command that it does not find.
const COMMAND_NOT_FOUND: i32 = 127;

impl Rival {
    /// Runs it; `bound` is what its peak is compared with.
    pub fn run(&self, challenge: Challenge<'_>, bound: Bytes) -> Result<Attempt, NotFound> {
        let start = Instant::now();
        let (planned, cpu_seconds) = measured(Who::Children, || self.plan(challenge));
        let (peak, reason) = match planned? {
            Ok(peak) => (Some(peak), None),
            Err(reason) => (None, Some(reason)),
        };
        Ok(Attempt {
            name: self.name.clone(),
            peak,
            ratio: peak.map(|peak| peak.ratio(bound)),
            cpu_seconds,
            seconds: start.elapsed().as_secs_f64(),
            reason,
        })
    }

    /// The peak of a valid plan, or why there is none.
    fn plan(&self, challenge: Challenge<'_>) -> Result<Result<Bytes, String>, NotFound> {
        let problem = without_classes(challenge.problem);
        let (folder, ended) = match self.carry_out(&problem, challenge) {
            Ok(carried_out) => carried_out,
            Err(reason) => return Ok(Err(reason)),
        };
        if ended.status.code() == Some(COMMAND_NOT_FOUND) {
            return Err(NotFound(last_words(&ended)));
        }
        let judged = judge(&problem, &folder.path().join(OUTPUT));
        Ok(judged.map_err(|reason| {
            if ended.status.success() {
                return reason;
            }
            format!("{reason}; {}: {}", ended.status, last_words(&ended))
        }))
    }

    /// Runs the command in a folder of its own.
    fn carry_out(&self, problem: &Problem, challenge: Challenge<'_>) -> Result<(TempDir, Output), String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let input = folder.path().join("input.csv");
        let table = File::create(&input).map_err(|error| format!("no temporary file: {error}"))?;
        lowtide_formats::write_lifetimes(problem, table).map_err(|error| format!("not asked: {error}"))?;
        let ended = self.start(&input, &folder.path().join(OUTPUT), challenge);
        Ok((folder, ended.map_err(|error| format!("cannot start: {error}"))?))
    }

    fn start(&self, input: &Path, output: &Path, challenge: Challenge<'_>) -> io::Result<Output> {
        let command = self
            .command
            .replace("{input}", &show::path(input))
            .replace("{output}", &show::path(output))
            .replace("{capacity}", &challenge.capacity.get().to_string())
            .replace("{time}", &challenge.time.as_secs_f64().to_string());
        Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null()).output()
    }
}

/// The problem without classes: few planners know them, and to leave them out is to the rival's advantage.
fn without_classes(problem: &Problem) -> Problem {
    let mut problem = problem.clone();
    for buffer in &mut problem.buffers {
        buffer.class = Class::Transient;
    }
    problem
}

/// The peak of the plan in `output`, or why it is none.
fn judge(problem: &Problem, output: &Path) -> Result<Bytes, String> {
    let file = File::open(output).map_err(|_| "it wrote no plan".to_owned())?;
    let file = PlanFile::read(BufReader::new(file)).map_err(|error| format!("its plan cannot be read: {error}"))?;
    let mut plan = file.place(problem).map_err(|error| error.to_string())?;
    plan.lower_bound = Bytes::ZERO;
    match validate(problem, &plan) {
        Verdict::Valid | Verdict::OverCapacity(_) => Ok(plan.peak()),
        verdict => Err(format!("its plan does not hold: {}", verdict.describe(problem))),
    }
}

/// The last line that it wrote to stderr.
fn last_words(ended: &Output) -> String {
    let text = String::from_utf8_lossy(&ended.stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    show::escaped(line.trim()).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Buffer, Lifetime};

    use super::*;

    fn challenge(problem: &Problem) -> Challenge<'_> {
        Challenge { problem, capacity: Bytes::new(16), time: Duration::from_millis(1500) }
    }

    fn two() -> Problem {
        Problem::new(["a", "b"].map(|id| Buffer::new(id, Lifetime { lower: 0, upper: 4 }, Bytes::new(8))).into())
    }

    fn ran(command: &str) -> Result<Attempt, NotFound> {
        format!("other={command}").parse::<Rival>().unwrap().run(challenge(&two()), Bytes::new(16))
    }

    #[test]
    fn a_valid_plan_counts_with_its_own_peak() {
        let attempt = ran(r"test -s {input} && printf 'id,offset\nb,{capacity}\na,0\n' > {output}").unwrap();
        assert_eq!((attempt.peak, attempt.ratio, attempt.reason), (Some(Bytes::new(24)), Some(1.5), None));
        let attempt = ran(r"test {time} = 1.5 && printf 'id,offset\nb,8\na,0\n' > {output} < {input}; exit 3").unwrap();
        assert_eq!(attempt.peak, Some(Bytes::new(16)), "the plan decides, not the exit code");
    }

    #[test]
    fn what_is_no_valid_plan_does_not_count_and_says_why() {
        let reason = |command| ran(command).unwrap().reason.unwrap();
        assert_eq!(
            reason(r"printf 'id,offset\na,0\nb,4\n' > {output} < {input}"),
            "its plan does not hold: buffers `a` and `b` take the same bytes at the same time"
        );
        assert_eq!(reason("true {input} {output}"), "it wrote no plan");
        let failed = reason("echo tired >&2; false {input} {output}");
        assert!(failed.starts_with("it wrote no plan; ") && failed.ends_with(": tired"), "{failed}");
    }

    #[test]
    fn a_command_that_is_not_there_is_told_apart() {
        assert!(matches!(ran("no-such-planner {input} {output}"), Err(NotFound(_))));
    }

    #[test]
    fn a_rival_has_a_name_and_says_where_files_go() {
        for text in ["x", "=c {input} {output}", "x=c {input}", "x=c {output}"] {
            assert!(text.parse::<Rival>().is_err(), "{text}");
        }
    }
}
