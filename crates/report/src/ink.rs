//! What text for a terminal is written with, and how wide it is.

/// What a view is drawn with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// Box and block characters, signs and whatever letters names have.
    Unicode,
    /// Plain ASCII characters.
    Ascii,
}

/// The width of everything drawn.
pub(crate) const WIDTH: usize = 80;

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

    /// Parts of a headline, one behind the other with a dot between, on as many lines as that takes.
    pub fn headline(self, parts: &[String]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            let part = self.written(part);
            match lines.last_mut() {
                Some(line) if line.chars().count() + 3 + part.chars().count() <= WIDTH => {
                    line.push_str(&self.written(" · "));
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_broken_between_its_parts() {
        let parts: Vec<String> = (0..9).map(|n| format!("part number {n} → ×")).collect();
        for ink in [Ink::Unicode, Ink::Ascii] {
            let lines = ink.headline(&parts);
            assert_eq!(lines.len(), 3);
            assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
            assert_eq!(lines.iter().all(|line| line.is_ascii()), ink == Ink::Ascii);
        }
        assert_eq!(Ink::Ascii.headline(&["a".into(), "b".into()]), ["a | b"]);
    }
}
