//! A solve in numbers: the one flat object that `--format json` prints, on every answer.

use lowtide_core::{BufferIndex, Bytes, Plan, Problem};
use lowtide_plan::Fits;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::planning::solving::{Effort, Solved};

/// What a solve came to, in numbers. Amounts are bytes; fields are added, never removed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Summary {
    pub version: u64,
    pub buffers: usize,
    /// Absent only where pins contradict each other.
    pub peak: Option<Bytes>,
    pub lower_bound: Bytes,
    pub ratio: Option<f64>,
    pub proved: bool,
    /// Absent where it is not known.
    pub fits: Option<bool>,
    /// Without any reuse.
    pub naive: Bytes,
    pub seconds: f64,
    pub stopped: &'static str,
    pub solver: &'static str,
    pub work: u64,
    pub threads: usize,
    pub seed: u64,
    /// Of the only pool; those of several are with the pools.
    pub capacity: Option<Bytes>,
    /// Where it does not fit: buffers that cannot all fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<Vec<String>>,
    /// Whether none of them can be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame_irreducible: Option<bool>,
    /// Where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<Vec<PoolSummary>>,
    /// Buffers that are not in their own pool, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<Vec<String>>,
}

/// What a plan needs of one pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct PoolSummary {
    pub name: String,
    pub capacity: Option<Bytes>,
    pub height: Bytes,
}

/// Fields that a plan's own file states itself.
const OF_THE_PLAN: [&str; 6] = ["version", "buffers", "peak", "lower_bound", "proved", "pools"];

impl Summary {
    pub fn new(problem: &Problem, solved: &Solved, effort: &Effort) -> Self {
        let outcome = &solved.outcome;
        let plan = outcome.plan.as_ref();
        let ids = |buffers: &[BufferIndex]| -> Vec<String> {
            buffers.iter().map(|&buffer| problem.buffer(buffer).id.to_string()).collect()
        };
        let blame = match &outcome.fits {
            Fits::No(blame) => Some(blame),
            Fits::Yes | Fits::Unknown => None,
        };
        let lower_bound =
            plan.map_or_else(|| lowtide_plan::lower_bound(problem).unwrap_or_default(), |plan| plan.lower_bound);
        let is_one_pool = problem.pools.len() == 1;
        Self {
            version: 1,
            buffers: problem.buffers.len(),
            peak: plan.map(Plan::peak),
            lower_bound,
            ratio: plan.map(|plan| plan.peak().ratio(lower_bound)),
            proved: plan.is_some_and(|plan| plan.proved),
            fits: match outcome.fits {
                Fits::Yes => Some(true),
                Fits::No(_) => Some(false),
                Fits::Unknown => None,
            },
            naive: problem.naive(),
            seconds: solved.seconds,
            stopped: outcome.stopped.name(),
            solver: outcome.solver.name(),
            work: outcome.work,
            threads: effort.threads().get(),
            seed: effort.seed,
            capacity: problem.pools[0].capacity.filter(|_| is_one_pool),
            blame: blame.map(|blame| ids(&blame.buffers)),
            blame_irreducible: blame.map(|blame| blame.irreducible),
            pools: plan.filter(|_| !is_one_pool).map(|plan| pools(problem, &plan.heights)),
            spilled: (!is_one_pool).then(|| ids(&outcome.spilled)),
        }
    }

    /// What goes into a plan's file beside what the plan states itself.
    pub fn beside_plan(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { return Map::new() };
        fields.retain(|name, _| !OF_THE_PLAN.contains(&&**name));
        fields
    }
}

fn pools(problem: &Problem, heights: &[Bytes]) -> Vec<PoolSummary> {
    let pool = |(pool, &height): (&lowtide_core::Pool, &Bytes)| PoolSummary {
        name: pool.name.to_string(),
        capacity: pool.capacity,
        height,
    };
    problem.pools.iter().zip(heights).map(pool).collect()
}
