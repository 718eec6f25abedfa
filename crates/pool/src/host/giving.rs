//! How memory goes back to the system: at once when asked, after a while when nothing uses it, and early where free memory
//! lies beside other memory that is touched in its place.

use std::ops::Range;
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_memory::{Pages, Span};

use super::state::{HUGE, State};

/// What is held may be this part more than what is needed.
const SLACK: u64 = 16;

/// Each of so many first steps lets this part of what was ever alive go back early. It is soon touched again: a program
/// whose blocks never settle pays for no more.
const STEPS: u64 = 16;
const A_STEP: u64 = 4;

/// How many of the longest free runs are looked at for memory to save.
const LOOKED_AT: usize = 32;

/// The time as far as ticks have told it, in quarters of a second since the first.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// What the first tick said.
    began: Option<Duration>,
    pub(super) now: u32,
    /// When the last step was closed, and how long steps take.
    pub(super) step_closed: u32,
    pub(super) longest_step: u32,
    /// When the stage was last seen to serve, and how much it had served by then.
    pub(super) stage_seen: u32,
    pub(super) stage_served: u64,
    /// When memory was last given back.
    swept: u32,
}

impl Clock {
    fn set(&mut self, now: Duration) {
        let since = now.saturating_sub(*self.began.get_or_insert(now));
        self.now = (since.as_millis() / 250).try_into().unwrap_or(u32::MAX - 1);
    }
}

/// What has gone back early.
#[derive(Debug, Default)]
pub(super) struct Thrift {
    saved: u64,
    /// Whether a step was served whole: what was saved until then no longer counts.
    has_settled: bool,
    /// Up to which held memory there was nothing to save.
    content: u64,
}

impl Thrift {
    /// A step came from its plan to the last block.
    pub(super) fn settle(&mut self) {
        if !std::mem::replace(&mut self.has_settled, true) {
            self.saved = 0;
        }
    }
}

impl State {
    /// Gives all memory back that no block holds.
    pub(super) fn trim(&mut self) -> Bytes {
        self.lower_stage();
        let given = self.give_back(u32::MAX);
        // A huge page is there as a whole when a part of it was touched, whether it is in the books or not.
        if self.options.pages.pages == Pages::Transparent {
            let page = self.expanse.page().get();
            let until = self.residency.end();
            let runs: Vec<(u64, u64)> = self.free.iter().take_while(|run| run.0 < until).collect();
            for (start, length) in runs {
                let (start, end) = (start.next_multiple_of(page), (start + length).min(until) / page * page);
                if start < end {
                    self.discard(start..end);
                }
            }
        }
        Bytes::new(given)
    }

    /// Gives free memory back that was not in use since `since`.
    pub(super) fn give_back(&mut self, since: u32) -> u64 {
        let runs: Vec<(u64, u64)> = self.free.iter().collect();
        runs.into_iter().map(|(start, length)| self.discard_idle(start..start + length, since)).sum()
    }

    /// Gives back whole pages of a free range that were not in use since `since`.
    pub(super) fn discard_idle(&mut self, range: Range<u64>, since: u32) -> u64 {
        let page = self.expanse.page().get();
        let (least, most) = (range.start.next_multiple_of(page), range.end / page * page);
        let mut given = 0;
        for part in self.residency.idle(range, since) {
            let bytes = part.end - part.start;
            // What came with it in a huge page goes with it, unless that is in use.
            let wide = (part.start / HUGE * HUGE).max(least)..part.end.next_multiple_of(HUGE).min(most);
            let is_huge = self.options.pages.pages == Pages::Transparent;
            let is_idle = is_huge && self.residency.idle(wide.clone(), since) == self.residency.dirty(wide.clone());
            if self.discard(if is_idle { wide } else { part }) > 0 {
                given += bytes;
            }
        }
        given
    }

    /// Gives back whole pages that are free, and says how many bytes they have. What the system does not take stays.
    fn discard(&mut self, part: Range<u64>) -> u64 {
        let bytes = part.end - part.start;
        if self.expanse.discard(Span::new(part.start, Bytes::new(bytes))).is_err() {
            return 0;
        }
        self.residency.clear(part);
        bytes
    }

    /// Gives free memory back where more is held than blocks and the plan ever needed at once. While the steps of a program
    /// are not planned yet, holes between its blocks are touched one after the other: this keeps them from adding up.
    pub(super) fn save(&mut self) {
        let held = self.residency.held();
        let needed = self.peak_live.max(self.live + (self.ground.end - self.ground.start));
        let allowed = needed + needed / SLACK + HUGE;
        let earned = self.steps.min(STEPS) * self.peak_live / A_STEP;
        if held <= allowed.max(self.thrift.content) || self.thrift.saved >= earned || self.is_prefaulted() {
            return;
        }
        // A little more, so that the next block does not ask again; and huge pages whole, so that they come back as such.
        let mut excess = (held - allowed + HUGE).next_multiple_of(HUGE);
        let runs: Vec<(u64, u64)> = self.free.longest().take(LOOKED_AT).collect();
        for (start, length) in runs {
            let mut end = (start + length).min(self.residency.end()) / HUGE * HUGE;
            while excess > 0 && start.next_multiple_of(HUGE) + HUGE <= end {
                end -= HUGE;
                if self.residency.is_dirty(end..end + HUGE) {
                    excess -= HUGE;
                    self.thrift.saved += self.discard(end..end + HUGE);
                }
            }
        }
        self.thrift.content = if excess > 0 { self.residency.held() } else { 0 };
    }

    /// Time goes on.
    pub(super) fn tick(&mut self, now: Duration) {
        self.clock.set(now);
        let now = self.clock.now;
        let decay = (self.options.decay.as_millis() / 250).try_into().unwrap_or(u32::MAX);
        // A step that takes long may use its memory but once.
        let window = decay.max(self.clock.longest_step.saturating_mul(3));
        self.rest_idle_stage(window);
        let is_due = now.saturating_sub(self.clock.swept) >= (decay / 8).max(1);
        if is_due && now > window && !self.is_prefaulted() {
            self.clock.swept = now;
            self.give_back(now - window);
        }
    }
}
