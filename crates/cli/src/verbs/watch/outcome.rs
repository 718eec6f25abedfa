//! What came of watching: the verdict, as text for people and as numbers for scripts.

use lowtide_core::Bytes;
use lowtide_memory::process::Ended;
use serde::Serialize;

use super::actions::{Action, SHORTEST_LEAKING};
use super::judge::{Judge, Judgement, Reason, Trend, Verdict};
use super::observe::Observed;
use super::{Arguments, Kind, Marking, page, process};
use crate::atomic_file::Target;
use crate::console::Emphasis;
use crate::console::{columns, show};
use crate::{Answer, Console, Failure, program};

/// What was watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct What {
    /// Nothing where a process was watched that ran already.
    pub command: Vec<String>,
    pub pid: i32,
    pub is_tree: bool,
}

/// What was seen, and what that means.
pub(super) struct Outcome {
    pub what: What,
    pub observed: Observed,
    pub judgement: Judgement,
    /// A judgement for each action.
    pub actions: Vec<Judgement>,
    pub interval: f64,
    /// Bytes per second that are no leak yet.
    pub leak_rate: f64,
    pub code: Option<u8>,
}

/// Growth over the judged part that may be chance: counters of the system are as coarse.
const CHANCE: f64 = 1_048_576.0;
/// The shortest part that is judged where nobody said when it begins, in seconds.
const SHORTEST: f64 = 2.5;
/// The shortest that is called a leak: a collector or a cache may take as long to come round.
const SHORTEST_LEAK: f64 = 14.5;
/// What is said where steps were to be marked and none was.
const NO_STEP: &str = "no step was marked; `--mark step` hears of the steps of PyTorch optimizers in a Python that has the \
                       package lowtide, and of each lowtide.step()";

impl Outcome {
    /// Of a program that ended before anybody could look.
    pub fn empty(what: What, arguments: &Arguments, ended: Option<Ended>) -> Self {
        Self::new(what, arguments, Observed::default(), ended)
    }

    pub fn new(what: What, arguments: &Arguments, mut observed: Observed, ended: Option<Ended>) -> Self {
        let leak_rate = arguments.leak_rate.get() as f64 / 60.0;
        if let Some(ended) = &ended {
            complete(&mut observed, ended, what.is_tree);
        }
        if what.is_tree && !process::tells_children() {
            observed.notes.push("this system does not tell of children: only the first process was watched".to_owned());
        }
        if observed.huge > 0 {
            let most = Bytes::new(observed.huge);
            observed.notes.push(format!("explicit huge pages are counted, {most} at most; RSS is without them"));
        }
        if arguments.mark == Some(Marking::Step) && observed.actions.count == 0 {
            observed.notes.push(NO_STEP.to_owned());
        }
        let judgement = by_time(&observed, arguments, leak_rate);
        let shortest = if arguments.warm_up.is_some() { 0.0 } else { SHORTEST_LEAKING };
        let judged = |action: &Action| action.judge(leak_rate, CHANCE, shortest);
        let actions = observed.actions.all().iter().map(judged).collect();
        let interval = arguments.interval.as_secs_f64();
        let code = ended.map(|ended| program::code(ended.status));
        Self { what, observed, judgement, actions, interval, leak_rate, code }
    }

    /// What holds for all: of actions that were repeated often enough the worst, or else that over time. So too where an
    /// action grows and was not repeated often enough to tell whether for good.
    pub fn verdict(&self) -> Verdict {
        let of_actions = self.actions.iter().filter(|judgement| judgement.reason != Reason::TooShort);
        let worst = of_actions.max_by_key(|judgement| (judgement.verdict, judgement.reason == Reason::Unsure));
        match worst {
            None => self.judgement.verdict,
            Some(worst) if worst.reason == Reason::Unsure => worst.verdict.max(self.judgement.verdict),
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

    pub fn tell(
        &self,
        targets: &[(Target, Kind)],
        arguments: &Arguments,
        console: &mut Console,
    ) -> Result<Answer, Failure> {
        if arguments.json {
            console.print_json(&page::numbers(self, false))?;
        } else {
            self.print(console)?;
        }
        // One file that cannot be written takes neither the verdict nor the other nor the program's code with it.
        let mut is_written = true;
        for (target, kind) in targets {
            if let Err(failure) = self.write(target, *kind, console) {
                console.report(&failure);
                is_written = false;
            }
        }
        Ok(match self.code {
            Some(code) if code != 0 => Answer::Ended(code),
            _ if !is_written => Answer::Ended(Answer::TROUBLE),
            _ => Answer::from_bool(self.verdict() != Verdict::Leaking),
        })
    }

    fn write(&self, target: &Target, kind: Kind, console: &mut Console) -> Result<(), Failure> {
        let (text, next) = match kind {
            Kind::Page => (page::page(self), "; next: open it in a browser"),
            Kind::Json => {
                let numbers = serde_json::to_string(&page::numbers(self, true));
                (numbers.map_err(|error| Failure::Fault(error.to_string()))? + "\n", "")
            }
        };
        target.write_bytes(text.as_bytes())?;
        console.say(format!("wrote {}{next}", show::path(target.path())));
        Ok(())
    }

    /// Stdout is the program's, where there is one.
    fn print(&self, console: &mut Console) -> Result<(), Failure> {
        let verdict = self.verdict();
        let emphasis = match verdict {
            Verdict::Stable => Emphasis::Good,
            Verdict::Warming => Emphasis::Strong,
            Verdict::Leaking => Emphasis::Bad,
        };
        let verdict = console.paint(emphasis, verdict.words());
        let mut lines = vec![format!("{verdict} · {}", self.numbers_line()), self.reason(), self.faults_line()];
        if !self.actions.is_empty() {
            lines.push(String::new());
            lines.extend(columns::aligned(&self.table()));
        }
        lines.extend(self.observed.notes.iter().map(|note| format!("note: {note}")));
        if self.what.command.is_empty() {
            lines.into_iter().try_for_each(|line| console.print(line))?;
            return console.finish();
        }
        for line in lines {
            console.say(line);
        }
        Ok(())
    }

    /// The numbers that matter, behind the verdict.
    pub fn numbers_line(&self) -> String {
        let peak = match self.observed.peak {
            0 => "ended before anybody could look".to_owned(),
            peak if self.observed.is_exact() => format!("peak {}", Bytes::new(peak)),
            peak => format!("peak at least {}", Bytes::new(peak)),
        };
        let last = self.observed.series.entries().last().map(|entry| Bytes::new(entry.last.held()));
        let last = last.map(|last| format!(" · {last} at the end")).unwrap_or_default();
        format!("{peak}{last} · {}", show::seconds(self.observed.seconds))
    }

    pub fn faults_line(&self) -> String {
        let Observed { seconds, faults, processes, .. } = self.observed;
        let rate = match seconds {
            1.0.. => format!(" ({} a second)", show::thousands((faults.minor as f64 / seconds).round() as usize)),
            _ => String::new(),
        };
        let several = if processes > 1 { format!(" · {processes} processes at most") } else { String::new() };
        let [minor, major] = [faults.minor, faults.major].map(|count| show::thousands(count as usize));
        format!("faults: {minor} minor{rate}, {major} major{several}")
    }

    /// Why the verdict is what it is.
    pub fn reason(&self) -> String {
        let Judgement { reason, trend, from, .. } = &self.judgement;
        let over_time = trend.map(|trend| {
            let length = show::seconds((self.observed.seconds - from).max(0.0));
            format!("{} over the last {length}", per_minute(&trend))
        });
        let of_action = match self.deciding() {
            None => None,
            Some((_, judgement)) if judgement.verdict == Verdict::Stable => Some("no action grows for good".to_owned()),
            Some((action, judgement)) => Some(format!("`{}`: {}", action.name, judgement.reason.words())),
        };
        match (of_action, over_time) {
            (Some(of_action), Some(over_time)) => format!("{of_action} · all in all {over_time}"),
            (Some(of_action), None) => of_action,
            (None, Some(over_time)) => format!("{over_time}: {}", reason.words()),
            (None, None) => reason.words().to_owned(),
        }
    }

    pub fn table(&self) -> Vec<Vec<String>> {
        let head = ["action", "count", "peak min", "median", "max", "growth each", "RSS after", "verdict"]
            .map(str::to_owned)
            .to_vec();
        let rows = self.observed.actions.all().iter().zip(&self.actions).map(|(action, judgement)| {
            let growth = judgement.trend.map_or_else(|| "-".to_owned(), |trend| amount(trend.slope));
            let verdict = in_words(judgement);
            let peaks = [action.lowest, action.median(), action.highest].map(|peak| Bytes::new(peak).to_string());
            let mut row = vec![action.name.clone(), show::thousands(action.count as usize)];
            row.extend(peaks);
            row.extend([growth, Bytes::new(action.median_after()).to_string(), verdict]);
            row
        });
        std::iter::once(head).chain(rows).collect()
    }
}

/// A verdict on an action with how sure it is, or else with its reason.
fn in_words(judgement: &Judgement) -> String {
    let Judgement { verdict, reason, trend, .. } = judgement;
    match judgement.confidence() {
        _ if *reason == Reason::TooShort || trend.is_none() => "too few".to_owned(),
        Some(confidence) => format!("{}, {}", verdict.words(), percent(confidence)),
        None => format!("{}: {}", verdict.words(), reason.words()),
    }
}

/// What only the end of a program tells: a peak between two looks, and faults of what ended unseen. Both are of the program
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

fn by_time(observed: &Observed, arguments: &Arguments, rate: f64) -> Judgement {
    let points = observed.series.own();
    let end = points.last().map_or(0.0, |point| point.at);
    let judge = if let Some(warm_up) = arguments.warm_up {
        let from = warm_up.as_secs_f64();
        Judge { rate, growth: CHANCE, from, settled: from, shortest: 0.0, shortest_leak: 0.0 }
    } else {
        // What comes before the first mark sets up what is repeated.
        let begin = observed.actions.marks().first().map_or(0.0, |mark| mark.at);
        let (from, settled) = ((end / 2.0).max(begin), (end / 4.0).max(begin));
        Judge { rate, growth: CHANCE, from, settled, shortest: SHORTEST, shortest_leak: SHORTEST_LEAK }
    };
    judge.judge(&points)
}

/// `+1.2 MiB`.
fn amount(bytes: f64) -> String {
    let sign = if bytes < 0.0 { '−' } else { '+' };
    format!("{sign}{}", Bytes::new(bytes.abs().round() as u64))
}

/// `+1.2 MiB/min (95%: +1.1 MiB to +1.3 MiB)`.
fn per_minute(trend: &Trend) -> String {
    let [slope, low, high] = [trend.slope, trend.low, trend.high].map(|rate| amount(rate * 60.0));
    if slope == low && slope == high {
        return format!("{slope}/min");
    }
    format!("{slope}/min (95%: {low} to {high})")
}

/// `97%`, `99.9%`.
pub(super) fn percent(share: f64) -> String {
    if share >= 0.995 { format!("{:.1}%", share * 100.0) } else { format!("{:.0}%", share * 100.0) }
}

/// A trend in numbers.
#[derive(Debug, Serialize)]
pub(super) struct Slope {
    pub bytes: f64,
    pub low: f64,
    pub high: f64,
    /// How sure it is that the slope lies on its side of the leak rate.
    pub confidence: f64,
    /// Which side that is.
    pub above_leak_rate: bool,
}

impl Slope {
    /// In bytes per `unit` of what the trend is over.
    pub fn of(trend: &Trend, unit: f64) -> Self {
        let Trend { slope, low, high, confidence, is_above, .. } = *trend;
        Self { bytes: slope * unit, low: low * unit, high: high * unit, confidence, above_leak_rate: is_above }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::*;

    const FLAT: Trend = Trend { slope: 0.0, low: 0.0, high: 0.0, confidence: 0.5, is_above: false, surely: 0.0 };

    #[test]
    fn slopes_are_told_by_the_minute() {
        let trend = Trend { slope: 1_048_576.0 / 60.0, low: -1024.0 / 60.0, high: 2048.0, confidence: 0.9, ..FLAT };
        assert_eq!(per_minute(&trend), "+1.0 MiB/min (95%: −1.0 KiB to +120.0 KiB)");
        assert_eq!(per_minute(&FLAT), "+0 B/min");
        assert_eq!([percent(0.5), percent(0.97), percent(0.999)], ["50%", "97%", "99.9%"]);
    }

    #[test]
    fn a_confidence_is_told_where_the_verdict_lies_in_it() {
        let words = |verdict, reason, is_above| {
            let trend = Some(Trend { confidence: 0.97, is_above, ..FLAT });
            in_words(&Judgement { verdict, reason, trend, from: 0.0 })
        };
        assert_eq!(words(Verdict::Leaking, Reason::Grows, true), "leaking, 97%");
        assert_eq!(words(Verdict::Stable, Reason::Flat, false), "stable, 97%");
        assert_eq!(words(Verdict::Stable, Reason::Flat, true), "stable: no growth for good was found");
        let back = "stable: it was as high before and came back";
        assert_eq!(words(Verdict::Stable, Reason::GivesBack, true), back);
        assert_eq!(words(Verdict::Warming, Reason::Bends, true), "still warming: it grows slower and slower");
        assert_eq!(words(Verdict::Warming, Reason::TooShort, true), "too few");
        let slope = |is_above| Slope::of(&Trend { is_above, ..FLAT }, 1.0).above_leak_rate;
        assert!(slope(true) && !slope(false));
    }

    #[test]
    fn what_actions_cannot_tell_yet_time_may() {
        let of = |verdict, reason| Judgement { verdict, reason, trend: Some(FLAT), from: 0.0 };
        let over_time = of(Verdict::Leaking, Reason::Grows);
        let verdict = |actions: &[Judgement]| {
            let outcome = Outcome {
                what: What { command: Vec::new(), pid: 1, is_tree: false },
                observed: Observed::default(),
                judgement: over_time,
                actions: actions.to_vec(),
                interval: 0.1,
                leak_rate: 1.0,
                code: None,
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
    fn what_the_end_tells_is_no_exact_peak() {
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
