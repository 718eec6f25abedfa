//! What came of watching: the verdict, as text for people and as numbers for scripts.

use lowtide_core::Bytes;
use lowtide_memory::process::Ended;
use serde::Serialize;

use super::actions::Action;
use super::judge::{Judge, Judgement, Reason, Trend, Verdict};
use super::observe::Observed;
use super::{Arguments, Kind, page};
use crate::beside::Target;
use crate::console::Emphasis;
use crate::{Answer, Console, Failure, child, columns, resources, show};

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

impl Outcome {
    /// Of a program that ended before anybody could look.
    pub fn empty(what: What, arguments: &Arguments, ended: Option<Ended>) -> Self {
        Self::new(what, arguments, Observed::default(), ended)
    }

    pub fn new(what: What, arguments: &Arguments, mut observed: Observed, ended: Option<Ended>) -> Self {
        let leak_rate = arguments.leak_rate.get() as f64 / 60.0;
        if let Some(ended) = &ended {
            complete(&mut observed, ended);
        }
        if what.is_tree && !super::process::tells_children() {
            observed.notes.push("this system does not tell of children: only the first process was watched".to_owned());
        }
        if observed.huge > 0 {
            let most = Bytes::new(observed.huge);
            observed.notes.push(format!("explicit huge pages are counted, {most} at most; RSS is without them"));
        }
        let judgement = by_time(&observed, arguments, leak_rate);
        let actions = observed.actions.all().iter().map(|action| action.judge(leak_rate, CHANCE)).collect();
        let interval = arguments.interval.as_secs_f64();
        let code = ended.map(|ended| child::code(ended.status));
        Self { what, observed, judgement, actions, interval, leak_rate, code }
    }

    /// What holds for all: of actions that were repeated often enough the worst, or else that over time.
    pub fn verdict(&self) -> Verdict {
        let of_actions = self.actions.iter().filter(|judgement| judgement.reason != Reason::TooShort);
        of_actions.map(|judgement| judgement.verdict).max().unwrap_or(self.judgement.verdict)
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
        // One file that cannot be written takes neither the verdict nor the other with it.
        let written: Vec<Result<(), Failure>> =
            targets.iter().map(|(target, kind)| self.write(target, *kind, console)).collect();
        written.into_iter().collect::<Result<(), Failure>>()?;
        Ok(match self.code {
            Some(code) if code != 0 => Answer::Ended(code),
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
            let verdict = match (judgement.reason, judgement.trend) {
                (Reason::TooShort, _) | (_, None) => "too few".to_owned(),
                (_, Some(trend)) => format!("{}, {}", judgement.verdict.words(), percent(trend.confidence)),
            };
            let peaks = [action.lowest, action.median(), action.highest].map(|peak| Bytes::new(peak).to_string());
            let mut row = vec![action.name.clone(), show::thousands(action.count as usize)];
            row.extend(peaks);
            row.extend([growth, Bytes::new(action.median_after()).to_string(), verdict]);
            row
        });
        std::iter::once(head).chain(rows).collect()
    }
}

/// What only the end of a program tells: a peak between two looks, and faults of what ended unseen.
fn complete(observed: &mut Observed, ended: &Ended) {
    // Until a program is loaded it is this one.
    let own = resources::peak_memory().unwrap_or(Bytes::ZERO);
    if ended.peak > own {
        observed.peak = observed.peak.max(ended.peak.get());
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
    pub confidence: f64,
}

impl Slope {
    /// In bytes per `unit` of what the trend is over.
    pub fn of(trend: &Trend, unit: f64) -> Self {
        let Trend { slope, low, high, confidence, .. } = *trend;
        Self { bytes: slope * unit, low: low * unit, high: high * unit, confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_told_by_the_minute() {
        let trend =
            Trend { slope: 1_048_576.0 / 60.0, low: -1024.0 / 60.0, high: 2048.0, confidence: 0.9, surely: 0.0 };
        assert_eq!(per_minute(&trend), "+1.0 MiB/min (95%: −1.0 KiB to +120.0 KiB)");
        assert_eq!(per_minute(&Trend { slope: 0.0, low: 0.0, high: 0.0, confidence: 0.5, surely: 0.0 }), "+0 B/min");
        assert_eq!([percent(0.5), percent(0.97), percent(0.999)], ["50%", "97%", "99.9%"]);
    }
}
