//! What the library says on standard error: single lines, each written by one call, from memory on the stack.

use std::fmt::{self, Write};

use crate::system::process;

struct Line {
    text: [u8; 512],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.len() - 1 - self.length;
        let fits = (0..=text.len().min(room)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.text[self.length..self.length + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

/// Says one line, `lowtide: ` and then `words`.
pub(crate) fn say(words: fmt::Arguments<'_>) {
    let mut line = Line { text: [0; 512], length: 0 };
    let _ = write!(line, "lowtide: {words}");
    line.text[line.length] = b'\n';
    process::write_error(&line.text[..=line.length]);
}

/// Says one line and ends the program as glibc does when its heap is broken.
pub(crate) fn give_up(words: fmt::Arguments<'_>) -> ! {
    say(words);
    process::abort()
}
