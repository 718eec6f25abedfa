//! The machine's own memory: base, transparent or explicit huge pages, on chosen NUMA nodes, locked, touched in advance.
//! What the system does not grant is replaced by the next best, and said once.

#![expect(unsafe_code, reason = "puts pages under addresses")]

mod expanse;
mod fallbacks;
mod grant;
mod options;

use lowtide_core::Bytes;

use crate::error::Error;
use crate::mapper::{Backing, Mapper, NoQueue, source_by_mapper};
use crate::source::{Description, Span};
use crate::system::{numa, pages};

pub use expanse::Expanse;
use fallbacks::Fallbacks;
use grant::Grant;
pub use options::{HostOptions, Pages, Placement};

/// Pages of this machine. Its marks pass at once.
#[derive(Debug)]
pub struct Host {
    mapper: Mapper<HostPages>,
}

impl Host {
    /// Tries out what the system grants of `options`; the granularity is settled then. A source always comes of it: what
    /// is refused, now or at a later commit, is in [`Description::fallbacks`].
    pub fn new(options: &HostOptions) -> Self {
        Self { mapper: Mapper::new(HostPages::new(options)) }
    }
}

source_by_mapper!(Host);

/// How pages are put under addresses.
#[derive(Debug)]
pub(crate) struct HostPages {
    grant: Grant,
    fallbacks: Fallbacks,
}

impl HostPages {
    pub(crate) fn new(options: &HostOptions) -> Self {
        let fallbacks = Fallbacks::default();
        let grant = Grant::of(options, &fallbacks);
        Self { grant, fallbacks }
    }

    /// What spans are multiples of.
    pub(crate) fn granularity(&self) -> Bytes {
        self.grant.granularity
    }

    /// What ranges begin at multiples of.
    pub(crate) fn alignment(&self) -> Bytes {
        self.grant.alignment
    }

    /// What was asked for and not granted.
    pub(crate) fn fallbacks(&self) -> Vec<String> {
        self.fallbacks.read()
    }

    /// Puts pages under a vacant span; where it fails, some may be there.
    pub(crate) fn fill(&self, span: Span) -> Result<(), Error> {
        if let Some(exponent) = self.grant.pages.exponent() {
            match self.fill_huge(span, exponent) {
                Err(Error::OutOfMemory { .. }) => {
                    self.fallbacks.huge_pages_ran_out(self.grant.pages);
                    // SAFETY: the mapper's own vacant span, in which a failed attempt may have left pages.
                    unsafe { pages::vacate(span)? };
                }
                other => return other,
            }
        }
        // SAFETY: the mapper's own vacant span.
        unsafe { pages::open(span)? };
        if let Some(joining) = self.grant.joining {
            // SAFETY: as above.
            if let Err(error) = unsafe { pages::advise(span, joining) } {
                self.fallbacks.advice_refused(&error);
            }
        }
        self.place(span);
        self.populate(span, self.grant.prefault)
    }

    /// Explicit huge pages. On chosen nodes they are touched at once: when a node runs out of them later, the system ends
    /// the program.
    fn fill_huge(&self, span: Span, exponent: u32) -> Result<(), Error> {
        // SAFETY: the mapper's own vacant span.
        unsafe { pages::map_huge(span, exponent)? };
        self.place(span);
        let chosen = matches!(self.grant.placement, Placement::Bound(_));
        self.populate(span, self.grant.prefault || chosen)
    }

    fn place(&self, span: Span) {
        // SAFETY: the mapper's own span, into which pages were put just now.
        if let Err(error) = unsafe { numa::place(span, &self.grant.placement) } {
            self.fallbacks.placement_refused(&self.grant.placement, &error);
        }
    }

    fn populate(&self, span: Span, prefault: bool) -> Result<(), Error> {
        if self.grant.locked {
            // SAFETY: the mapper's own span, which can be read and written.
            match unsafe { pages::lock(span) } {
                Ok(()) => return Ok(()),
                Err(error) => self.fallbacks.lock_refused(&error),
            }
        }
        if prefault {
            // SAFETY: as above, and nobody else knows of the memory yet.
            unsafe { pages::populate(span)? };
        }
        Ok(())
    }
}

impl Backing for HostPages {
    type Handle = ();
    type Queue = NoQueue;

    fn describe(&self) -> Description {
        Description {
            name: self.grant.name(),
            granularity: self.grant.granularity,
            capacity: pages::physical_memory(),
            aliases: false,
            relocates: self.grant.relocates,
            host_visible: true,
            queued: false,
            fallbacks: self.fallbacks.read(),
        }
    }

    fn queue(&self) -> &NoQueue {
        &NoQueue
    }

    fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        pages::reserve(bytes, self.grant.alignment)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        // SAFETY: the mapper releases only what `reserve` gave, once.
        unsafe { pages::release(span) }
    }

    fn create(&self, _bytes: Bytes) -> Result<(), Error> {
        Ok(())
    }

    fn destroy(&self, (): (), _bytes: Bytes) -> Result<(), Error> {
        Ok(())
    }

    fn map(&self, (): (), span: Span) -> Result<(), Error> {
        self.fill(span).inspect_err(|_| {
            // SAFETY: the mapper's own span, which nobody knows to have memory.
            let _ = unsafe { pages::vacate(span) };
        })
    }

    fn unmap(&self, (): (), span: Span) -> Result<(), Error> {
        // SAFETY: the mapper unmaps only what it mapped.
        unsafe { pages::vacate(span) }
    }

    fn relocate(&self, from: Span, to: Span) -> Option<Result<(), Error>> {
        // SAFETY: the mapper moves only what it mapped, to its own vacant addresses.
        Some(unsafe { pages::relocate(from, to) })
    }
}
