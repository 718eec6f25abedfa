//! Actions that were marked: a mark closes what was done since the one before, and names it. Of every action its
//! repetitions are kept, in bounded memory, with the peak of each.

use crate::{Judge, Judgement, Point, Reason, Verdict};

/// The most repetitions that are kept of an action, and the most marks.
const MOST: usize = 4096;
/// The most actions with a name of their own.
const NAMES: usize = 200;
/// What the others are called.
const OTHERS: &str = "(others)";
/// The fewest repetitions that are called a leak: a cache takes as many to fill.
const FEWEST_LEAKING: u64 = 20;
/// Every action.
#[derive(Debug, Default)]
pub struct Actions {
    all: Vec<Action>,
    marks: Vec<Mark>,
    /// How many marks there were in all.
    pub count: u64,
    /// One of how many marks is kept.
    every: u64,
}

/// Where an action was closed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    /// When, in seconds.
    pub at: f64,
    /// The place of the action.
    pub action: usize,
}

/// An action and its repetitions.
#[derive(Clone, Debug)]
pub struct Action {
    /// What its marks call it.
    pub name: String,
    /// How often it was done.
    pub count: u64,
    /// The lowest peak, in bytes.
    pub lowest: u64,
    /// The highest peak, in bytes.
    pub highest: u64,
    first: f64,
    last: f64,
    repetitions: Vec<Repetition>,
    /// One of how many repetitions is kept.
    every: u64,
    /// The last, where it is not kept yet.
    pending: Option<Repetition>,
}

/// An action that was done once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repetition {
    /// When it ended.
    pub at: f64,
    /// Which one it was, from zero on.
    pub number: u64,
    /// The most that was resident.
    pub peak: u64,
    /// Of that what was pages of files, as far as is known.
    pub file: u64,
    /// What was resident when it ended.
    pub after: u64,
}

/// The end of an action; amounts are bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct End {
    /// When, in seconds.
    pub at: f64,
    /// The most that was resident.
    pub peak: u64,
    /// Of that what was pages of files, as far as is known.
    pub file: u64,
    /// What was resident when it ended.
    pub after: u64,
}

impl Actions {
    /// An action ends, and `end` is what it came to.
    pub fn close(&mut self, name: &str, end: End) {
        let at = end.at;
        let found = self.all.iter().position(|action| action.name == name);
        let place = found.unwrap_or_else(|| {
            let name = if self.all.len() < NAMES { name } else { OTHERS };
            self.all.iter().position(|action| action.name == name).unwrap_or_else(|| {
                self.all.push(Action::new(name, at));
                self.all.len() - 1
            })
        });
        self.all[place].repeat(end);
        self.mark(Mark { at, action: place });
    }

    fn mark(&mut self, mark: Mark) {
        self.every = self.every.max(1);
        if self.count.is_multiple_of(self.every) {
            if self.marks.len() == MOST {
                self.marks = self.marks.iter().copied().step_by(2).collect();
                self.every *= 2;
            }
            self.marks.push(mark);
        }
        self.count += 1;
    }

    /// Every action, in the order in which they came first.
    pub fn all(&self) -> &[Action] {
        &self.all
    }

    /// Marks, all or some of them.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

impl Action {
    fn new(name: &str, at: f64) -> Self {
        Self {
            name: name.to_owned(),
            count: 0,
            lowest: u64::MAX,
            highest: 0,
            first: at,
            last: at,
            repetitions: Vec::new(),
            every: 1,
            pending: None,
        }
    }

    fn repeat(&mut self, End { at, peak, file, after }: End) {
        self.lowest = self.lowest.min(peak);
        self.highest = self.highest.max(peak);
        self.last = at;
        let repetition = Repetition { at, number: self.count, peak, file, after };
        self.count += 1;
        let highest = match self.pending {
            Some(pending) if pending.peak > peak => pending,
            _ => repetition,
        };
        if !self.count.is_multiple_of(self.every) {
            self.pending = Some(highest);
            return;
        }
        self.pending = None;
        if self.repetitions.len() == MOST {
            let higher = |pair: &[Repetition]| pair.iter().copied().max_by_key(|one| one.peak);
            self.repetitions = self.repetitions.chunks(2).filter_map(higher).collect();
            self.every *= 2;
        }
        self.repetitions.push(highest);
    }

    /// Repetitions, all or the highest of every few.
    pub fn repetitions(&self) -> &[Repetition] {
        &self.repetitions
    }

    /// The peak in the middle.
    pub fn median(&self) -> u64 {
        self.middle(|repetition| repetition.peak)
    }

    /// What was resident after it, in the middle.
    pub fn median_after(&self) -> u64 {
        self.middle(|repetition| repetition.after)
    }

    fn middle(&self, of: impl Fn(&Repetition) -> u64) -> u64 {
        let mut amounts: Vec<u64> = self.repetitions.iter().map(of).collect();
        amounts.sort_unstable();
        amounts.get(amounts.len() / 2).copied().unwrap_or(self.highest)
    }

    /// Whether its peak grows from one time to the next; `rate` is what is called a leak, in bytes per second, and
    /// `shortest` the seconds that it takes at least to be one.
    pub fn judge(&self, rate: f64, growth: f64, shortest: f64) -> Judgement {
        let seconds = self.last - self.first;
        let each = if self.count > 1 { seconds / (self.count - 1) as f64 } else { 0.0 };
        // The system takes pages of files back when it likes.
        let own = |repetition: &Repetition| Point {
            at: repetition.number as f64,
            value: repetition.peak.saturating_sub(repetition.file) as f64,
        };
        let points: Vec<Point> = self.repetitions.iter().map(own).collect();
        let count = self.count as f64;
        let from = if self.count >= 16 { count / 2.0 } else { (count / 4.0).max(1.0) }.floor();
        let judge = Judge { rate: rate * each, growth, from, settled: from / 2.0, shortest: 0.0, shortest_leak: 0.0 };
        let judgement = judge.judge(&points);
        if judgement.verdict == Verdict::Leaking && (self.count < FEWEST_LEAKING || seconds < shortest) {
            return Judgement { verdict: Verdict::Warming, reason: Reason::Unsure, ..judgement };
        }
        judgement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::SHORTEST_REPEATED;

    const MIB: u64 = 1 << 20;

    fn repeated(count: u64, peak: impl Fn(u64) -> u64) -> Actions {
        let mut actions = Actions::default();
        for n in 0..count {
            let end = |at, peak| End { at, peak, file: 50 * MIB, after: 60 * MIB };
            actions.close("compile", end(n as f64, peak(n)));
            actions.close("infer", end(n as f64 + 0.5, 100 * MIB));
        }
        actions
    }

    fn verdict(count: u64, peak: impl Fn(u64) -> u64) -> Verdict {
        repeated(count, peak).all()[0].judge(MIB as f64 / 60.0, MIB as f64, SHORTEST_REPEATED).verdict
    }

    #[test]
    fn peaks_of_a_repeated_action_are_compared_with_each_other_alone() {
        assert_eq!(verdict(20, |_| 900 * MIB), Verdict::Stable);
        assert_eq!(verdict(20, |n| 900 * MIB + n * MIB), Verdict::Leaking);
        assert_eq!(verdict(20, |n| 900 * MIB + 30 * n.min(4) * MIB), Verdict::Stable);
        assert_eq!(verdict(40, |n| 900 * MIB + (200.0 * ((n + 1) as f64).ln()) as u64 * MIB), Verdict::Warming);
        assert_eq!(verdict(3, |n| 900 * MIB + n * MIB), Verdict::Warming);
    }

    #[test]
    fn a_few_repetitions_or_a_moment_make_no_leak() {
        let cache = |n: u64| 900 * MIB + 5 * n * MIB;
        for count in [8, 10, 16, 19] {
            assert_eq!(verdict(count, cache), Verdict::Warming, "{count}");
        }
        let actions = repeated(20, cache);
        let judged = |shortest| actions.all()[0].judge(MIB as f64 / 60.0, MIB as f64, shortest);
        assert_eq!(judged(0.0).verdict, Verdict::Leaking);
        assert_eq!((judged(60.0).verdict, judged(60.0).reason), (Verdict::Warming, Reason::Unsure));
    }

    #[test]
    fn numbers_hold_whatever_is_kept() {
        let actions = repeated(100_000, |n| 500 * MIB + n);
        let action = &actions.all()[0];
        assert_eq!((action.count, action.lowest, action.highest), (100_000, 500 * MIB, 500 * MIB + 99_999));
        assert!(action.repetitions().len() <= MOST && actions.marks().len() <= MOST && actions.count == 200_000);
        assert_eq!(action.median_after(), 60 * MIB);
        let middle = action.median() - 500 * MIB;
        assert!((49_000..51_000).contains(&middle), "{middle}");
    }

    #[test]
    fn there_is_an_end_to_names() {
        let mut actions = Actions::default();
        for n in 0..1000 {
            actions.close(&n.to_string(), End { at: f64::from(n), peak: 1, file: 0, after: 1 });
        }
        assert_eq!(actions.all().len(), NAMES + 1);
        assert_eq!(actions.all()[NAMES].count, 800);
    }
}
