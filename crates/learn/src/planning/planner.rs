//! Makes plans, on a thread of its own or on the caller's: one at a time, stopped when its owner goes away.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lowtide_memory::Worker;

use crate::Lane;
use crate::cache::Cache;
use crate::options::LearnerOptions;
use crate::patterns::shape::Shape;
use crate::plan::step_plan::Signature;
use crate::planning::timeline::{self, Effort, Layout};

/// A pattern to plan.
#[derive(Debug)]
pub(crate) struct Job {
    /// The pattern's number.
    pub pattern: u32,
    pub shape: Arc<Shape>,
    pub lanes: Vec<Lane>,
    /// The signature under which an earlier plan of the pattern was remembered.
    pub replaces: Option<Signature>,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) struct Made {
    pub pattern: u32,
    pub shape: Arc<Shape>,
    pub layout: Option<Layout>,
    /// What went wrong, a sentence each.
    pub warnings: Vec<String>,
}

/// Makes plans.
#[derive(Debug)]
pub(crate) struct Planner {
    time_limit: Duration,
    threads: NonZeroUsize,
    background: bool,
    cache: Option<Cache>,
    cancel: Arc<AtomicBool>,
    running: Option<Worker<Made>>,
    made: Option<Made>,
}

impl Planner {
    /// One that does nothing yet.
    pub fn new(options: &LearnerOptions, cache: Option<Cache>) -> Self {
        Self {
            time_limit: options.time_limit,
            threads: options.threads,
            background: options.background,
            cache,
            cancel: Arc::default(),
            running: None,
            made: None,
        }
    }

    /// Whether it can take a job.
    pub fn is_free(&self) -> bool {
        self.running.is_none() && self.made.is_none()
    }

    /// Takes a job; it must be free.
    pub fn start(&mut self, job: Job) {
        let (time_limit, threads) = (self.time_limit, self.threads);
        let (cancel, cache) = (Arc::clone(&self.cancel), self.cache.clone());
        let job = Arc::new(job);
        if self.background {
            let (cancel, cache, job) = (Arc::clone(&cancel), cache.clone(), Arc::clone(&job));
            let work = move || make(&job, Effort { time_limit, threads, cancel: &cancel }, cache.as_ref());
            // Where no thread can be had, the caller's has to do.
            self.running = Worker::start(c"lowtide-plan", work);
            if self.running.is_some() {
                return;
            }
        }
        self.made = Some(make(&job, Effort { time_limit, threads, cancel: &cancel }, cache.as_ref()));
    }

    /// What came of the last job, once, when it is done.
    pub fn finished(&mut self) -> Option<Made> {
        if let Some(worker) = self.running.take_if(|worker| worker.is_finished()) {
            // A job that panicked has made nothing; its pattern is planned again when it changes.
            self.made = worker.join();
        }
        self.made.take()
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        // Which the thread sees before it is waited for.
        self.cancel.store(true, Ordering::Relaxed);
    }
}

fn make(job: &Job, effort: Effort, cache: Option<&Cache>) -> Made {
    let mut made = Made { pattern: job.pattern, shape: Arc::clone(&job.shape), layout: None, warnings: Vec::new() };
    match timeline::place(&job.shape, effort) {
        Ok(layout) if timeline::holds(&job.shape, &layout) => {
            if let Some(cache) = cache
                && let Err(warning) = cache.write(&job.lanes, &job.shape, &layout, job.replaces)
            {
                made.warnings.push(warning);
            }
            made.layout = Some(layout);
        }
        Ok(_) => made.warnings.push("a plan that does not hold was not used; this is a fault of Lowtide".to_owned()),
        Err(error) => made.warnings.push(format!("a step could not be planned: {error}")),
    }
    made
}
