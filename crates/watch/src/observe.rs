//! The watching itself: a sample whenever it is due, and an action closed at every mark, until there is nothing left to
//! watch or somebody says so.

use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::{Actions, End, Faults, Marks, Processes, Sample, Series, Since};

/// Sampling takes at most one part in so many of the time of one processor.
const SHARE: u32 = 50;
/// However long a sample takes, the next comes as soon as this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long marks are waited for that were made before the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What happens while something is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An action of this name ends.
    Mark(String),
    /// Every mark that was made before is sent.
    CaughtUp,
    /// The program has ended.
    Ended,
    /// Watching is to end before what is watched.
    Stop,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// How long it was watched.
    pub seconds: f64,
    /// Samples over time.
    pub series: Series,
    /// Actions that were marked.
    pub actions: Actions,
    /// The most that is known to have been resident at once.
    pub peak: u64,
    /// The most that it can have been.
    pub ceiling: u64,
    /// Whether a peak can be lower than it was: the system did not let it be counted anew, or it is that of one process
    /// where others may have been.
    pub is_sampled: bool,
    /// The most in explicit huge pages.
    pub huge: u64,
    /// Page faults while it was watched.
    pub faults: Faults,
    /// The most processes that there were at once.
    pub processes: usize,
    /// What the reader should know, a line each.
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

/// How often and how long to watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// From one sample to the next.
    pub interval: Duration,
    /// No longer than this.
    pub limit: Option<Duration>,
}

struct Watching<'a> {
    processes: &'a mut Processes,
    start: Instant,
    observed: Observed,
    /// The peak of the action that goes on.
    action_peak: u64,
    first_faults: Option<Faults>,
    last: Sample,
    refusal_is_noted: bool,
}

/// Watches `processes` until they end, an event says so or the time is over. Each sample is shown to `sampled`, with the
/// time since the start.
pub fn observe(
    processes: &mut Processes,
    (marks, events): (Option<&Marks>, &Receiver<Event>),
    pace: Pace,
    mut sampled: impl FnMut(Duration, &Sample, &Observed),
) -> Observed {
    let mut watching = Watching::new(processes);
    let start = watching.start;
    let mut due = start;
    loop {
        let now = Instant::now();
        if pace.limit.is_some_and(|limit| now - start >= limit) {
            watching.observed.stopped = true;
            break;
        }
        if now >= due {
            let before = processor_time();
            if !watching.sample() {
                break;
            }
            due = now + pause(pace.interval, processor_time().saturating_sub(before));
            sampled(start.elapsed(), &watching.last, &watching.observed);
        }
        let until = pace.limit.map_or(due, |limit| due.min(start + limit));
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Mark(name)) => watching.close(&name),
            Ok(Event::Stop) => {
                watching.observed.stopped = true;
                break;
            }
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(Event::CaughtUp) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
    watching.catch_up(marks, events);
    watching.ended()
}

/// From a sample that took so much of a processor to the next.
fn pause(interval: Duration, used: Duration) -> Duration {
    interval.max((used * SHARE).min(LONGEST_PAUSE))
}

/// What the calling thread has used of a processor so far; nothing where the system does not say.
fn processor_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let microseconds = [usage.user_time(), usage.system_time()].map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    Duration::from_micros(microseconds.iter().sum::<i64>().unsigned_abs())
}

impl<'a> Watching<'a> {
    fn new(processes: &'a mut Processes) -> Self {
        let first_faults = (processes.since() == Since::Start).then(Faults::default);
        Self {
            processes,
            start: Instant::now(),
            observed: Observed::default(),
            action_peak: 0,
            first_faults,
            last: Sample::default(),
            refusal_is_noted: false,
        }
    }

    /// Takes a sample; `false` where there is nothing left to see.
    fn sample(&mut self) -> bool {
        let Some(sample) = self.processes.sample() else { return false };
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
        // What the program did between this moment and its mark is small; what it did since the last sample is not.
        self.sample();
        let at = self.start.elapsed().as_secs_f64();
        let end = End { at, peak: self.action_peak, file: self.last.file, after: self.last.total() };
        self.observed.actions.close(name, end);
        if let Err(error) = self.processes.reset_peaks()
            && !self.refusal_is_noted
        {
            self.refusal_is_noted = true;
            let why =
                if error.kind() == ErrorKind::PermissionDenied { "permission denied" } else { &error.to_string() };
            self.observed.notes.push(format!(
                "the system refuses to reset the peak ({why}); the peak of an action is the highest that was seen"
            ));
        }
        self.action_peak = self.last.total();
    }

    /// Closes actions whose marks were made before this moment and are not read yet.
    fn catch_up(&mut self, marks: Option<&Marks>, events: &Receiver<Event>) {
        let until = Instant::now()
            + if marks.is_some_and(|marks| marks.catch_up().is_ok()) { PATIENCE } else { Duration::ZERO };
        while let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            match event {
                Event::Mark(name) => self.close(&name),
                Event::CaughtUp => break,
                Event::Ended | Event::Stop => {}
            }
        }
    }

    fn ended(mut self) -> Observed {
        self.observed.faults = self.last.faults.since(self.first_faults.unwrap_or_default());
        self.observed.seconds = self.start.elapsed().as_secs_f64();
        self.observed.is_sampled = self.processes.was_refused();
        self.observed
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;

    use super::*;

    const OFTEN: Pace = Pace { interval: Duration::from_millis(5), limit: None };

    #[test]
    fn watching_ends_with_what_is_watched_or_when_its_time_is_over() {
        let mut program = Command::new("sleep").arg("1.5").spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        let (_sender, events) = mpsc::channel();
        for (limit, stopped) in [(Some(Duration::from_millis(300)), true), (None, false)] {
            let mut processes = Processes::of(pid, false, Since::Start).unwrap().unwrap();
            let mut shown = 0;
            let observed =
                observe(&mut processes, (None, &events), Pace { limit, ..OFTEN }, |_, _, observed: &Observed| {
                    shown += 1;
                    assert_eq!(observed.series.samples, shown);
                });
            assert_eq!((observed.stopped, observed.series.samples), (stopped, shown));
            assert!(shown > 1 && observed.peak > 0 && observed.faults.minor > 0, "{observed:?}");
        }
        program.wait().unwrap();
    }

    #[test]
    fn marks_that_were_made_before_the_end_close_their_actions() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut processes = Processes::of(own, false, Since::Now).unwrap().unwrap();
        let marks = Marks::new(None).unwrap();
        let (sender, events) = mpsc::channel();
        marks.listen(sender.clone()).unwrap();
        sender.send(Event::Mark("load".to_owned())).unwrap();
        sender.send(Event::Stop).unwrap();
        std::fs::write(marks.path(), "late\n").unwrap();
        let observed = observe(&mut processes, (Some(&marks), &events), OFTEN, |_, _, _| {});
        let mut names: Vec<&str> = observed.actions.all().iter().map(|action| action.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["late", "load"]);
        assert!(observed.stopped && observed.actions.all().iter().all(|action| action.lowest > 0));
    }

    #[test]
    fn after_a_sample_that_takes_long_the_next_comes_within_a_second() {
        let [short, usual, long] = [1, 100, 5000].map(Duration::from_millis);
        assert_eq!(pause(usual, short), usual);
        assert_eq!(pause(usual, 10 * short), 500 * short);
        assert_eq!(pause(usual, long), LONGEST_PAUSE);
        assert_eq!(pause(long, usual), long);
    }
}
