//! Who works on what, for how long: the portfolio over one strip.
//!
//! A strip that falls apart in time is solved part by part. Work on a part goes in batches of a few tasks with
//! a share of work each; a batch is merged in the order of its tasks, whichever thread was faster, so that the
//! result depends on the seed and on the work done, not on the machine. Most shares are small, since a search that
//! succeeds mostly does so soon; every second is twice as large, every fourth four times, and so on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lowtide_core::random::mix;

use crate::options::Techniques;
use crate::outcome::{Solver, Stopped};
use crate::prepare::strip::Strip;
use crate::search::budget::Budget;
use crate::search::effort::Effort;
use crate::solvers::exact::{self, Found, Learned, Manner, TASTES};
use crate::solvers::greedy::{self, RECIPES};
use crate::solvers::overlaps::Overlaps;
use crate::solvers::{online, repair};

/// Threads that a solve uses at most: as many as there are tasks in a batch. More would only make batches longer.
pub const MOST_THREADS: usize = LANES;

const LANES: usize = 4;

/// Bodies up to which complete search is tried.
const LARGEST_EXACT: usize = 32_768;

/// The share of work of a first task; a unit takes about 0.15 µs.
const FIRST_SHARE: u64 = 4_000;

/// Units of work of the longest greedy pass that is worth waiting for: some ten seconds.
const LONGEST_PASS: u64 = 100_000_000;

/// Units that even a task costs which finds at once that it can do nothing.
const LEAST_SPENT: u64 = 100;

/// Batches after which a goal that was not reached is aimed at less often.
const PATIENCE: usize = 16;

/// The best that was found for a strip.
#[derive(Clone, Debug)]
pub(crate) struct Solved {
    pub offsets: Vec<u64>,
    pub height: u64,
    /// No plan is lower.
    pub bound: u64,
    pub solver: Solver,
    pub stopped: Stopped,
}

impl Solved {
    /// Whether the height is within a thousandth of the bound.
    fn is_near_the_bound(&self) -> bool {
        self.height <= self.bound + self.bound / 1000
    }
}

/// What is asked about a strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    /// As low as can be, but not lower than this.
    Lowest(u64),
    /// At or below this, or the proof that it cannot be: a bound above it.
    Below(u64),
}

/// Places the unpinned bodies of `strip`.
pub(crate) fn solve(strip: &Strip, aim: Aim, budget: &mut Budget, watch: &dyn Fn(u64, u64)) -> Solved {
    let offsets = online::place(strip);
    let height = strip.height(&offsets);
    let mut solved =
        Solved { offsets, height, bound: strip.lower_bound(), solver: Solver::Online, stopped: Stopped::Proved };
    let (deadline, begun) = (budget.deadline, Instant::now());
    // The height for which the rest of the search was last limited.
    let mut limited = None;
    let mut parts = parts(strip, budget.options.techniques.decompose, &solved.offsets);
    loop {
        solved.bound = parts.iter().map(|part| part.bound).fold(solved.bound, u64::max);
        let (Aim::Lowest(goal) | Aim::Below(goal)) = aim;
        watch(solved.height, solved.bound);
        if matches!(aim, Aim::Lowest(_)) && solved.is_near_the_bound() && limited != Some(solved.height) {
            limited = Some(solved.height);
            budget.limit_near_bound(deadline, begun);
        }
        let cannot = matches!(aim, Aim::Below(ceiling) if solved.bound > ceiling);
        if solved.height <= goal.max(solved.bound) || cannot {
            break;
        }
        if let Some(stopped) = budget.spent() {
            solved.stopped = stopped;
            break;
        }
        let Some(part) = parts.iter_mut().max_by_key(|part| part.height) else { break };
        let goal = Goal { height: goal.max(solved.bound), anything_lower: matches!(aim, Aim::Lowest(_)) };
        if !part.work_on(goal, budget) {
            solved.stopped = Stopped::Exhausted;
            break;
        }
        part.copy_to(&mut solved);
        solved.height = strip.height(&solved.offsets);
    }
    budget.deadline = deadline;
    solved
}

/// Bodies that share no section with those of other parts.
struct Part {
    strip: Strip,
    /// For each body, its index in the whole strip.
    bodies: Vec<u32>,
    overlaps: Option<Overlaps>,
    best: Vec<u64>,
    height: u64,
    bound: u64,
    solver: Solver,
    /// Whether complete search can represent it.
    flat: bool,
    /// Whether greedy passes end in time.
    passes_pay: bool,
    /// Batches made so far.
    batches: usize,
    /// What complete searches remember, one for each place in a batch, so that it does not matter which thread
    /// runs which task.
    memories: [Mutex<Learned>; LANES],
}

fn parts(strip: &Strip, decompose: bool, offsets: &[u64]) -> Vec<Part> {
    let split = if decompose { strip.split() } else { vec![(strip.clone(), (0..strip.len() as u32).collect())] };
    split
        .into_iter()
        .map(|(strip, bodies)| {
            let best: Vec<u64> = bodies.iter().map(|&body| offsets[body as usize]).collect();
            let height = strip.height(&best);
            let bound = strip.lower_bound();
            let flat = strip.is_flat();
            let passes_pay = greedy::units(&strip) <= LONGEST_PASS;
            Part {
                strip,
                bodies,
                overlaps: None,
                best,
                height,
                bound,
                solver: Solver::Online,
                flat,
                passes_pay,
                batches: 0,
                memories: Default::default(),
            }
        })
        .collect()
}

/// The height to reach, and whether anything between it and the best so far is worth finding.
#[derive(Clone, Copy)]
struct Goal {
    height: u64,
    anything_lower: bool,
}

impl Goal {
    /// A ceiling below `best` by one part in `parts` of the distance to the goal.
    fn just_below(&self, parts: u64, best: u64) -> u64 {
        if self.anything_lower { best - 1 - (best - 1 - self.height) / parts } else { self.height }
    }

    /// A ceiling between the goal and `best`: at half the distance, three quarters, a quarter, seven eighths, in turn.
    fn ceiling_above(&self, turn: usize, best: u64) -> u64 {
        let distance = best - 1 - self.height;
        let above = [distance / 2, distance / 4 * 3, distance / 4, distance / 8 * 7];
        self.height + if self.anything_lower { above[(turn - 1) % above.len()] } else { 0 }
    }
}

/// Something to try on a part.
#[derive(Clone, Copy, Debug)]
enum Task {
    Greedy { recipe: usize },
    Repair { ceiling: u64, seed: u64 },
    Exact { ceiling: u64, manner: Manner },
}

/// What came of a task.
enum TaskResult {
    Plan(Vec<u64>, Solver),
    NothingBelow(u64),
    Nothing,
}

impl Part {
    fn copy_to(&self, solved: &mut Solved) {
        for (&body, &offset) in self.bodies.iter().zip(&self.best) {
            solved.offsets[body as usize] = offset;
        }
        solved.solver = self.solver;
    }

    /// Runs one batch of tasks; false when there is nothing left to try.
    fn work_on(&mut self, goal: Goal, budget: &mut Budget) -> bool {
        let options = budget.options;
        let batch = loop {
            let number = self.batches;
            self.batches += 1;
            let tasks = self.batch(number, &goal, options.techniques, options.seed);
            let batch: Vec<(Task, u64)> = tasks.into_iter().map(|task| (task, self.share(task, number))).collect();
            if !batch.is_empty() {
                break batch;
            }
            if number > RECIPES.len() {
                return false;
            }
        };
        let overlaps = self.overlaps.take().unwrap_or_else(|| Overlaps::new(&self.strip));
        let results = self.run(&overlaps, &batch, goal.height, budget);
        self.overlaps = Some(overlaps);
        for result in results {
            match result {
                TaskResult::Plan(offsets, solver) => {
                    let height = self.strip.height(&offsets);
                    if height < self.height {
                        (self.best, self.height, self.solver) = (offsets, height, solver);
                    }
                }
                TaskResult::NothingBelow(height) => {
                    self.bound = self.bound.max(height.min(self.height));
                    // Searches behind this one were cut short at no particular point.
                    self.memories = Default::default();
                }
                TaskResult::Nothing => {}
            }
        }
        true
    }

    /// The tasks of batch `number`: greedy passes in the first, then searches and repairs under the goal and under
    /// ceilings above it, with the other greedy passes in between.
    fn batch(&self, number: usize, goal: &Goal, techniques: Techniques, seed: u64) -> Vec<Task> {
        let greedy = |recipe: usize| {
            (techniques.greedy && self.passes_pay && recipe < RECIPES.len()).then_some(Task::Greedy { recipe })
        };
        if number == 0 {
            return (0..LANES).filter_map(greedy).collect();
        }
        let seed = |lane: usize| mix(seed ^ mix((number * LANES + lane) as u64));
        let above = goal.ceiling_above(number, self.height);
        let repair = |lane: usize, ceiling: u64| techniques.repair.then(|| Task::Repair { ceiling, seed: seed(lane) });
        let exact = |lane: usize, ceiling: u64, fresh: bool| {
            let first_round = number * (LANES - 1) + lane + LANES;
            let later = seed(lane) as usize;
            let mut taste = TASTES[if number <= TASTES.len() { first_round } else { later } % TASTES.len()];
            taste.chance += if number <= TASTES.len() { 0.0 } else { 0.2 };
            let manner = Manner { taste, seed: seed(lane), fresh };
            (techniques.exact && self.flat && self.strip.len() <= LARGEST_EXACT)
                .then_some(Task::Exact { ceiling, manner })
        };
        let even = number.is_multiple_of(2);
        // A goal that was not reached for long may be out of reach.
        let stubborn = number >= PATIENCE;
        let higher = goal.ceiling_above(number + 1, self.height);
        let lower = goal.ceiling_above(number + 3, self.height);
        let first = if even { None } else { repair(0, if number % 4 == 1 { above } else { goal.height }) };
        // Where there is no complete search, repair tries several ceilings at once.
        let lanes = [
            first.or_else(|| exact(0, if stubborn { lower } else { goal.height }, true)).or_else(|| repair(0, above)),
            exact(1, goal.height, false).or_else(|| repair(1, goal.just_below(8, self.height))),
            exact(2, above, even).or_else(|| repair(2, goal.just_below(4, self.height))),
            greedy(LANES - 1 + number).or_else(|| exact(3, if stubborn { higher } else { goal.height }, true)),
        ];
        lanes.into_iter().flatten().collect()
    }

    /// The units of work that a task of batch `number` gets: enough for a greedy pass to end, for the others enough
    /// to place every body, times the largest power of two that divides `number`.
    fn share(&self, task: Task, number: usize) -> u64 {
        let bodies = self.strip.len() as u64;
        let once = match task {
            Task::Greedy { .. } => return u64::MAX,
            Task::Repair { .. } => 8 * bodies,
            Task::Exact { .. } => bodies * (8 + bodies / 128),
        };
        FIRST_SHARE.max(once).saturating_mul(1 << number.trailing_zeros().min(40))
    }

    /// Runs tasks on the threads given. A task that ends the search stops those behind it, and what those found
    /// by then is dropped: the result is the same as if the tasks had run one after the other.
    fn run(&self, overlaps: &Overlaps, batch: &[(Task, u64)], goal: u64, budget: &mut Budget) -> Vec<TaskResult> {
        let options = budget.options;
        let left = budget.left();
        let stop: Vec<AtomicBool> = batch.iter().map(|_| AtomicBool::new(false)).collect();
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<(TaskResult, u64)>>> = batch.iter().map(|_| Mutex::new(None)).collect();
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(task, share)) = batch.get(index) else { return };
                if stop[index].load(Ordering::Relaxed) {
                    continue;
                }
                let mut effort = Effort::new(share.min(left), budget.deadline, [options.cancel, &stop[index]]);
                let result = self.attempt(task, overlaps, options.techniques, &self.memories[index], &mut effort);
                let ends = match &result {
                    TaskResult::Plan(offsets, _) => self.strip.height(offsets) <= goal,
                    TaskResult::NothingBelow(height) => *height > goal,
                    TaskResult::Nothing => false,
                };
                if ends {
                    stop[index + 1..].iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
                }
                if let Ok(mut slot) = results[index].lock() {
                    *slot = Some((result, effort.spent().max(LEAST_SPENT)));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..options.threads.get().min(batch.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut kept = Vec::new();
        for (slot, stopped) in results.into_iter().zip(&stop) {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            if let Ok(Some((result, spent))) = slot.into_inner() {
                budget.work = budget.work.saturating_add(spent);
                kept.push(result);
            }
        }
        kept
    }

    fn attempt(
        &self,
        task: Task,
        overlaps: &Overlaps,
        techniques: Techniques,
        memory: &Mutex<Learned>,
        effort: &mut Effort,
    ) -> TaskResult {
        match task {
            Task::Greedy { recipe } => greedy::place(&self.strip, overlaps, RECIPES[recipe], self.height, effort)
                .map_or(TaskResult::Nothing, |offsets| TaskResult::Plan(offsets, Solver::Greedy)),
            Task::Repair { ceiling, seed } => repair::repair(&self.strip, overlaps, &self.best, ceiling, seed, effort)
                .map_or(TaskResult::Nothing, |offsets| TaskResult::Plan(offsets, Solver::Repair)),
            Task::Exact { ceiling, manner } => {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                match exact::search(&self.strip, ceiling, manner, techniques, &mut memory, effort) {
                    Found::Fits(offsets) => TaskResult::Plan(offsets, Solver::Exact),
                    Found::NothingBelow(height) => TaskResult::NothingBelow(height),
                    Found::Unknown => TaskResult::Nothing,
                }
            }
        }
    }
}
