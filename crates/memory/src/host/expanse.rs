//! One long range of host addresses. It is opened piece by piece; pages that are discarded come back by themselves, and
//! empty, when they are touched again.

#![expect(unsafe_code, reason = "owns a range of addresses and the pages under it")]

use lowtide_core::Bytes;

use crate::error::Error;
use crate::host::{HostOptions, HostPages};
use crate::source::Span;
use crate::system::pages;

/// Where the system grants less, a range is not worth having.
const LEAST: Bytes = Bytes::new(64 << 20);

/// Begins of ranges are multiples of this, whatever the pages are.
const ALIGN: Bytes = Bytes::new(2 << 20);

/// A range of addresses with the pages under it. It is not given back when this is dropped: whoever has it, has it for
/// the program's life, less what is [cut](Self::cut) off.
#[derive(Debug)]
pub struct Expanse {
    span: Span,
    pages: HostPages,
}

impl Expanse {
    /// Takes `bytes` of addresses without memory, or less where the system has not so many to give.
    pub fn new(bytes: Bytes, options: &HostOptions) -> Result<Self, Error> {
        let pages = HostPages::new(options);
        let align = pages.alignment().max(ALIGN);
        let mut asked = bytes.get().next_multiple_of(align.get());
        loop {
            match pages::reserve(Bytes::new(asked), align) {
                Ok(start) => return Ok(Self { span: Span::new(start, Bytes::new(asked)), pages }),
                Err(error) if asked / 2 < LEAST.get() => return Err(error),
                Err(_) => asked = (asked / 2).next_multiple_of(align.get()),
            }
        }
    }

    /// All of it.
    pub fn span(&self) -> Span {
        self.span
    }

    /// What [`open`](Self::open) and [`discard`](Self::discard) take multiples of.
    pub fn page(&self) -> Bytes {
        self.pages.granularity()
    }

    /// Lets a part be used that was not opened before.
    pub fn open(&self, part: Span) -> Result<(), Error> {
        self.check(part)?;
        self.pages.fill(part)
    }

    /// Takes a part that is open out of use for good: what was in it is lost, and its addresses stay reserved.
    pub fn close(&self, part: Span) -> Result<(), Error> {
        self.check(part)?;
        // SAFETY: the part is in the range, which this owns, and the caller has no use for what is in it.
        unsafe { pages::vacate(part) }
    }

    /// Gives the addresses from `end` on back to the system: others may have them from now on.
    pub fn cut(&mut self, end: u64) -> Result<(), Error> {
        let rest = Span::new(end, Bytes::new(self.span.end().saturating_sub(end)));
        self.check(rest)?;
        if rest.bytes > Bytes::ZERO {
            self.span = Span::new(self.span.start, Bytes::new(end - self.span.start));
            // SAFETY: the addresses are in the range, which this owned.
            unsafe { pages::release(rest)? };
        }
        Ok(())
    }

    /// Discards the pages of a part that is open. What was in them is lost; touched again, they are zero.
    pub fn discard(&self, part: Span) -> Result<(), Error> {
        self.check(part)?;
        // SAFETY: the part is in the range, which this owns.
        unsafe { pages::discard(part) }
    }

    /// Lets the system take the pages of a part that is open, when it needs memory; a page that is written to again is the program's. What was in the
    /// pages may be lost.
    pub fn offer(&self, part: Span) -> Result<(), Error> {
        self.check(part)?;
        // SAFETY: the part is in the range, which this owns, and the caller has no use for what is in it.
        unsafe { pages::offer(part) }
    }

    /// What was asked of the system and not granted, a sentence each.
    pub fn fallbacks(&self) -> Vec<String> {
        self.pages.fallbacks()
    }

    fn check(&self, part: Span) -> Result<(), Error> {
        let page = self.page().get();
        let is_whole = part.start.is_multiple_of(page) && part.bytes.get().is_multiple_of(page);
        if is_whole && part.start >= self.span.start && part.end() <= self.span.end() {
            return Ok(());
        }
        Err(Error::BadSpan { span: part, why: "it is not made of whole pages of the range" })
    }
}
