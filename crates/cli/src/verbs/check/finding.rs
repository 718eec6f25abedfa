//! What a check found: the verdict of the validator, or of matching the plan to the problem before it.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use lowtide_core::{Bytes, Plan, Problem, ProblemError};
use lowtide_formats::{ErrorKind, PlanFile};
use lowtide_plan::{Verdict, lower_bound, validate};
use serde::Serialize;

/// What a check found. Amounts are bytes; fields are added, never removed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Finding {
    pub version: u64,
    pub valid: bool,
    /// A word for scripts.
    pub verdict: &'static str,
    /// The verdict in words.
    #[serde(rename = "message")]
    pub words: String,
    /// The buffers it is about.
    pub buffers: Vec<String>,
    /// Where they stand in the plan's file, in the same order; the line of a table, the place in JSON's `buffers`.
    pub rows: Vec<u64>,
    /// What the plan takes; absent where that cannot be told.
    pub peak: Option<Bytes>,
    /// What no plan can go below, by our own count.
    pub lower_bound: Bytes,
    pub ratio: Option<f64>,
    #[serde(skip)]
    in_json: bool,
}

impl Finding {
    /// Judges the plan in `file` as an answer to `problem`.
    pub fn new(problem: &Problem, file: &PlanFile) -> Result<Self, ProblemError> {
        let bound = lower_bound(problem)?;
        Ok(match file.place(problem) {
            Err(error) => Self::unmatched(problem, file, &error, bound),
            Ok(plan) => Self::matched(problem, file, plan, bound),
        })
    }

    /// ` (plan.csv rows 3 and 7)`, or nothing where no row is known.
    pub fn place(&self, plan: impl Display) -> String {
        let noun = match (self.in_json, self.rows.len()) {
            (true, 1) => "entry",
            (true, _) => "entries",
            (false, 1) => "row",
            (false, _) => "rows",
        };
        let rows: Vec<String> = self.rows.iter().map(u64::to_string).collect();
        if rows.is_empty() { String::new() } else { format!(" ({plan} {noun} {})", rows.join(" and ")) }
    }

    /// A plan that is for other buffers than the problem has.
    fn unmatched(problem: &Problem, file: &PlanFile, error: &lowtide_formats::Error, bound: Bytes) -> Self {
        let entry = file.entries.iter().find(|entry| Some(entry.row) == error.row);
        let of_entry = entry.map(|entry| entry.id.to_string());
        let (verdict, buffers) = match error.kind {
            ErrorKind::MissingBuffers { .. } => ("missing-buffers", missing(problem, file)),
            ErrorKind::PlacedTwice { .. } => ("placed-twice", of_entry.into_iter().collect()),
            ErrorKind::OtherBuffer { .. } => ("other-buffer", of_entry.into_iter().collect()),
            ErrorKind::UnknownBuffer { .. } => ("unknown-buffer", of_entry.into_iter().collect()),
            ErrorKind::UnknownPool { .. } => ("unknown-pool", of_entry.into_iter().collect()),
            _ => ("too-large", of_entry.into_iter().collect()),
        };
        let rows = match error.kind {
            ErrorKind::PlacedTwice { .. } => rows_up_to(file, entry.map_or(0, |entry| entry.row)),
            _ => error.row.into_iter().collect(),
        };
        Self { buffers, rows, ..Self::fault(verdict, &error.to_string(), None, bound, file) }
    }

    fn matched(problem: &Problem, file: &PlanFile, mut plan: Plan, bound: Bytes) -> Self {
        let peak = plan.peak();
        let claimed = file.lower_bound.filter(|&claimed| claimed > peak);
        plan.lower_bound = claimed.unwrap_or(bound.min(peak));
        state_heights(problem, file, &mut plan);
        let verdict = validate(problem, &plan);
        let bound = bound.min(peak);
        if verdict == Verdict::Valid
            && let Some(stated) = file.peak.filter(|&stated| stated != peak)
        {
            let words = format!("the plan states a peak of {} bytes, but it is {}", stated.get(), peak.get());
            return Self::fault("wrong-height", &words, Some(peak), bound, file);
        }
        let named = verdict.buffers();
        let rows: HashMap<&str, u64> = file.entries.iter().map(|entry| (&*entry.id, entry.row)).collect();
        let ids = named.iter().map(|&buffer| &*problem.buffer(buffer).id);
        Self {
            valid: verdict == Verdict::Valid,
            buffers: ids.clone().map(str::to_owned).collect(),
            rows: ids.filter_map(|id| rows.get(id).copied()).collect(),
            ..Self::fault(verdict.name(), &words(problem, &plan, verdict), Some(peak), bound, file)
        }
    }

    fn fault(verdict: &'static str, words: &str, peak: Option<Bytes>, bound: Bytes, file: &PlanFile) -> Self {
        Self {
            version: 1,
            valid: false,
            verdict,
            words: crate::console::show::escaped(words).into_owned(),
            buffers: Vec::new(),
            rows: Vec::new(),
            peak,
            lower_bound: bound,
            ratio: peak.map(|peak| peak.ratio(bound)),
            // The first row of a table is its header.
            in_json: file.entries.first().is_some_and(|entry| entry.row == 1),
        }
    }
}

/// The verdict in words, with the amounts where it is about some.
fn words(problem: &Problem, plan: &Plan, verdict: Verdict) -> String {
    match verdict {
        Verdict::OverCapacity(pool) => {
            let (pool, height) = (&problem.pools[pool.get()], plan.heights[pool.get()]);
            let capacity = pool.capacity.unwrap_or_default();
            let over = height.saturating_sub(capacity);
            format!("pool `{}` needs {height}, its capacity is {capacity} ({over} over)", pool.name)
        }
        Verdict::BelowBound => format!(
            "the plan claims a lower bound of {} bytes, but takes only {}",
            plan.lower_bound.get(),
            plan.peak().get()
        ),
        other => other.describe(problem).to_string(),
    }
}

/// Takes the heights that the file states over, so that wrong ones are found.
fn state_heights(problem: &Problem, file: &PlanFile, plan: &mut Plan) {
    for stated in &file.pools {
        if let Some(place) = problem.pools.iter().position(|pool| pool.name == stated.name) {
            plan.heights[place] = stated.height;
        }
    }
}

fn missing(problem: &Problem, file: &PlanFile) -> Vec<String> {
    let placed: HashSet<&str> = file.entries.iter().map(|entry| &*entry.id).collect();
    let ids = problem.buffers.iter().map(|buffer| &*buffer.id);
    ids.filter(|id| !placed.contains(id)).map(str::to_owned).collect()
}

/// The rows with the id that `row` has, up to that row.
fn rows_up_to(file: &PlanFile, row: u64) -> Vec<u64> {
    let Some(second) = file.entries.iter().find(|entry| entry.row == row) else { return Vec::new() };
    file.entries.iter().filter(|entry| entry.id == second.id && entry.row <= row).map(|entry| entry.row).collect()
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Buffer, Lifetime};

    use super::*;

    fn found(plan: &str) -> Finding {
        let buffer = |id: &str| Buffer::new(id, Lifetime { lower: 0, upper: 4 }, Bytes::new(8));
        let problem = Problem::new(vec![buffer("a"), buffer("b")]);
        Finding::new(&problem, &PlanFile::read(plan.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn an_overlap_names_both_buffers_and_their_rows() {
        let finding = found("id,offset\nb,4\n\na,0\n");
        assert_eq!((finding.verdict, &*finding.buffers), ("overlap", &["a".to_owned(), "b".to_owned()][..]));
        assert_eq!(finding.place("plan.csv"), " (plan.csv rows 4 and 2)");
    }

    #[test]
    fn what_a_plan_claims_is_not_taken_for_granted() {
        let plan = |fields: &str| {
            let buffers = r#"[{"id":"a","offset":0},{"id":"b","offset":8}]"#;
            found(&format!(r#"{{"kind":"plan","version":1,{fields}"buffers":{buffers}}}"#)).verdict
        };
        assert_eq!(plan(""), "valid");
        assert_eq!(plan(r#""peak":15,"#), "wrong-height");
        assert_eq!(plan(r#""pools":[{"name":"main","height":8}],"#), "wrong-height");
        assert_eq!(plan(r#""lower_bound":17,"#), "below-bound");
        assert_eq!(plan(r#""lower_bound":1,"proved":true,"#), "valid");
    }

    #[test]
    fn a_plan_for_other_buffers_is_invalid_with_the_row() {
        let told = |plan| {
            let finding = found(plan);
            (finding.verdict, finding.buffers.join(" "), finding.rows)
        };
        assert_eq!(told("id,offset\na,0\n"), ("missing-buffers", "b".to_owned(), vec![]));
        assert_eq!(told("id,offset\na,0\nb,8\nc,0\n"), ("unknown-buffer", "c".to_owned(), vec![4]));
        assert_eq!(told("id,size,offset\na,8,0\nb,16,8\n"), ("other-buffer", "b".to_owned(), vec![3]));
        assert_eq!(told("id,offset\na,0\nb,8\na,0\n"), ("placed-twice", "a".to_owned(), vec![2, 4]));
        let far = format!("id,offset\na,0\nb,{}\n", u64::MAX);
        assert_eq!(told(&far), ("too-large", "b".to_owned(), vec![3]));
    }
}
