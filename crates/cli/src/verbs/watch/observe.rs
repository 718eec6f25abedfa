//! The watching itself: a sample whenever it is time, and an action closed at every mark, until there is nothing left to
//! watch or somebody says so.

use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::Event;
use super::actions::{Actions, End};
use super::live::Live;
use super::marks::Marks;
use super::series::Series;
use super::subject::{Faults, Sample, Subject};
use crate::program::resources;

/// Looking takes at most one part in so many of the time.
const SHARE: u32 = 50;
/// However long a look takes, the next comes as soon as this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long marks are waited for that were made before the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub seconds: f64,
    pub series: Series,
    pub actions: Actions,
    /// The most that is known to have been held at once.
    pub peak: u64,
    /// The most that it can have been.
    pub ceiling: u64,
    /// Whether a peak can be lower than it was: the system did not let it be counted anew, or it is that of one process
    /// where others may have been.
    pub is_sampled: bool,
    /// The most in explicit huge pages.
    pub huge: u64,
    /// While it was watched.
    pub faults: Faults,
    /// The most that there were at once.
    pub processes: usize,
    pub notes: Vec<String>,
    /// Whether watching ended before what was watched.
    pub stopped: bool,
}

impl Observed {
    /// Whether the peak is what the system counted, and not only the highest of what was seen.
    pub fn is_exact(&self) -> bool {
        self.peak >= self.ceiling && !self.is_sampled
    }
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub interval: Duration,
    /// No longer than this.
    pub limit: Option<Duration>,
    /// The program that was started to be watched: signals are passed on to it.
    pub program: Option<Pid>,
}

struct Watching<'a> {
    subject: &'a mut Subject,
    start: Instant,
    observed: Observed,
    /// The peak of the action that goes on.
    action_peak: u64,
    first_faults: Option<Faults>,
    last: Sample,
    refusal_is_told: bool,
}

/// Watches `subject`. Events end it, or the end of what is watched.
pub(super) fn observe(
    subject: &mut Subject,
    (marks, events): (Option<&Marks>, &Receiver<Event>),
    pace: Pace,
    live: &mut Live,
) -> Observed {
    let start = Instant::now();
    let mut watching = Watching {
        subject,
        start,
        observed: Observed::default(),
        action_peak: 0,
        first_faults: pace.program.map(|_| Faults::default()),
        last: Sample::default(),
        refusal_is_told: false,
    };
    let mut due = start;
    loop {
        let now = Instant::now();
        if pace.limit.is_some_and(|limit| now - start >= limit) {
            watching.observed.stopped = true;
            break;
        }
        if now >= due {
            let before = resources::Who::Thread.cpu_seconds();
            if !watching.sample() {
                break;
            }
            let used = before.zip(resources::Who::Thread.cpu_seconds()).map_or(0.0, |(before, after)| after - before);
            due = now + pause(pace.interval, Duration::from_secs_f64(used.max(0.0)));
            live.show(start.elapsed(), &watching.last, &watching.observed);
        }
        let until = pace.limit.map_or(due, |limit| due.min(start + limit));
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Mark(name)) => watching.close(&name),
            Ok(Event::Signal(heard)) => match pace.program {
                Some(program) => heard.pass_on(program),
                None if heard.ends() => {
                    watching.observed.stopped = true;
                    break;
                }
                None => {}
            },
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(Event::Heard) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
    watching.hear_out(marks, events);
    watching.ended()
}

/// From a look that took so much of a processor to the next.
fn pause(interval: Duration, used: Duration) -> Duration {
    interval.max((used * SHARE).min(LONGEST_PAUSE))
}

impl Watching<'_> {
    /// Looks once; `false` where there is nothing left to see.
    fn sample(&mut self) -> bool {
        let Some(sample) = self.subject.sample() else { return false };
        let at = self.start.elapsed().as_secs_f64();
        self.observed.series.push(at, sample);
        self.observed.peak = self.observed.peak.max(sample.peak);
        self.action_peak = self.action_peak.max(sample.peak);
        self.observed.processes = self.observed.processes.max(sample.processes);
        self.observed.ceiling = self.observed.ceiling.max(sample.ceiling);
        self.observed.huge = self.observed.huge.max(sample.huge);
        self.first_faults.get_or_insert(sample.faults);
        self.last = sample;
        true
    }

    /// An action ends here.
    fn close(&mut self, name: &str) {
        // What the program did between this moment and its mark is small; what it did before the last look is not.
        self.sample();
        let at = self.start.elapsed().as_secs_f64();
        let end = End { at, peak: self.action_peak, file: self.last.file, after: self.last.held() };
        self.observed.actions.close(name, end);
        if let Err(error) = self.subject.reset_peaks()
            && !self.refusal_is_told
        {
            self.refusal_is_told = true;
            let why =
                if error.kind() == ErrorKind::PermissionDenied { "permission denied" } else { &error.to_string() };
            self.observed.notes.push(format!(
                "the system refuses to reset the peak ({why}); the peak of an action is the highest that was seen"
            ));
        }
        self.action_peak = self.last.held();
    }

    /// Marks that were made before this moment and are not told yet.
    fn hear_out(&mut self, marks: Option<&Marks>, events: &Receiver<Event>) {
        let until =
            Instant::now() + if marks.is_some_and(|marks| marks.end().is_ok()) { PATIENCE } else { Duration::ZERO };
        while let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            match event {
                Event::Mark(name) => self.close(&name),
                Event::Heard => break,
                Event::Ended | Event::Signal(_) => {}
            }
        }
    }

    fn ended(mut self) -> Observed {
        let first = self.first_faults.unwrap_or_default();
        let last = self.last.faults;
        self.observed.faults =
            Faults { minor: last.minor.saturating_sub(first.minor), major: last.major.saturating_sub(first.major) };
        self.observed.seconds = self.start.elapsed().as_secs_f64();
        self.observed.is_sampled = self.subject.was_refused();
        self.observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_blinds_for_no_more_than_a_moment() {
        let [short, usual, long] = [1, 100, 5000].map(Duration::from_millis);
        assert_eq!(pause(usual, short), usual);
        assert_eq!(pause(usual, 10 * short), 500 * short);
        assert_eq!(pause(usual, long), LONGEST_PAUSE);
        assert_eq!(pause(long, usual), long);
    }
}
