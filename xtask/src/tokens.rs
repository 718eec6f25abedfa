//! Tells Rust code from comments and literals, just well enough to find a word in code. It reads any text without
//! failing; what does not end, such as an open comment, ends with the text.

/// The lines, counted from one, on which `word` stands as a word of its own in code.
pub(crate) fn lines_with_word(source: &str, word: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let (mut line, mut rest) = (1, source);
    while !rest.is_empty() {
        let (token, after) = rest.split_at(token_length(rest));
        if token == word && lines.last() != Some(&line) {
            lines.push(line);
        }
        line += token.matches('\n').count();
        rest = after;
    }
    lines
}

/// The bytes of the token that a text begins with; at least one character unless the text is empty.
fn token_length(text: &str) -> usize {
    match text.chars().next() {
        None => 0,
        Some('/') if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
        Some('/') if text.starts_with("/*") => block_comment_length(text),
        Some('"') => quoted_length(text, '"'),
        Some('\'') => character_or_lifetime_length(text),
        Some(first) if is_word(first) => word_or_raw_length(text),
        Some(other) => other.len_utf8(),
    }
}

/// Block comments nest.
fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut place) = (0_usize, 0);
    while let Some(found) = text[place..].find(['/', '*']) {
        place += found;
        if text[place..].starts_with("/*") {
            depth += 1;
            place += 2;
        } else if text[place..].starts_with("*/") {
            depth -= 1;
            place += 2;
            if depth == 0 {
                return place;
            }
        } else {
            place += 1;
        }
    }
    text.len()
}

/// A literal between two of `quote`, in which a backslash guards the next character.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut guarded = false;
    for (place, character) in text.char_indices().skip(1) {
        if guarded {
            guarded = false;
        } else if character == '\\' {
            guarded = true;
        } else if character == quote {
            return place + quote.len_utf8();
        }
    }
    text.len()
}

/// Of a lifetime only the quote is taken; its name is a word.
fn character_or_lifetime_length(text: &str) -> usize {
    let mut characters = text.chars().skip(1);
    match (characters.next(), characters.next()) {
        (Some('\\'), _) => quoted_length(text, '\''),
        (Some(character), Some('\'')) => character.len_utf8() + 2,
        _ => 1,
    }
}

fn word_or_raw_length(text: &str) -> usize {
    let length = word_length(text);
    match &text[..length] {
        "r" | "br" | "cr" => length + raw_length(&text[length..]),
        _ => length,
    }
}

/// What follows the prefix of a raw string or raw identifier; nothing when the prefix was only a word.
fn raw_length(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let (marks, after) = text.split_at(hashes);
    if let Some(content) = after.strip_prefix('"') {
        let close = format!("\"{marks}");
        content.find(&close).map_or(text.len(), |end| hashes + 1 + end + close.len())
    } else if hashes == 1 {
        1 + word_length(after)
    } else {
        0
    }
}

fn word_length(text: &str) -> usize {
    text.find(|character| !is_word(character)).unwrap_or(text.len())
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str) -> Vec<usize> {
        lines_with_word(source, "unsafe")
    }

    #[test]
    fn the_word_is_found_in_code() {
        assert_eq!(lines("unsafe fn a() {}\n\nfn b() { unsafe { a() } }\n#[unsafe(no_mangle)]"), [1, 3, 4]);
    }

    #[test]
    fn a_line_is_named_once() {
        assert_eq!(lines("unsafe { unsafe { a() } }"), [1]);
    }

    #[test]
    fn longer_words_are_other_words() {
        assert!(lines("#![deny(unsafe_code)] fn not_unsafe() {} fn r#unsafe() {}").is_empty());
    }

    #[test]
    fn comments_are_not_code() {
        assert!(lines("// unsafe\n/// unsafe\n/* unsafe /* unsafe */ unsafe */").is_empty());
        assert_eq!(lines("/* a\n/* b */\n*/ unsafe {}"), [3]);
    }

    #[test]
    fn literals_are_not_code() {
        assert!(lines(r##"("unsafe", "\" unsafe", b"unsafe", r"unsafe \", r#"" unsafe "# , br"unsafe")"##).is_empty());
    }

    #[test]
    fn code_after_a_literal_is_code() {
        for literal in [r#""\\""#, r#"r"\""#, "r##\"\"#\"##", "'\"'", r"'\''", r"b'\\'", "'é'", "/**/", "r", "1..2"] {
            assert_eq!(lines(&format!("{literal} unsafe")), [1], "{literal}");
        }
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        assert_eq!(lines("fn a<'a, 'b>(x: &'a str) {}\nunsafe fn b() { 'c' }"), [2]);
    }

    #[test]
    fn what_does_not_end_ends_with_the_text() {
        for open in ["/* unsafe", "\"unsafe", "r#\"unsafe\"", "'\\unsafe", "// unsafe", "\"\\"] {
            assert!(lines(open).is_empty(), "{open}");
        }
    }
}
