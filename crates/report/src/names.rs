//! Names that a program gave, as they can be shown: on one line, without what steers a terminal.

use std::borrow::Cow;

/// `name` on one line of at most `characters`: control characters are escaped, the end of a long one is left out and
/// marked.
pub fn name_within(name: &str, characters: usize) -> String {
    let escaped = escaped_controls(name);
    if escaped.chars().count() <= characters {
        return escaped.into_owned();
    }
    escaped.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

/// `text` without control characters.
pub fn escaped_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_cannot_steer_the_terminal() {
        assert_eq!(name_within("a\u{1b}[31m\n", 40), "a\\u{1b}[31m\\n");
        assert_eq!(name_within(&"x".repeat(100), 40).chars().count(), 40);
    }
}
