//! Makes plans anew around blocks that stay where they are, beside the program: one at a time. The last answer is kept, so that
//! a plan that is taken up again in the same place needs no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lowtide_learn::{Carried, Lane, Replanning, Signature};
use lowtide_memory::Worker;

use super::slot_table::SlotLayout;

/// How many answers are kept.
const KEPT: usize = 4;

/// A plan that can be served around the blocks it was asked about; none where there is no such plan.
type Answer = Option<Arc<SlotLayout>>;

/// What came of asking for a plan around blocks.
#[derive(Debug)]
pub(crate) enum Replanned {
    /// It is made.
    Ready(Arc<SlotLayout>),
    /// There is none.
    Impossible,
    /// It is being made, or another one is; ask again later.
    Working,
}

impl From<Answer> for Replanned {
    fn from(answer: Answer) -> Self {
        answer.map_or(Self::Impossible, Self::Ready)
    }
}

/// What was asked.
#[derive(PartialEq, Eq, Debug)]
struct Question {
    signature: Signature,
    lanes: Vec<Lane>,
    carried: Vec<Carried>,
}

#[derive(Debug)]
pub(super) struct Replanner {
    /// Whether it works on a thread of its own.
    background: bool,
    cancel: Arc<AtomicBool>,
    running: Option<(Question, Worker<Answer>)>,
    /// The latest comes last.
    answers: Vec<(Question, Answer)>,
}

impl Replanner {
    pub(super) fn new(background: bool) -> Self {
        Self { background, cancel: Arc::default(), running: None, answers: Vec::new() }
    }

    /// Whether it works on a thread of its own: then nothing else that takes long may be done while the program waits either.
    pub(super) fn is_background(&self) -> bool {
        self.background
    }

    /// What is known of the plan that `work` makes, which is begun where nothing is.
    pub(super) fn ask(&mut self, work: Replanning) -> Replanned {
        if let Some((question, worker)) = self.running.take_if(|(_, worker)| worker.is_finished()) {
            self.keep(question, worker.join().flatten());
        }
        let (plan, carried) = work.question();
        let asked = Question { signature: plan.signature, lanes: plan.lanes().collect(), carried: carried.to_vec() };
        if let Some((_, answer)) = self.answers.iter().find(|(question, _)| *question == asked) {
            return answer.clone().into();
        }
        if self.running.is_some() {
            return Replanned::Working;
        }
        let cancel = Arc::clone(&self.cancel);
        let make = move || work.run(&cancel).map(|plan| Arc::new(SlotLayout::new(plan)));
        if !self.background {
            let answer = make();
            self.keep(asked, answer.clone());
            return answer.into();
        }
        // Where no thread can be had, it is tried again at the next step.
        self.running = Worker::start(c"lowtide-replan", make).map(|worker| (asked, worker));
        Replanned::Working
    }

    fn keep(&mut self, question: Question, answer: Answer) {
        if self.answers.len() >= KEPT {
            self.answers.remove(0);
        }
        self.answers.push((question, answer));
    }
}

impl Drop for Replanner {
    fn drop(&mut self) {
        // Which the thread sees before it is waited for.
        self.cancel.store(true, Ordering::Relaxed);
    }
}
