//! Numbers of the command line, refused in words that say what is expected.

use std::num::NonZeroUsize;
use std::time::Duration;

use lowtide_core::{Bytes, ParseBytesError};
pub(crate) use lowtide_watch::median;

/// What is said of a number below zero.
const NEGATIVE: &str = "it must not be negative";

/// A whole number from 0 on.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    refuse_negative(text)?;
    text.trim().parse().map_err(|_| "write a whole number from 0 to 2^64-1, such as 7".to_owned())
}

/// A whole number from 1 on.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    refuse_negative(text)?;
    text.trim().parse().map_err(|_| "write a whole number from 1 on, such as 4".to_owned())
}

/// An amount of memory.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    refuse_negative(text)?;
    text.parse().map_err(|error: ParseBytesError| error.to_string())
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
    fn seconds_have_an_end() {
        assert_eq!((seconds("0.5"), seconds("0")), (Ok(Duration::from_millis(500)), Ok(Duration::ZERO)));
        for text in ["-1", "inf", "nan", "1e11", "x", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
