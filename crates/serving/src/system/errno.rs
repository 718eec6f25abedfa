//! `errno`, which belongs to the program.

#![expect(unsafe_code, reason = "reads and writes the thread's errno")]

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
