//! Sets of addresses or offsets as half-open ranges that do not overlap: [`RangeSet`] knows what is in it, [`RangeMap`]
//! has a value for each range, and [`FreeRuns`] finds ranges by their length too.
//!
//! Written here and not taken from the crate `rangemap`, which does not say how much of a range was there, joins
//! neighbours of one value, and does not order by length.

mod free_runs;
mod map;
mod set;
mod sorted;
#[cfg(test)]
mod tests;

pub use free_runs::FreeRuns;
pub use map::RangeMap;
pub use set::RangeSet;

/// How many numbers are in both.
fn common(one: &std::ops::Range<u64>, other: &std::ops::Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}
