//! What the library says on standard error: single lines, each written by one call, from memory on the stack.

#![expect(unsafe_code, reason = "writes without the standard library's locks, and keeps errno")]

use std::fmt::{self, Write};

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
    let kept = Errno::keep();
    let mut line = Line { text: [0; 512], length: 0 };
    let _ = write!(line, "lowtide: {words}");
    line.text[line.length] = b'\n';
    // SAFETY: the bytes are there; where nobody listens, that is all right. The C library's own function would end a thread
    // here that is to be cancelled.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.text.as_ptr(), line.length + 1) };
    drop(kept);
}

/// Says one line and ends the program as glibc does when its heap is broken.
pub(crate) fn give_up(words: fmt::Arguments<'_>) -> ! {
    say(words);
    // SAFETY: always.
    unsafe { libc::abort() }
}

/// The value of `errno`, put back when this is dropped.
#[derive(Debug)]
pub(crate) struct Errno(i32);

impl Errno {
    /// Remembers it.
    #[inline]
    pub(crate) fn keep() -> Self {
        // SAFETY: the address of this thread's own.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    #[inline]
    fn drop(&mut self) {
        set_errno(self.0);
    }
}

/// Sets `errno`.
#[inline]
pub(crate) fn set_errno(value: i32) {
    // SAFETY: the address of this thread's own.
    unsafe { *libc::__errno_location() = value };
}
