//! Makes plans anew around blocks that stay where they are, beside the program: one at a time. The last answers are kept, so that
//! a plan that is taken up again in the same place needs no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lowtide_learn::{Carried, Replanning, StepPlan};
use lowtide_memory::Worker;

use super::plan_server::is_small_enough;
use super::slot_table::SlotLayout;

/// How many answers are kept. Where steps repeat, what stays alive comes back to where it was, though not in every step.
const KEPT: usize = 16;

/// A plan that can be served around the blocks it was asked about; none where there is no such plan.
type Answer = Option<Arc<SlotLayout>>;

/// What came of asking for a plan around blocks.
#[derive(Debug)]
pub(crate) enum Replanned {
    /// It is made.
    Ready(Arc<SlotLayout>),
    /// There is none.
    Impossible,
    /// It has been begun; ask again later.
    Started,
    /// It is being made, or another one is; ask again later.
    Working,
}

impl From<Answer> for Replanned {
    fn from(answer: Answer) -> Self {
        answer.map_or(Self::Impossible, Self::Ready)
    }
}

/// What was asked.
#[derive(Debug)]
struct Question {
    plan: Arc<StepPlan>,
    carried: Vec<Carried>,
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan) && self.carried == other.carried
    }
}

/// A plan that is being made.
#[derive(Debug)]
struct Running {
    question: Question,
    cancel: Arc<AtomicBool>,
    worker: Worker<Answer>,
}

#[derive(Debug)]
pub(super) struct Replanner {
    /// Whether it works on a thread of its own.
    background: bool,
    running: Option<Running>,
    /// The one that was used last comes last.
    answers: Vec<(Question, Answer)>,
}

impl Replanner {
    pub(super) fn new(background: bool) -> Self {
        Self { background, running: None, answers: Vec::new() }
    }

    /// Whether it works on a thread of its own: then nothing else that takes long may be done while the program waits either.
    pub(super) fn is_background(&self) -> bool {
        self.background
    }

    /// What is known of the plan that `work` makes. Where nothing is, it is made at once if the program `may_wait`, and begun if it `may_begin`.
    pub(super) fn ask(&mut self, work: Replanning, may_wait: bool, may_begin: bool) -> Replanned {
        self.take_answer();
        let (plan, carried) = work.question();
        let asked = Question { plan: Arc::clone(plan), carried: carried.to_vec() };
        if let Some(place) = self.answers.iter().position(|(question, _)| *question == asked) {
            let known = self.answers.remove(place);
            let answer = known.1.clone();
            self.answers.push(known);
            return answer.into();
        }
        if let Some(running) = &self.running {
            // An answer for blocks that have moved meanwhile is of use when they are back.
            if !Arc::ptr_eq(&running.question.plan, &asked.plan) {
                running.cancel.store(true, Ordering::Relaxed);
            }
            return Replanned::Working;
        }
        let cancel = Arc::new(AtomicBool::new(false));
        if may_wait || !self.background {
            let answer = make(&work, &cancel);
            self.keep(asked, answer.clone());
            return answer.into();
        }
        if !may_begin {
            return Replanned::Working;
        }
        let theirs = Arc::clone(&cancel);
        // Where no thread can be had, it is tried again at the next step.
        let worker = Worker::start(c"lowtide-replan", move || make(&work, &theirs));
        self.running = worker.map(|worker| Running { question: asked, cancel, worker });
        Replanned::Started
    }

    /// Takes the answer of a thread that is done; one that was cancelled or has panicked has none.
    fn take_answer(&mut self) {
        if let Some(Running { question, cancel, worker }) = self.running.take_if(|running| running.worker.is_finished())
            && let Some(answer) = worker.join()
            && !cancel.load(Ordering::Relaxed)
        {
            self.keep(question, answer);
        }
    }

    fn keep(&mut self, question: Question, answer: Answer) {
        if self.answers.len() >= KEPT {
            self.answers.remove(0);
        }
        self.answers.push((question, answer));
    }
}

fn make(work: &Replanning, cancel: &AtomicBool) -> Answer {
    let plan = work.run(cancel).filter(|plan| !cancel.load(Ordering::Relaxed) && is_small_enough(plan))?;
    Some(Arc::new(SlotLayout::new(plan)))
}

impl Drop for Replanner {
    fn drop(&mut self) {
        // Which the thread sees before it is waited for.
        if let Some(running) = &self.running {
            running.cancel.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use lowtide_core::{Align, Bytes};
    use lowtide_learn::{Lane, Learner, LearnerOptions, Served};

    use super::*;

    #[test]
    fn blocks_that_move_to_and_fro_are_planned_around_in_both_places() {
        let mut learner = Learner::new(LearnerOptions { background: false, ..LearnerOptions::default() });
        for _ in 0..4 {
            let tickets: Vec<_> = (1..400)
                .map(|number| learner.alloc(Lane::default(), Bytes::new(512 * (number % 37 + 1)), Align::ONE))
                .collect();
            for ticket in tickets {
                learner.free(ticket);
            }
            learner.step(Served::default());
        }
        let plan = learner.likely_next().unwrap();
        let around = |offset: u64| {
            let carried = Carried { slot: None, offset: Bytes::new(offset), bytes: Bytes::new(512) };
            learner.replanning(&plan, vec![carried]).unwrap()
        };
        let mut replanner = Replanner::new(true);
        let (mut answered, start) = ([false; 2], Instant::now());
        while answered != [true; 2] {
            assert!(start.elapsed() < Duration::from_mins(1), "{answered:?}");
            for (place, answered) in answered.iter_mut().enumerate() {
                *answered |= matches!(replanner.ask(around(512 * place as u64), false, true), Replanned::Ready(_));
                let is_cancelled = |running: &Running| running.cancel.load(Ordering::Relaxed);
                assert!(!replanner.running.as_ref().is_some_and(is_cancelled), "the other place is no reason to stop");
            }
        }
        assert!(!matches!(replanner.ask(around(1024), false, false), Replanned::Ready(_) | Replanned::Started));
        assert!(replanner.running.is_none(), "nothing is begun that may not be");
    }
}
