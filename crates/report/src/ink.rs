//! What text for a terminal is written with, and how wide it is.

/// What a view is drawn with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// Box and block characters, signs and whatever letters names have.
    Unicode,
    /// Plain ASCII characters.
    Ascii,
}

impl Ink {
    /// `text` as it can be written: in ASCII, signs that have an equal become that, and other letters `?`.
    pub fn written(self, text: &str) -> String {
        if self == Self::Unicode || text.is_ascii() {
            return text.to_owned();
        }
        let letter = |letter: char| match letter {
            '−' => '-',
            '·' => '|',
            '×' => 'x',
            '…' => '~',
            '→' => '>',
            'µ' => 'u',
            letter if letter.is_ascii() => letter,
            _ => '?',
        };
        text.chars().map(letter).collect()
    }
}

/// What text is drawn on: with which characters, and how wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sheet {
    /// The characters.
    pub ink: Ink,
    /// The characters of a line.
    pub width: usize,
}

impl Sheet {
    /// How wide text is where nobody says otherwise.
    pub const USUAL: usize = 80;

    /// Nothing is drawn narrower than this.
    pub const NARROWEST: usize = 40;

    /// As wide as `width` says, within reason; the usual width where that is not known.
    pub fn new(ink: Ink, width: Option<usize>) -> Self {
        const WIDEST: usize = 160;
        Self { ink, width: width.map_or(Self::USUAL, |width| width.clamp(Self::NARROWEST, WIDEST)) }
    }

    /// As [`Ink::written`].
    pub fn written(self, text: &str) -> String {
        self.ink.written(text)
    }

    /// Parts of a headline, one behind the other with a dot between, on as many lines as that takes.
    pub fn headline(self, parts: &[String]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            let part = self.written(part);
            match lines.last_mut() {
                Some(line) if line.chars().count() + 3 + part.chars().count() <= self.width => {
                    line.push_str(&self.written(" · "));
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
        lines
    }

    /// `text` broken between words, `first` before the first line and `others` before the rest; a word that is too long
    /// gets a line of its own.
    pub fn wrapped(self, text: &str, first: &str, others: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = first.to_owned();
        let mut is_empty = true;
        for word in text.split(' ') {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > self.width {
                lines.push(std::mem::replace(&mut line, others.to_owned()));
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        lines.push(line);
        lines
    }

    /// `line` without what does not fit.
    pub(crate) fn cut(self, line: &str) -> String {
        if line.chars().count() <= self.width {
            return line.to_owned();
        }
        line.chars().take(self.width - 1).chain(self.written("…").chars()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_broken_between_its_parts() {
        let parts: Vec<String> = (0..9).map(|n| format!("part number {n} → ×")).collect();
        for ink in [Ink::Unicode, Ink::Ascii] {
            let sheet = Sheet::new(ink, None);
            let lines = sheet.headline(&parts);
            assert_eq!(lines.len(), 3);
            assert!(lines.iter().all(|line| line.chars().count() <= sheet.width));
            assert_eq!(lines.iter().all(|line| line.is_ascii()), ink == Ink::Ascii);
        }
        assert_eq!(Sheet::new(Ink::Ascii, None).headline(&["a".into(), "b".into()]), ["a | b"]);
    }

    #[test]
    fn a_sheet_is_as_wide_as_its_terminal_within_reason() {
        let width = |width| Sheet::new(Ink::Unicode, width).width;
        assert_eq!([None, Some(60), Some(3), Some(9999)].map(width), [80, 60, 40, 160]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        let text = "word ".repeat(40);
        let sheet = Sheet::new(Ink::Unicode, Some(60));
        let lines = sheet.wrapped(text.trim_end(), " 1. ", "    ");
        assert!(lines.iter().all(|line| line.chars().count() <= 60));
        assert_eq!(lines.iter().map(|line| line.matches("word").count()).sum::<usize>(), 40);
        assert!(lines[1].starts_with("    word"));
        let long = "x".repeat(100);
        assert_eq!(sheet.wrapped(&format!("a {long} b"), "", ""), ["a", &long, "b"]);
    }
}
