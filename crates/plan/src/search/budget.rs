//! What a solve may use, and what it has used: one account for all its parts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::outcome::Stopped;

/// What limits a solve or a part of it.
pub(crate) struct Budget<'a> {
    pub options: &'a Options<'a>,
    pub deadline: Option<Instant>,
    /// Units up to which work may be done.
    limit: Option<u64>,
    /// Units done.
    pub work: u64,
}

impl<'a> Budget<'a> {
    /// All that `options` give, from now on.
    pub fn new(options: &'a Options<'a>) -> Self {
        Self { options, deadline: options.deadline(), limit: options.work, work: 0 }
    }

    /// Units that are left.
    pub fn left(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.work))
    }

    /// Why no more may be done, if so.
    pub fn spent(&self) -> Option<Stopped> {
        if self.options.cancel.load(Ordering::Relaxed) {
            Some(Stopped::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Stopped::Time)
        } else if self.left() == 0 {
            Some(Stopped::Work)
        } else {
            None
        }
    }

    /// A plan was found that is nearly the best, in a search that began at `begun` and ends at `deadline`: it goes on for as long again, where
    /// that is limited.
    pub fn limit_near_bound(&mut self, deadline: Option<Instant>, begun: Instant) {
        if let Some(time) = self.options.time_near_bound.filter(|_| self.options.work.is_none()) {
            let now = Instant::now();
            let until = now.checked_add((now - begun).max(time));
            self.deadline = deadline.into_iter().chain(until).min();
        }
    }

    /// Does `part` with one share in `shares` of what is left: of work where that is limited, else of time.
    pub fn share<R>(&mut self, shares: usize, part: impl FnOnce(&mut Self) -> R) -> R {
        let shares = shares.max(1);
        let (limit, deadline) = (self.limit, self.deadline);
        if limit.is_some() {
            self.limit = Some(self.work.saturating_add(self.left() / shares as u64));
        } else {
            let now = Instant::now();
            self.deadline = deadline.map(|end| now + end.saturating_duration_since(now) / shares as u32);
        }
        let result = part(self);
        (self.limit, self.deadline) = (limit, deadline);
        result
    }

    /// Does `part`, a question on the side, with at most `units` of work and, where work is not what limits the
    /// whole, at most `time`. It may exceed what is left of the whole: the answer is worth more than keeping to the
    /// letter.
    pub fn aside<R>(&mut self, units: u64, time: Duration, part: impl FnOnce(&mut Self) -> R) -> R {
        let (limit, deadline) = (self.limit, self.deadline);
        if limit.is_none() && deadline.is_some() {
            self.deadline = Some(Instant::now() + time);
        } else if limit.is_some() {
            self.deadline = None;
        }
        self.limit = Some(self.work.saturating_add(units));
        let result = part(self);
        (self.limit, self.deadline) = (limit, deadline);
        result
    }
}
