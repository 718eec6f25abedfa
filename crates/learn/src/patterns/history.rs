//! Which pattern comes next, from those that came: runs of the same pattern, so that `train` fifty times and `eval`
//! once is told as well as their turns.

use std::collections::VecDeque;

/// As many runs are remembered.
const MOST_RUNS: usize = 64;

/// What a step was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepKind {
    /// A pattern, by its number.
    Known(u32),
    /// No pattern that is known.
    Unknown,
}

/// Patterns in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Each kind, and how often it came in a row.
    runs: VecDeque<(StepKind, u64)>,
}

impl History {
    /// Adds what a step was.
    pub fn push(&mut self, kind: StepKind) {
        match self.runs.back_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ => self.runs.push_back((kind, 1)),
        }
        if self.runs.len() > MOST_RUNS {
            self.runs.pop_front();
        }
    }

    /// Forgets that `pattern` was known.
    pub fn forget(&mut self, pattern: u32) {
        for run in self.runs.iter_mut().filter(|run| run.0 == StepKind::Known(pattern)) {
            run.0 = StepKind::Unknown;
        }
    }

    /// What comes next: what came after the earlier run that is most like this one, or the same again. Nothing is
    /// expected before the first step.
    pub fn next(&self) -> Option<StepKind> {
        let (last, &(kind, count)) = self.runs.iter().enumerate().next_back()?;
        let likeness = |earlier: usize| (0..earlier).take_while(|&back| self.alike(earlier, last, back)).count();
        let model = (0..last)
            .filter(|&earlier| self.runs[earlier].0 == kind && self.runs[earlier].1 >= count)
            .max_by_key(|&earlier| (likeness(earlier), earlier));
        Some(match model {
            Some(earlier) if self.runs[earlier].1 == count => self.runs[earlier + 1].0,
            _ => kind,
        })
    }

    fn alike(&self, earlier: usize, last: usize, back: usize) -> bool {
        self.runs[earlier - back - 1] == self.runs[last - back - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(sequence: impl Iterator<Item = u32>, after: usize) -> bool {
        let mut history = History::default();
        sequence.enumerate().all(|(step, pattern)| {
            let expected = history.next();
            history.push(StepKind::Known(pattern));
            step < after || expected == Some(StepKind::Known(pattern))
        })
    }

    #[test]
    fn turns_and_periods_are_told_once_they_were_seen() {
        assert!(right((0..40).map(|step| step % 2), 3), "train and eval in turn");
        assert!(right((0..60).map(|step| u32::from(step % 3 == 2)), 5), "two of one and one of the other");
        assert!(right((0..400).map(|step| u32::from(step % 51 == 50)), 103), "fifty and one");
        assert!(
            right((0..90).map(|step| [0, 1, 0, 2][step as usize % 4]), 6),
            "what comes after depends on what was before"
        );
    }

    #[test]
    fn what_was_never_seen_to_end_goes_on() {
        let mut history = History::default();
        assert_eq!(history.next(), None);
        history.push(StepKind::Known(4));
        assert_eq!(history.next(), Some(StepKind::Known(4)));
        history.push(StepKind::Unknown);
        history.push(StepKind::Known(4));
        history.push(StepKind::Known(4));
        assert_eq!(history.next(), Some(StepKind::Known(4)), "it has gone on for longer than before");
        history.forget(4);
        assert_eq!(history.next(), Some(StepKind::Unknown));
    }
}
