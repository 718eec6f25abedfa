//! The `gaps` column: stretches in which a buffer lets go of its memory, as `lower-upper` or, where a window of
//! its bytes stays, `lower-upper@first:end`; several with spaces between them.

use std::fmt::Write;

use lowtide_core::{Bytes, Gap, Lifetime, Window};

use crate::error::shorten::shorten;
use crate::reading::cell::Cell;
use crate::{Error, ErrorKind};

/// The gaps of a cell; with `inclusive` ends, their last event is the one written.
pub(crate) fn parse(cell: Cell<'_>, inclusive: bool) -> Result<Vec<Gap>, Error> {
    cell.text
        .split_ascii_whitespace()
        .map(|text| parse_one(text, inclusive).ok_or_else(|| cell.error(ErrorKind::BadGap { value: shorten(text) })))
        .collect()
}

fn parse_one(text: &str, inclusive: bool) -> Option<Gap> {
    let (times, window) = match text.split_once('@') {
        Some((times, window)) => (times, Some(parse_window(window)?)),
        None => (text, None),
    };
    // A dash at the very start is the sign of the first time, not what parts it from the second.
    let parting = times.bytes().skip(1).position(|byte| byte == b'-')? + 1;
    let lower = times[..parting].parse().ok()?;
    let written: i64 = times[parting + 1..].parse().ok()?;
    let upper = if inclusive { written.checked_add(1)? } else { written };
    Some(Gap { lifetime: Lifetime { lower, upper }, window })
}

fn parse_window(text: &str) -> Option<Window> {
    let (lower, upper) = text.split_once(':')?;
    Some(Window { lower: Bytes::new(lower.parse().ok()?), upper: Bytes::new(upper.parse().ok()?) })
}

/// The gaps as a cell with half-open ends.
pub(crate) fn format(gaps: &[Gap]) -> String {
    let mut text = String::new();
    for gap in gaps {
        let parting = if text.is_empty() { "" } else { " " };
        let Lifetime { lower, upper } = gap.lifetime;
        // Writing to a string cannot fail.
        let _ = write!(text, "{parting}{lower}-{upper}");
        if let Some(window) = gap.window {
            let _ = write!(text, "@{}:{}", window.lower.get(), window.upper.get());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, inclusive: bool) -> Result<Vec<Gap>, Error> {
        parse(Cell { column: "gaps", text, row: 3 }, inclusive)
    }

    #[test]
    fn gaps_may_have_windows_and_negative_times() {
        let text = "-9--7 -5-3@0:16 4-6";
        let gaps = read(text, false).unwrap();
        let times: Vec<_> = gaps.iter().map(|gap| (gap.lifetime.lower, gap.lifetime.upper)).collect();
        assert_eq!(times, [(-9, -7), (-5, 3), (4, 6)]);
        assert_eq!(gaps[1].window, Some(Window { lower: Bytes::new(0), upper: Bytes::new(16) }));
        assert_eq!(format(&gaps), text);
    }

    #[test]
    fn inclusive_ends_move_the_time_and_not_the_window() {
        let gap = read("1-2@3:4", true).unwrap()[0];
        assert_eq!(gap.lifetime, Lifetime { lower: 1, upper: 3 });
        assert_eq!(gap.window.unwrap().upper, Bytes::new(4));
    }

    #[test]
    fn what_is_no_gap_is_refused() {
        for text in
            ["5", "-5", "5-", "-", "1-2@", "1-2@3", "1-2@-1:3", "1-2@1:2@3:4", "a-b", "é-1", "1-9223372036854775807"]
        {
            let inclusive = true;
            assert!(
                matches!(read(text, inclusive), Err(Error { row: Some(3), kind: ErrorKind::BadGap { .. } })),
                "{text}"
            );
        }
    }
}
