//! When a buffer holds memory: a half-open range of events, with gaps in which it lets go.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A half-open range `[lower, upper)` in event order. Equal ends make an empty lifetime, which meets nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lifetime {
    /// The event at which the buffer comes to life.
    pub lower: i64,
    /// The first event at which it is no longer alive.
    pub upper: i64,
}

impl Lifetime {
    /// The lifetime `[lower, upper)`, or `None` where `upper` lies before `lower`.
    pub const fn new(lower: i64, upper: i64) -> Option<Self> {
        if lower <= upper { Some(Self { lower, upper }) } else { None }
    }

    /// Whether it holds no event at all.
    pub const fn is_empty(self) -> bool {
        self.lower >= self.upper
    }

    /// How many events it spans.
    pub const fn length(self) -> u64 {
        self.upper.abs_diff(self.lower)
    }

    /// Whether some event lies in both.
    pub const fn overlaps(self, other: Self) -> bool {
        let lower = if self.lower > other.lower { self.lower } else { other.lower };
        let upper = if self.upper < other.upper { self.upper } else { other.upper };
        lower < upper
    }

    /// Whether every event of `other` lies in it.
    pub const fn contains(self, other: Self) -> bool {
        self.lower <= other.lower && other.upper <= self.upper
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.lower, self.upper)
    }
}

/// The part of a buffer, in bytes from its start, that stays occupied during a [`Gap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Window {
    /// First byte that stays.
    pub lower: Bytes,
    /// First byte after those that stay.
    pub upper: Bytes,
}

/// A stretch of a buffer's life in which it holds no memory, or only a window of it: it was swapped out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// When the memory is let go.
    #[serde(flatten)]
    pub lifetime: Lifetime,
    /// What stays all the same; nothing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_open_lifetimes_that_touch_do_not_overlap() {
        let life = |lower, upper| Lifetime::new(lower, upper).unwrap();
        assert!(!life(0, 3).overlaps(life(3, 5)));
        assert!(life(0, 4).overlaps(life(3, 5)));
        assert!(!life(2, 2).overlaps(life(0, 5)), "an empty lifetime meets nothing");
        assert_eq!(Lifetime::new(3, 2), None);
        assert_eq!(life(i64::MIN, i64::MAX).length(), u64::MAX);
    }
}
