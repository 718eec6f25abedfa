//! How numbers and names read in text, beyond what `core` decides.

use std::path::Path;

use lowtide_core::Bytes;

pub(crate) use lowtide_report::{counted, escaped_controls as escaped, name_within, seconds, thousands};

/// `peak` as a multiple of `bound`: four decimals, or as many as it takes to tell it from one.
pub(crate) fn ratio(peak: Bytes, bound: Bytes) -> String {
    ratio_value(peak.ratio(bound), peak == bound)
}

/// As [`ratio`], for one that is known as a number; `is_one` where it is one exactly.
pub(crate) fn ratio_value(ratio: f64, is_one: bool) -> String {
    let reads_as_one = |decimals: usize| (ratio - 1.0).abs() * 10_f64.powi(decimals as i32) < 0.5;
    let decimals = if is_one { Some(4) } else { (4..12).find(|&decimals| !reads_as_one(decimals)) };
    format!("{ratio:.*}", decimals.unwrap_or(12))
}

/// `1 summary`, `2 summaries`: as [`counted`], where more than one reads otherwise.
pub(crate) fn counted_as(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { many })
}

/// How much of a name is shown.
const NAME_CHARACTERS: usize = 40;

/// A buffer's name on one line: control characters are escaped, the end of a long one is left out and marked.
pub(crate) fn name(id: &str) -> String {
    name_within(id, NAME_CHARACTERS)
}

/// A path as it can be typed in a shell.
pub(crate) fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%,=#".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text.into_owned() } else { quoted(&text) }
}

/// `text` as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ratio_of_one_reads_as_one() {
        let of = |peak, bound| ratio(Bytes::new(peak), Bytes::new(bound));
        assert_eq!(of(7, 7), "1.0000");
        assert_eq!(of(10_025, 10_000), "1.0025");
        assert_eq!(of(1_000_003, 1_000_000), "1.000003");
        assert_eq!(of(0, 0), "1.0000");
    }

    #[test]
    fn one_is_told_from_many() {
        let summaries = |count| counted_as(count, "summary", "summaries");
        assert_eq!([1, 0, 2000].map(summaries), ["1 summary", "0 summaries", "2,000 summaries"]);
    }

    #[test]
    fn names_stay_on_one_line_and_cannot_steer_the_terminal() {
        assert_eq!(name("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(name(&"x".repeat(100)).chars().count(), 40);
    }

    #[test]
    fn paths_can_be_typed() {
        assert_eq!(path(Path::new("a/b-1.csv")), "a/b-1.csv");
        assert_eq!(path(Path::new("it's.csv")), r"'it'\''s.csv'");
    }
}
