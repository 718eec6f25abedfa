//! The times of a snapshot, which are microseconds of the wall clock, as nanoseconds from its first event.

use std::collections::BTreeMap;

use super::before::Device;
use super::steps::StepEnd;
use crate::snapshot::contents::{Contents, UNRECORDED};
use crate::snapshot::note::Note;
use crate::{Error, ErrorKind};

/// When the first event was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock {
    start_us: Option<u64>,
    has_history: bool,
}

impl Clock {
    pub(crate) fn of(contents: &Contents, devices: &BTreeMap<u32, Device>, notes: &mut Vec<Note>) -> Self {
        let mut clock = Self { start_us: None, has_history: false };
        let mut without = 0;
        let events = devices.values().flat_map(|device| device.events.clone());
        for event in events.filter_map(|event| contents.events.get(event as usize)) {
            clock.has_history = true;
            if event.time_us == UNRECORDED {
                without += 1;
            } else {
                clock.start_us = Some(clock.start_us.map_or(event.time_us, |start| start.min(event.time_us)));
            }
        }
        if without > 0 {
            notes.push(Note::NoTimes { count: without });
        }
        clock
    }

    /// Whether there is any event.
    pub(crate) fn has_history(self) -> bool {
        self.has_history
    }

    /// Whether some event has a time.
    pub(crate) fn has_times(self) -> bool {
        self.start_us.is_some()
    }

    /// What is to be said of the steps that are left out.
    pub(crate) fn note_on(self, left_out: &[StepEnd]) -> Option<Note> {
        let count = left_out.len() as u64;
        let note = match (self.has_history, self.has_times()) {
            (false, _) => Note::StepsWithoutEvents { count },
            (true, false) => Note::StepsWithoutTimes { count },
            (true, true) => Note::StepsBefore { count },
        };
        (count > 0).then_some(note)
    }

    /// The time of what was there before the first event.
    pub(crate) fn start_ns(self) -> Option<u64> {
        self.start_us.map(|_| 0)
    }

    /// A time as nanoseconds from the first event.
    pub(crate) fn time_ns(self, time_us: u64) -> Result<Option<u64>, Error> {
        let Some(start) = self.start_us else { return Ok(None) };
        let time_ns = time_us.checked_sub(start).and_then(|since| since.checked_mul(1_000));
        time_ns.map(Some).ok_or_else(|| {
            let range = "0 and 2^64-1 nanoseconds after the first event";
            Error::new(ErrorKind::OutOfRange { column: "time_us", value: time_us.to_string(), range })
        })
    }

    /// How many of the steps ended before the first event; all where no event has a time.
    pub(crate) fn steps_before(self, steps: &[StepEnd]) -> usize {
        self.start_us.map_or(steps.len(), |start| steps.partition_point(|end| end.time_us < start))
    }
}
