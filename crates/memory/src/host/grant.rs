//! What the system grants of what was asked, found by trying it on one page. It is settled once, so that a source's
//! granularity never changes.

#![expect(unsafe_code, reason = "tries calls on a page of its own")]

use lowtide_core::Bytes;

use crate::error::Error;
use crate::host::fallbacks::Fallbacks;
use crate::host::options::{HostOptions, Pages, Placement};
use crate::source::Span;
use crate::system::files::huge_pages::{HugePages, Mode};
use crate::system::pages::Joining;
use crate::system::{numa, pages};

const HUGE: Bytes = Bytes::new(2 << 20);

#[derive(Debug)]
pub(super) struct Grant {
    pub(super) pages: Pages,
    pub(super) placement: Placement,
    pub(super) locked: bool,
    pub(super) prefault: bool,
    pub(super) relocates: bool,
    pub(super) granularity: Bytes,
    pub(super) alignment: Bytes,
    /// What the system is asked about joining pages.
    pub(super) joining: Option<Joining>,
}

impl Grant {
    pub(super) fn of(options: &HostOptions, fallbacks: &Fallbacks) -> Self {
        // Where the system does not say, it cannot.
        let mode = HugePages::of_machine().mode().unwrap_or(Mode::Off);
        let pages = grant_pages(options.pages, mode, fallbacks);
        let placement = match try_on_a_page(|page| {
            // SAFETY: the page was made for this and nobody else knows of it.
            unsafe { numa::place(page, &options.placement) }
        }) {
            Ok(()) => options.placement.clone(),
            Err(error) => {
                fallbacks.placement_refused(&options.placement, &error);
                Placement::Anywhere
            }
        };
        let locked = options.locked && {
            // SAFETY: as above.
            let tried = try_on_a_page(|page| unsafe { pages::lock(page) });
            tried.inspect_err(|error| fallbacks.lock_refused(error)).is_ok()
        };
        let granularity = pages.exponent().map_or_else(pages::page_size, |exponent| Bytes::new(1 << exponent));
        Self {
            placement,
            locked,
            prefault: options.prefault,
            // A huge page cannot leave its addresses without a moment in which someone else could take them.
            relocates: pages.exponent().is_none() && pages::can_relocate(),
            granularity,
            alignment: if pages == Pages::Base { granularity } else { granularity.max(HUGE) },
            joining: match pages {
                Pages::Base if mode == Mode::Always => Some(Joining::Unwanted),
                Pages::Base => None,
                _ if mode == Mode::Off => None,
                _ => Some(Joining::Wanted),
            },
            pages,
        }
    }

    pub(super) fn name(&self) -> String {
        let place = match &self.placement {
            Placement::Anywhere => String::new(),
            chosen => format!(", {chosen}"),
        };
        let locked = if self.locked { ", locked" } else { "" };
        format!("host memory, {}{place}{locked}", self.pages)
    }
}

/// The next best after what is refused: huge pages of 1 GiB, of 2 MiB, transparent ones, base pages.
fn grant_pages(asked: Pages, mode: Mode, fallbacks: &Fallbacks) -> Pages {
    let mut refused = Vec::new();
    let mut taken = asked;
    while let Some((why, next)) = refusal(taken, mode) {
        refused.push((taken, why));
        taken = next;
    }
    for (pages, why) in refused {
        fallbacks.pages_refused(pages, &why, taken);
    }
    taken
}

/// Why pages are not to be had, and what is the next best.
fn refusal(asked: Pages, mode: Mode) -> Option<(String, Pages)> {
    match asked {
        Pages::Transparent if mode == Mode::Off => Some(("the system has them switched off".to_owned(), Pages::Base)),
        Pages::Base | Pages::Transparent => None,
        Pages::Huge2M | Pages::Huge1G => {
            let why = match try_huge(asked).err()? {
                Error::OutOfMemory { .. } => "the system's pool of them is empty".to_owned(),
                Error::Refused { why, .. } => why,
                other => other.to_string(),
            };
            Some((why, if asked == Pages::Huge1G { Pages::Huge2M } else { Pages::Transparent }))
        }
    }
}

fn try_huge(pages: Pages) -> Result<(), Error> {
    let Some(exponent) = pages.exponent() else { return Ok(()) };
    let size = Bytes::new(1 << exponent);
    let span = Span::new(pages::reserve(size, size)?, size);
    // SAFETY: the addresses were reserved just now and nobody else knows of them. The page is never touched.
    unsafe {
        let granted = pages::map_huge(span, exponent);
        pages::release(span)?;
        granted
    }
}

fn try_on_a_page(attempt: impl FnOnce(Span) -> Result<(), Error>) -> Result<(), Error> {
    let size = pages::page_size();
    let span = Span::new(pages::reserve(size, size)?, size);
    // SAFETY: the page was reserved just now and nobody else knows of it.
    unsafe {
        let result = pages::open(span).and_then(|()| attempt(span));
        pages::release(span)?;
        result
    }
}
