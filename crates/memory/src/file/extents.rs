//! Which parts of a file are in use. The lowest part that is large enough is taken first, so that a file stays short.

use lowtide_core::Bytes;
use lowtide_core::ranges::RangeSet;

/// The longest a file can be.
const LONGEST: u64 = i64::MAX as u64;

/// Free ranges below an end.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    free: RangeSet,
    end: u64,
}

impl Extents {
    /// Takes `bytes`: where they begin, and how long the file has to be.
    pub(crate) fn take(&mut self, bytes: Bytes) -> Option<(u64, u64)> {
        if let Some(offset) = self.free.take_lowest(bytes.get()) {
            return Some((offset, self.end));
        }
        let offset = self.end;
        self.end = offset.checked_add(bytes.get()).filter(|&end| end <= LONGEST)?;
        Some((offset, self.end))
    }

    /// Gives back what [`Extents::take`] gave.
    pub(crate) fn give(&mut self, offset: u64, bytes: Bytes) {
        self.free.insert(offset..offset + bytes.get());
        if let Some(last) = self.free.ending_at(self.end) {
            self.end = last.start;
            self.free.remove(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: u64) -> Bytes {
        Bytes::new(count)
    }

    #[test]
    fn the_lowest_range_that_is_large_enough_is_taken() {
        let mut extents = Extents::default();
        for (expected, size) in [(0, 8), (8, 4), (12, 8), (20, 4)] {
            assert_eq!(extents.take(bytes(size)).map(|(offset, _)| offset), Some(expected));
        }
        extents.give(8, bytes(4));
        extents.give(0, bytes(8));
        assert_eq!(extents.take(bytes(12)), Some((0, 24)));
    }

    #[test]
    fn freed_neighbours_merge_and_the_end_comes_down() {
        let mut extents = Extents::default();
        for _ in 0..4 {
            extents.take(bytes(4));
        }
        for offset in [4, 12, 8, 0] {
            extents.give(offset, bytes(4));
        }
        assert_eq!(extents.end, 0);
        assert!(extents.free.is_empty());
    }

    #[test]
    fn a_file_is_never_longer_than_a_file_can_be() {
        let mut extents = Extents::default();
        assert!(extents.take(bytes(LONGEST)).is_some());
        assert_eq!(extents.take(bytes(1)), None);
        assert_eq!(extents.end, LONGEST);
    }
}
