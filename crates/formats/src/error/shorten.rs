//! Values of an input as messages repeat them: no longer than a reader wants, and on one line.

/// How much of a value an error repeats.
const VALUE_CHARACTERS: usize = 32;
/// How much of a header or of another library's message an error repeats.
const MESSAGE_CHARACTERS: usize = 200;

/// `value` for a message: its beginning, on one line.
pub(crate) fn shorten(value: &str) -> String {
    shorten_to(value, VALUE_CHARACTERS)
}

/// As [`shorten`], for texts of which more is worth reading.
pub(crate) fn shorten_message(message: &str) -> String {
    shorten_to(message, MESSAGE_CHARACTERS)
}

fn shorten_to(text: &str, limit: usize) -> String {
    let escape = |character: char| {
        let escaped = character.is_control().then(|| character.escape_default());
        let plain = escaped.is_none().then_some(character);
        escaped.into_iter().flatten().chain(plain)
    };
    let mut rest = text.chars().flat_map(escape);
    let mut shown: String = rest.by_ref().take(limit).collect();
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_stay_on_one_line() {
        assert_eq!(shorten("7"), "7");
        assert_eq!(shorten(&"9".repeat(1_000_000)), format!("{}…", "9".repeat(32)));
        assert_eq!(shorten("a\nb"), "a\\nb");
        assert_eq!(shorten(&"\0".repeat(40)).chars().count(), 33);
        assert_eq!(shorten(&"ä".repeat(40)).chars().count(), 33);
    }
}
