//! The system's calls for pages, each with its error. Addresses are reserved without access or memory; whatever is later
//! put there leaves by mapping the empty reservation over it, so that nobody else can take the addresses in between.

#![expect(unsafe_code, reason = "calls the system's memory functions")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use lowtide_core::Bytes;
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous, mprotect,
    mremap_fixed, munmap,
};

use crate::error::Error;
use crate::source::Span;

/// Addresses without access count for nothing. Once they are opened the system counts them, and refuses what it would refuse anybody.
const EMPTY: MapFlags = MapFlags::PRIVATE;
const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// The size of a page of this machine.
pub(crate) fn page_size() -> Bytes {
    // SAFETY: the call reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Bytes::new(u64::try_from(size).unwrap_or(4096))
}

/// An error of the system as one of ours; `asked` makes a lack of memory one.
fn refusal(call: &'static str, error: Errno, asked: Option<Bytes>) -> Error {
    match (error, asked) {
        (Errno::NOMEM, Some(asked)) => Error::OutOfMemory { asked },
        _ => Error::Refused { call, why: io::Error::from(error).to_string() },
    }
}

/// Addresses that nobody can use yet, aligned to the power of two `align`.
pub(crate) fn reserve(bytes: Bytes, align: Bytes) -> Result<u64, Error> {
    let none = || Error::OutOfAddresses { asked: bytes };
    let spare = align.get().saturating_sub(page_size().get());
    let whole = bytes.checked_add(Bytes::new(spare)).ok_or_else(none)?;
    let length = usize::try_from(whole.get()).map_err(|_| none())?;
    // SAFETY: the system chooses addresses that are not in use.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), EMPTY) };
    let start = start.map_err(|error| match refusal("mmap", error, Some(bytes)) {
        Error::OutOfMemory { asked } => Error::OutOfAddresses { asked },
        other => other,
    })? as u64;
    let aligned = start.next_multiple_of(align.get());
    let (head, end) = (Bytes::new(aligned - start), aligned + bytes.get());
    for cut in [Span::new(start, head), Span::new(end, Bytes::new(start + whole.get() - end))] {
        if cut.bytes > Bytes::ZERO {
            // SAFETY: both ends were mapped just now and nobody knows of them.
            unsafe { release(cut)? };
        }
    }
    Ok(aligned)
}

/// Gives addresses back to the system, and what is under them.
///
/// # Safety
/// The caller owns the addresses and nobody uses them any more.
pub(crate) unsafe fn release(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    unsafe { munmap(pointer(span), length(span)) }.map_err(|error| refusal("munmap", error, None))
}

/// Gives back what is under the addresses and keeps them reserved.
///
/// # Safety
/// The caller owns the addresses and nobody uses what is under them any more.
pub(crate) unsafe fn vacate(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    let start = unsafe { mmap_anonymous(pointer(span), length(span), ProtFlags::empty(), EMPTY | MapFlags::FIXED) };
    start.map(|_| ()).map_err(|error| refusal("mmap", error, Some(span.bytes)))
}

/// Shows a part of a file at the addresses, to read and write.
///
/// # Safety
/// The caller owns the addresses and nothing is under them.
pub(crate) unsafe fn map_file(file: BorrowedFd<'_>, offset: u64, span: Span) -> Result<(), Error> {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: the caller's.
    let start = unsafe { mmap(pointer(span), length(span), ACCESS, flags, file, offset) };
    start.map(|_| ()).map_err(|error| refusal("mmap", error, Some(span.bytes)))
}

/// Lets the addresses be read and written; the system puts memory there when they are first touched.
///
/// # Safety
/// The caller owns the addresses and nothing is under them.
pub(crate) unsafe fn open(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    let opened = unsafe { mprotect(pointer(span), length(span), MprotectFlags::READ | MprotectFlags::WRITE) };
    opened.map_err(|error| refusal("mprotect", error, Some(span.bytes)))
}

/// Whether the system is to join pages to huge ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joining {
    Wanted,
    Unwanted,
}

/// Says whether the pages of the memory are to be joined.
///
/// # Safety
/// The caller owns the addresses.
pub(crate) unsafe fn advise(span: Span, joining: Joining) -> Result<(), Error> {
    let advice = match joining {
        Joining::Wanted => Advice::LinuxHugepage,
        Joining::Unwanted => Advice::LinuxNoHugepage,
    };
    // SAFETY: the caller's; what is in the memory stays.
    let advised = unsafe { madvise(pointer(span), length(span), advice) };
    advised.map_err(|error| refusal("madvise", error, Some(span.bytes)))
}

/// Keeps the memory from being paged out.
///
/// # Safety
/// The caller owns the addresses.
pub(crate) unsafe fn lock(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    unsafe { mlock(pointer(span), length(span)) }.map_err(|error| refusal("mlock", error, None))
}

/// Puts memory under every page now.
///
/// # Safety
/// The caller owns the addresses, which can be read and written, and nobody else uses the memory.
pub(crate) unsafe fn populate(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    match unsafe { madvise(pointer(span), length(span), Advice::LinuxPopulateWrite) } {
        Ok(()) => Ok(()),
        // Huge pages of a node that has none left are reported as a bad address.
        Err(Errno::NOMEM | Errno::FAULT) => Err(Error::OutOfMemory { asked: span.bytes }),
        Err(Errno::INVAL) => {
            // Kernels before 5.14 do not know the advice.
            for page in (span.start..span.end()).step_by(page_size().get() as usize) {
                let byte = ptr::with_exposed_provenance_mut::<u8>(page as usize);
                // SAFETY: the byte is in the caller's span.
                unsafe { byte.write_volatile(byte.read_volatile()) };
            }
            Ok(())
        }
        Err(error) => Err(refusal("madvise", error, None)),
    }
}

/// The memory that this machine has.
pub(crate) fn physical_memory() -> Option<Bytes> {
    // SAFETY: the call reads a number of the system.
    let count = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(count).ok()?.checked_mul(page_size().get()).map(Bytes::new)
}

/// Puts explicit huge pages of two to the power of `exponent` bytes under the addresses. Where there are not enough,
/// the addresses stay reserved and empty.
///
/// # Safety
/// The caller owns the addresses and nothing is under them.
pub(crate) unsafe fn map_huge(span: Span, exponent: u32) -> Result<(), Error> {
    let size = MapFlags::from_bits_retain(exponent << libc::MAP_HUGE_SHIFT);
    let huge = MapFlags::PRIVATE | MapFlags::HUGETLB | size;
    // The pages are taken elsewhere first: a refusal at the addresses themselves would leave a hole in the reservation.
    // SAFETY: the system chooses addresses that are not in use.
    let elsewhere = unsafe { mmap_anonymous(ptr::null_mut(), length(span), ACCESS, huge) };
    let elsewhere = elsewhere.map_err(|error| refusal("mmap", error, Some(span.bytes)))?;
    let elsewhere = Span::new(elsewhere as u64, span.bytes);
    // SAFETY: both ranges are the caller's, and `elsewhere` is not known to anybody.
    if unsafe { remap(elsewhere, span, MremapFlags::empty()) }.is_ok() {
        return Ok(());
    }
    // Kernels before 5.16 cannot move huge pages.
    // SAFETY: as above; the pages that this gives back are the ones that are taken next.
    unsafe { release(elsewhere)? };
    // SAFETY: the caller's.
    let start = unsafe { mmap_anonymous(pointer(span), length(span), ACCESS, huge | MapFlags::FIXED) };
    if let Err(error) = start {
        // SAFETY: the caller's.
        unsafe { vacate(span)? };
        return Err(refusal("mmap", error, Some(span.bytes)));
    }
    Ok(())
}

/// Moves memory to reserved, empty addresses; its old addresses stay reserved.
///
/// # Safety
/// The caller owns both ranges; nothing is under `to`, and nobody uses the memory at `from`.
pub(crate) unsafe fn relocate(from: Span, to: Span) -> Result<(), Error> {
    // SAFETY: the caller's. The flag leaves an empty mapping at `from`, so that nobody else can take the addresses.
    unsafe {
        remap(from, to, MremapFlags::DONTUNMAP)?;
        vacate(from)
    }
}

/// Gives back what is under the addresses, which stay as they are; touched again, they are zero.
///
/// # Safety
/// The caller owns the addresses and nobody uses what is under them any more.
pub(crate) unsafe fn discard(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    let discarded = unsafe { madvise(pointer(span), length(span), Advice::LinuxDontNeed) };
    discarded.map_err(|error| refusal("madvise", error, None))
}

/// Lets the system take what is under the addresses, until something is written there; what it took is zero then.
///
/// # Safety
/// The caller owns the addresses and nobody uses what is under them any more.
pub(crate) unsafe fn offer(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    let offered = unsafe { madvise(pointer(span), length(span), Advice::LinuxFree) };
    offered.map_err(|error| refusal("madvise", error, None))
}

/// Whether the system can [`relocate`]: kernels before 5.7 cannot.
pub(crate) fn can_relocate() -> bool {
    let page = page_size();
    let Ok(start) = reserve(Bytes::new(2 * page.get()), page) else { return false };
    let (from, to) = (Span::new(start, page), Span::new(start + page.get(), page));
    // SAFETY: both pages were reserved just now and nobody knows of them.
    unsafe {
        let moved = open(from).and_then(|()| relocate(from, to)).is_ok();
        let released = release(Span::new(start, Bytes::new(2 * page.get())));
        moved && released.is_ok()
    }
}

/// Moves pages to other addresses.
///
/// # Safety
/// The caller owns both ranges; nothing is under `to`.
unsafe fn remap(from: Span, to: Span, flags: MremapFlags) -> Result<(), Error> {
    let flags = MremapFlags::MAYMOVE | flags;
    // SAFETY: the caller's.
    let moved = unsafe { mremap_fixed(pointer(from), length(from), length(to), flags, pointer(to)) };
    let Err(error) = moved else { return Ok(()) };
    // The call may have cleared the target before it failed: a hole there is filled, anything else left alone.
    let fill = EMPTY | MapFlags::FIXED_NOREPLACE;
    // SAFETY: this never replaces a mapping.
    let filled = unsafe { mmap_anonymous(pointer(to), length(to), ProtFlags::empty(), fill) };
    if let Ok(filled) = filled
        && filled != pointer(to)
    {
        // SAFETY: a kernel that does not know the flag chose other addresses, which nobody knows of.
        unsafe { release(Span::new(filled as u64, to.bytes))? };
    }
    Err(refusal("mremap", error, Some(from.bytes)))
}

pub(crate) fn pointer(span: Span) -> *mut c_void {
    ptr::with_exposed_provenance_mut(span.start as usize)
}

pub(crate) fn length(span: Span) -> usize {
    span.bytes.get() as usize
}
