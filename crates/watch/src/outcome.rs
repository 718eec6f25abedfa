//! What came of watching: everything that was seen, the judgement over time and one for each action, and the verdict that
//! holds for all.

use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_memory::process::{self, Ended};

use crate::{Action, Judgement, Observed, Reason, Rules, Verdict};

/// What was watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// The program and its arguments; nothing where a process was watched that ran already.
    pub command: Vec<String>,
    /// The number of the first process.
    pub pid: i32,
    /// Whether those that come from it were watched too.
    pub is_tree: bool,
    /// From one sample to the next.
    pub interval: Duration,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// What it used.
    pub used: Ended,
    /// Its exit code.
    pub code: u8,
}

/// What was seen, and what that means.
#[derive(Debug)]
pub struct Outcome {
    /// What was watched.
    pub subject: Subject,
    /// What was called a leak.
    pub rules: Rules,
    /// What was seen.
    pub observed: Observed,
    /// The judgement over time.
    pub over_time: Judgement,
    /// A judgement for each action.
    pub actions: Vec<Judgement>,
    /// The program's exit code; nothing where none was started.
    pub exit_code: Option<u8>,
}

impl Outcome {
    /// Judges what was seen. `ended` is how the program ended that was started to be watched.
    pub fn new(subject: Subject, rules: Rules, mut observed: Observed, ended: Option<Ending>) -> Self {
        if let Some(ended) = &ended {
            complete(&mut observed, &ended.used, subject.is_tree);
        }
        if subject.is_tree && !process::lists_children() {
            let note = "this system does not list children: only the first process was watched";
            observed.notes.push(note.to_owned());
        }
        if observed.huge > 0 {
            let most = Bytes::new(observed.huge);
            observed.notes.push(format!("explicit huge pages are counted, {most} at most; RSS is without them"));
        }
        let over_time = rules.judge_time(&observed);
        let actions = observed.actions.all().iter().map(|action| rules.judge_action(action)).collect();
        let exit_code = ended.map(|ended| ended.code);
        Self { subject, rules, observed, over_time, actions, exit_code }
    }

    /// What holds for all: of actions that were repeated often enough the worst, or else that over time. So too where an
    /// action grows and was not repeated often enough to tell whether for good.
    pub fn verdict(&self) -> Verdict {
        let of_actions = self.actions.iter().filter(|judgement| judgement.reason != Reason::TooShort);
        let worst = of_actions.max_by_key(|judgement| (judgement.verdict, judgement.reason == Reason::Unsure));
        match worst {
            None => self.over_time.verdict,
            Some(worst) if worst.reason == Reason::Unsure => worst.verdict.max(self.over_time.verdict),
            Some(worst) => worst.verdict,
        }
    }

    /// The action that makes the verdict what it is.
    pub fn deciding(&self) -> Option<(&Action, &Judgement)> {
        let verdict = self.verdict();
        let decides =
            |judged: &(&Action, &Judgement)| judged.1.reason != Reason::TooShort && judged.1.verdict == verdict;
        self.observed.actions.all().iter().zip(&self.actions).find(decides)
    }
}

/// What is only known at the end of a program: a peak between two samples, and faults of what ended unseen. Both are of the program
/// and all that it waited for, the peak is that of the largest of them.
fn complete(observed: &mut Observed, ended: &Ended, is_tree: bool) {
    // Until a program is loaded it is this one.
    let own = i32::try_from(std::process::id()).ok().and_then(|own| process::read(own).ok()?);
    let peak = Some(ended.peak.get()).filter(|&peak| own.is_none_or(|own| peak > own.peak)).unwrap_or(0);
    observed.ceiling = observed.ceiling.max(peak);
    if !is_tree {
        return;
    }
    if peak > observed.peak {
        // Others may have had as much at the same moment.
        observed.peak = peak;
        observed.is_sampled = true;
    }
    observed.faults.minor = observed.faults.minor.max(ended.minor_faults);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn what_actions_leave_open_time_may_decide() {
        let of = |verdict, reason| Judgement { verdict, reason, trend: None, from: 0.0 };
        let over_time = of(Verdict::Leaking, Reason::Grows);
        let verdict = |actions: &[Judgement]| {
            let outcome = Outcome {
                subject: Subject { command: Vec::new(), pid: 1, is_tree: false, interval: Duration::ZERO },
                rules: Rules::default(),
                observed: Observed::default(),
                over_time,
                actions: actions.to_vec(),
                exit_code: None,
            };
            outcome.verdict()
        };
        let (flat, bends) = (of(Verdict::Stable, Reason::Flat), of(Verdict::Warming, Reason::Bends));
        let unsure = of(Verdict::Warming, Reason::Unsure);
        assert_eq!(verdict(&[]), Verdict::Leaking);
        assert_eq!(verdict(&[flat]), Verdict::Stable);
        assert_eq!(verdict(&[flat, bends]), Verdict::Warming);
        assert_eq!(verdict(&[unsure, flat, bends]), Verdict::Leaking);
    }

    #[test]
    fn a_peak_known_from_the_end_alone_is_not_exact() {
        let usage = |peak| Ended {
            status: ExitStatus::from_raw(0),
            user: Duration::ZERO,
            system: Duration::ZERO,
            minor_faults: 77,
            peak: Bytes::new(peak),
        };
        let completed = |peak, is_tree| {
            let mut observed = Observed { peak: 1 << 40, ceiling: 1 << 40, ..Observed::default() };
            complete(&mut observed, &usage(peak), is_tree);
            (observed.peak, observed.is_exact(), observed.faults.minor)
        };
        assert_eq!(completed(1 << 39, true), (1 << 40, true, 77));
        assert_eq!(completed(1 << 41, true), (1 << 41, false, 77));
        assert_eq!(completed(1 << 39, false), (1 << 40, true, 0));
        assert_eq!(completed(1 << 41, false), (1 << 40, false, 0));
    }
}
