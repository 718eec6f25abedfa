//! Numbers of the command line, refused in words that say what is expected.

use std::num::NonZeroUsize;
use std::time::Duration;

use lowtide_core::{Align, Bytes, ParseBytesError, ParseMemoryError, parse_device_memory};
pub(crate) use lowtide_watch::median;

use crate::arguments::typed::Typed;

/// What is said of a number below zero.
const NEGATIVE: &str = "it must not be negative";

/// A whole number from 0 on.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    refuse_negative(text)?;
    ungrouped(text).parse().map_err(|_| "write a whole number from 0 to 2^64-1, such as 7".to_owned())
}

/// The number of an event, also with the separators that it is printed with: `2,137`.
pub(crate) fn event(text: &str) -> Option<i64> {
    ungrouped(text).parse().ok()
}

/// `text` without separators, where they stand between groups of three digits.
fn ungrouped(text: &str) -> String {
    let text = text.trim();
    let mut groups = text.trim_start_matches('-').split([',', '_']);
    let is_short = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    if is_short && groups.all(|group| group.len() == 3) { text.replace([',', '_'], "") } else { text.to_owned() }
}

/// A whole number from 1 on.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    refuse_negative(text)?;
    text.trim().parse().map_err(|_| "write a whole number from 1 on, such as 4".to_owned())
}

/// A part of a hundred, above none.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    refuse_negative(text)?;
    let number = text.trim().trim_end_matches('%').parse().ok().filter(|number| (0.001..=100.0).contains(number));
    number.ok_or_else(|| "write a number of percent up to 100, such as 2 or 0.5".to_owned())
}

/// An amount of memory.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    refuse_negative(text)?;
    text.parse().map_err(|error: ParseBytesError| error.to_string())
}

/// The memory of a device: an amount, or a GPU's name.
pub(crate) fn memory(text: &str) -> Result<Bytes, String> {
    refuse_negative(text)?;
    parse_device_memory(text).map_err(|error: ParseMemoryError| error.to_string())
}

/// As [`memory`], and how it was typed.
pub(crate) fn typed_memory(text: &str) -> Result<Typed<Bytes>, String> {
    Typed::parse(text, memory)
}

/// As [`size`], and how it was typed.
pub(crate) fn typed_size(text: &str) -> Result<Typed<Bytes>, String> {
    Typed::parse(text, size)
}

/// What offsets are multiples of, and how it was typed.
pub(crate) fn typed_align(text: &str) -> Result<Typed<Align>, String> {
    Typed::parse(text, |text| Align::new(size(text)?.get()).ok_or_else(|| "an alignment is at least 1".to_owned()))
}

/// A time in seconds, or in parts of one.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    /// A thousand years; clocks count no further.
    const MOST: f64 = 3.2e10;
    refuse_negative(text)?;
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| (0.0..=MOST).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write seconds, such as 5 or 0.5".to_owned())
}

/// Refuses a number with a sign in front.
pub(crate) fn refuse_negative(text: &str) -> Result<(), String> {
    if is_negative(text) { Err(NEGATIVE.to_owned()) } else { Ok(()) }
}

/// Whether `text` begins as a number below zero does.
pub(crate) fn is_negative(text: &str) -> bool {
    let digits = text.trim_start().strip_prefix('-');
    digits.is_some_and(|digits| digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_is_expected() {
        assert_eq!((whole("0"), count("3")), (Ok(0), Ok(NonZeroUsize::new(3).unwrap())));
        assert_eq!(size("1KiB"), Ok(Bytes::new(1024)));
        assert_eq!(whole("-5"), Err(NEGATIVE.to_owned()));
        assert_eq!(size("-5GiB"), Err(NEGATIVE.to_owned()));
        for text in ["", "x", "1.5", "99999999999999999999"] {
            assert!(whole(text).unwrap_err().starts_with("write a whole number"), "{text}");
        }
        for text in ["0", "x"] {
            assert!(count(text).unwrap_err().starts_with("write a whole number from 1"), "{text}");
        }
    }

    #[test]
    fn a_number_is_read_as_it_is_printed() {
        assert_eq!((event("2,137"), event("-1_000_000"), event("5321")), (Some(2137), Some(-1_000_000), Some(5321)));
        assert_eq!(whole("18,446,744,073,709,551,615"), Ok(u64::MAX));
        for text in ["2,13", "2,1378", ",137", "2,,137", "1,2", "1234,567", "2, 137", ""] {
            assert_eq!(event(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_have_an_end() {
        assert_eq!((seconds("0.5"), seconds("0")), (Ok(Duration::from_millis(500)), Ok(Duration::ZERO)));
        for text in ["-1", "inf", "nan", "1e11", "x", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
