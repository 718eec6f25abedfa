//! Which pages of this process hold something, by `PAGEMAP_SCAN` of Linux 6.7. Nothing is allocated, `errno` stays, and
//! no thread is cancelled here.

#![expect(unsafe_code, reason = "asks the system by a record of its own")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// The question to `PAGEMAP_SCAN`.
#[repr(C)]
#[derive(Default)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    room: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    reported: u64,
}

/// A part of the answer: pages that are alike.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    kinds: u64,
}

/// The call itself: how many regions it has filled.
struct Scan<'a>(&'a mut Question);

// SAFETY: the system reads and writes the question, which says its own size, and as many regions as there is room for.
unsafe impl Ioctl for Scan<'_> {
    type Output = usize;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Question>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(count: IoctlOutput, _: *mut c_void) -> io::Result<usize> {
        usize::try_from(count).map_err(|_| io::Errno::INVAL)
    }
}

/// What the system knows of this process's pages, opened to be asked.
#[derive(Debug)]
pub struct Pagemap {
    file: ManuallyDrop<OwnedFd>,
}

impl Pagemap {
    /// Opens it; none where the system refuses.
    pub fn open() -> Option<Self> {
        let file = openat(CWD, c"/proc/self/pagemap", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self { file: ManuallyDrop::new(file) })
    }

    /// Calls `each` with the parts of a range of whole pages that hold something, in order: others are zero. Says how far
    /// it came, which is less than the end where the system does not say more.
    pub fn each_resident(&self, range: Range<u64>, mut each: impl FnMut(Range<u64>)) -> u64 {
        // They lie on a stack that may be small.
        let mut regions = [Region::default(); 64];
        let mut from = range.start;
        while from < range.end {
            let mut question = Question {
                size: size_of::<Question>() as u64,
                start: from,
                end: range.end,
                regions: regions.as_mut_ptr() as u64,
                room: regions.len() as u64,
                inverted: ZERO,
                all_of: ZERO,
                any_of: PRESENT | SWAPPED,
                reported: PRESENT | SWAPPED,
                ..Question::default()
            };
            // SAFETY: the regions live through the call, and the record says how many there are.
            let count = unsafe { ioctl(&*self.file, Scan(&mut question)) };
            let answer = count.ok().and_then(|count| regions.get(..count));
            let Some(answer) = answer.filter(|_| question.walk_end > from) else { break };
            for region in answer {
                each(region.start..region.end);
            }
            from = question.walk_end;
        }
        from
    }
}

impl Drop for Pagemap {
    fn drop(&mut self) {
        // SAFETY: it was opened by this and is closed once; the C library's own function would end a thread that is to be
        // cancelled.
        unsafe { rustix::io::close(self.file.as_raw_fd()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;
    use crate::system::pages;
    use lowtide_core::Bytes;

    #[test]
    fn the_number_of_the_call_is_the_systems() {
        assert_eq!(opcode::read_write::<Question>(b'f', 16), 0xc060_6610);
    }

    #[test]
    fn pages_that_were_written_to_are_found_among_those_that_were_not() {
        let page = pages::page_size().get();
        let start = pages::reserve(Bytes::new(8 * page), Bytes::new(page)).unwrap();
        let span = Span::new(start, Bytes::new(8 * page));
        // SAFETY: the addresses were reserved just now and are nobody else's; the page that is written to was opened.
        unsafe {
            pages::open(span).unwrap();
            pages::pointer(span).cast::<u8>().add(3 * page as usize).write_volatile(1);
        }
        let mut found = Vec::new();
        let map = Pagemap::open().unwrap();
        let end = map.each_resident(start..span.end(), |part| found.push((part.start, part.end)));
        // SAFETY: as above.
        unsafe { pages::release(span).unwrap() };
        if end == start {
            return lowtide_testing::skip("the system does not say which pages hold something: it is older than 6.7");
        }
        assert_eq!((end, found), (span.end(), vec![(start + 3 * page, start + 4 * page)]));
    }
}
