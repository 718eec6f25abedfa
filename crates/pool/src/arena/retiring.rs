//! Handles that are about to be given back: nobody uses them any more, and work that used them may still be queued.

use lowtide_memory::{Mark, Source};

use super::plan_memory::Loan;

/// Handles that wait for queued work.
#[derive(Debug, Default)]
pub(super) struct Retiring {
    loans: Vec<Loan>,
    marks: Vec<Mark>,
}

impl Retiring {
    /// Lets `loans` wait for `marks`.
    pub(super) fn begin(&mut self, loans: Vec<Loan>, marks: Vec<Mark>) {
        self.loans.extend(loans);
        self.marks.extend(marks);
    }

    /// What waits.
    pub(super) fn loans(&self) -> &[Loan] {
        &self.loans
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.loans.is_empty()
    }

    /// Whether the work that was queued is done.
    pub(super) fn is_done(&self, source: &dyn Source) -> bool {
        self.marks.iter().all(|&mark| source.passed(mark))
    }

    /// Takes out what waits, done or not.
    pub(super) fn take(&mut self, source: &dyn Source) -> Vec<Loan> {
        for mark in self.marks.drain(..) {
            source.forget(mark);
        }
        std::mem::take(&mut self.loans)
    }
}
