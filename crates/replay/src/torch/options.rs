//! What a user can set, as far as it changes what is reserved, and how sizes follow from it.

use std::fmt;
use std::str::FromStr;

use lowtide_core::Bytes;

use super::blocks::Class;
use super::divisions::Divisions;
use super::option_error::OptionError;
use super::parse;

const MIB: u64 = 1 << 20;
/// Every block is a multiple of this.
pub(super) const UNIT: u64 = 512;
/// The largest block of the small pools, and the largest rest of a large block that is not split off.
pub(super) const SMALL: u64 = MIB;
/// What small blocks are cut from.
pub(super) const SMALL_SEGMENT: u64 = 2 * MIB;
/// Blocks from here on have a segment of their own size, rounded up to [`ROUND`].
const OWN_SEGMENT: u64 = 10 * MIB;
const ROUND: u64 = 2 * MIB;
const LARGE_SEGMENT_MIB: u64 = 20;

/// The options of PyTorch's device allocators.
///
/// They are read from and written as a line of `PYTORCH_ALLOC_CONF`, such as
/// `max_split_size_mb:128,garbage_collection_threshold:0.8`, with PyTorch's defaults and ranges. Options that do not
/// change what is reserved are kept and written again.
#[derive(Clone, PartialEq, Debug)]
pub struct TorchOptions {
    pub(super) large_segment: u64,
    pub(super) max_split: Option<u64>,
    pub(super) max_non_split_rounding: Option<u64>,
    pub(super) divisions: Divisions,
    pub(super) garbage_threshold: Option<f64>,
    pub(super) fraction: f64,
    pub(super) expandable: bool,
    pub(super) others: Vec<(String, String)>,
}

impl Default for TorchOptions {
    fn default() -> Self {
        Self {
            large_segment: LARGE_SEGMENT_MIB * MIB,
            max_split: None,
            max_non_split_rounding: None,
            divisions: Divisions::none(),
            garbage_threshold: None,
            fraction: 1.0,
            expandable: false,
            others: Vec::new(),
        }
    }
}

impl TorchOptions {
    /// `large_segment_size_mb`: what blocks from 1 to 10 MiB are cut from, and the page of large expandable ranges.
    pub fn large_segment_size(&self) -> Bytes {
        Bytes::new(self.large_segment)
    }

    /// `max_split_size_mb`: blocks of this size or more are never split. None where all may be.
    pub fn max_split_size(&self) -> Option<Bytes> {
        self.max_split.map(Bytes::new)
    }

    /// `max_non_split_rounding_mb`: how much larger than asked for a block may be that is not split. As large as a
    /// large segment unless it was set.
    pub fn max_non_split_rounding(&self) -> Bytes {
        Bytes::new(self.max_non_split_rounding.unwrap_or(self.large_segment))
    }

    /// `garbage_collection_threshold`: the part of the allowed memory above which unused segments are given back.
    /// Without a [fraction](Self::per_process_memory_fraction) below one it does nothing.
    pub fn garbage_collection_threshold(&self) -> Option<f64> {
        self.garbage_threshold
    }

    /// `per_process_memory_fraction`: the part of the device's memory that may be taken.
    pub fn per_process_memory_fraction(&self) -> f64 {
        self.fraction
    }

    /// `expandable_segments`: whether PyTorch would use expandable segments.
    pub fn expandable_segments(&self) -> bool {
        self.expandable
    }

    /// Options that do not change what is reserved, as they were given.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str)> {
        self.others.iter().map(|(option, value)| (option.as_str(), value.as_str()))
    }

    /// The size of the block that `bytes`, not zero, are served with, or `None` where it does not fit 64 bits.
    pub(super) fn block(&self, bytes: u64) -> Option<u64> {
        self.divisions.round(bytes, UNIT)
    }

    /// The size of the segment that a block of `bytes` is cut from where none is there.
    pub(super) fn segment(&self, bytes: u64) -> u64 {
        match Class::of(bytes) {
            Class::Small => SMALL_SEGMENT,
            Class::Large if bytes < OWN_SEGMENT => self.large_segment,
            Class::Large => bytes.next_multiple_of(ROUND),
        }
    }

    /// Whether a free block of `found` bytes may serve one of `asked`: large ones are neither split nor wasted.
    pub(super) fn may_serve(&self, found: u64, asked: u64) -> bool {
        let Some(max_split) = self.max_split else { return true };
        if asked < max_split { found < max_split } else { found - asked < self.max_non_split_rounding().get() }
    }

    /// Whether `asked` bytes are cut off a block of `found`.
    pub(super) fn splits(&self, class: Class, found: u64, asked: u64) -> bool {
        match class {
            Class::Small => found - asked >= UNIT,
            Class::Large => self.max_split.is_none_or(|max_split| asked < max_split) && found - asked > SMALL,
        }
    }
}

impl fmt::Display for TorchOptions {
    /// The options that are not at their default, as a line that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| (bytes / MIB).to_string();
        let default = Self::default();
        let large_segment = (self.large_segment != default.large_segment).then(|| mebibytes(self.large_segment));
        let divisions = Some(self.divisions.written().to_owned()).filter(|written| !written.is_empty());
        let fraction = (self.fraction < default.fraction).then(|| self.fraction.to_string());
        let known = [
            (parse::LARGE_SEGMENT, large_segment),
            (parse::MAX_SPLIT, self.max_split.map(mebibytes)),
            (parse::MAX_NON_SPLIT_ROUNDING, self.max_non_split_rounding.map(mebibytes)),
            (Divisions::OPTION, divisions),
            (parse::GARBAGE_THRESHOLD, self.garbage_threshold.map(|threshold| threshold.to_string())),
            (parse::FRACTION, fraction),
            (parse::EXPANDABLE, self.expandable.then(|| "True".to_owned())),
        ];
        let known = known.iter().filter_map(|(option, value)| Some((*option, value.as_deref()?)));
        for (position, (option, value)) in known.chain(self.others()).enumerate() {
            write!(f, "{}{option}:{value}", if position == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for TorchOptions {
    type Err = OptionError;

    /// Reads a line of `PYTORCH_ALLOC_CONF`; an empty one is all defaults, and of an option that is given twice the
    /// last counts.
    fn from_str(line: &str) -> Result<Self, OptionError> {
        parse::line(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_of_three_kinds() {
        let options = TorchOptions::default();
        let segments =
            [512, MIB, MIB + 512, OWN_SEGMENT - 512, OWN_SEGMENT, 33 * MIB].map(|size| options.segment(size));
        assert_eq!(segments, [2 * MIB, 2 * MIB, 20 * MIB, 20 * MIB, 10 * MIB, 34 * MIB]);
    }

    #[test]
    fn small_blocks_leave_any_rest_and_large_ones_only_more_than_a_mebibyte() {
        let options = TorchOptions::default();
        assert!(options.splits(Class::Small, 1024, 512));
        assert!(!options.splits(Class::Small, 512, 512));
        assert!(!options.splits(Class::Large, 20 * MIB, 19 * MIB));
        assert!(options.splits(Class::Large, 20 * MIB, 19 * MIB - 512));
    }

    #[test]
    fn oversize_blocks_serve_only_what_nearly_fills_them() {
        let options: TorchOptions = "max_split_size_mb:100".parse().unwrap();
        assert!(!options.may_serve(100 * MIB, 99 * MIB));
        assert!(options.may_serve(119 * MIB, 100 * MIB));
        assert!(!options.may_serve(120 * MIB, 100 * MIB));
        assert!(!options.splits(Class::Large, 119 * MIB, 100 * MIB));
        assert!(TorchOptions::default().may_serve(u64::MAX, 512));
    }

    #[test]
    fn the_default_prints_as_nothing() {
        assert_eq!(TorchOptions::default().to_string(), "");
        assert_eq!("".parse(), Ok(TorchOptions::default()));
    }
}
