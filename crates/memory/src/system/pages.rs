//! The system's calls for pages, each with its error. Addresses are reserved without access or memory; whatever is later
//! put there leaves by mapping the empty reservation over it, so that nobody else can take the addresses in between.

#![expect(unsafe_code, reason = "calls the system's memory functions")]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

use lowtide_core::Bytes;

use crate::error::Error;
use crate::source::Span;

const EMPTY: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// The size of a page of this machine.
pub(crate) fn page_size() -> Bytes {
    // SAFETY: the call reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Bytes::new(u64::try_from(size).unwrap_or(4096))
}

/// The last error of the system as one of ours; `asked` makes a lack of memory one.
pub(crate) fn refusal(call: &'static str, asked: Option<Bytes>) -> Error {
    let error = io::Error::last_os_error();
    match (error.raw_os_error(), asked) {
        (Some(libc::ENOMEM), Some(asked)) => Error::OutOfMemory { asked },
        _ => Error::Refused { call, why: error.to_string() },
    }
}

/// Addresses that nobody can use yet, aligned to the power of two `align`.
pub(crate) fn reserve(bytes: Bytes, align: Bytes) -> Result<u64, Error> {
    let none = || Error::OutOfAddresses { asked: bytes };
    let spare = align.get().saturating_sub(page_size().get());
    let whole = bytes.checked_add(Bytes::new(spare)).ok_or_else(none)?;
    let length = usize::try_from(whole.get()).map_err(|_| none())?;
    // SAFETY: the system chooses addresses that are not in use.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, EMPTY, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(match refusal("mmap", Some(bytes)) {
            Error::OutOfMemory { asked } => Error::OutOfAddresses { asked },
            other => other,
        });
    }
    let start = start as u64;
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
    match unsafe { libc::munmap(pointer(span), length(span)) } {
        0 => Ok(()),
        _ => Err(refusal("munmap", None)),
    }
}

/// Gives back what is under the addresses and keeps them reserved.
///
/// # Safety
/// The caller owns the addresses and nobody uses what is under them any more.
pub(crate) unsafe fn vacate(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    let start = unsafe { libc::mmap(pointer(span), length(span), libc::PROT_NONE, EMPTY | libc::MAP_FIXED, -1, 0) };
    if start == libc::MAP_FAILED { Err(refusal("mmap", Some(span.bytes))) } else { Ok(()) }
}

/// Shows a part of a file at the addresses, to read and write.
///
/// # Safety
/// The caller owns the addresses and nothing is under them.
pub(crate) unsafe fn map_file(file: RawFd, offset: u64, span: Span) -> Result<(), Error> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: the caller's.
    let start = unsafe { libc::mmap(pointer(span), length(span), access, flags, file, offset as libc::off_t) };
    if start == libc::MAP_FAILED { Err(refusal("mmap", Some(span.bytes))) } else { Ok(()) }
}

/// Lets the addresses be read and written; the system puts memory there when they are first touched.
///
/// # Safety
/// The caller owns the addresses and nothing is under them.
pub(crate) unsafe fn open(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    match unsafe { libc::mprotect(pointer(span), length(span), libc::PROT_READ | libc::PROT_WRITE) } {
        0 => Ok(()),
        _ => Err(refusal("mprotect", Some(span.bytes))),
    }
}

/// Tells the system how the memory is used. Advice that discards contents is not for this function.
///
/// # Safety
/// The caller owns the addresses.
pub(crate) unsafe fn advise(span: Span, advice: c_int) -> Result<(), Error> {
    // SAFETY: the caller's.
    match unsafe { libc::madvise(pointer(span), length(span), advice) } {
        0 => Ok(()),
        _ => Err(refusal("madvise", Some(span.bytes))),
    }
}

/// Keeps the memory from being paged out.
///
/// # Safety
/// The caller owns the addresses.
pub(crate) unsafe fn lock(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    match unsafe { libc::mlock(pointer(span), length(span)) } {
        0 => Ok(()),
        _ => Err(refusal("mlock", None)),
    }
}

/// Puts memory under every page now.
///
/// # Safety
/// The caller owns the addresses, which can be read and written, and nobody else uses the memory.
pub(crate) unsafe fn populate(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    if unsafe { libc::madvise(pointer(span), length(span), libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Huge pages of a node that has none left are reported as a bad address.
        Some(libc::ENOMEM | libc::EFAULT) => Err(Error::OutOfMemory { asked: span.bytes }),
        Some(libc::EINVAL) => {
            // Kernels before 5.14 do not know the advice.
            for page in (span.start..span.end()).step_by(page_size().get() as usize) {
                let byte = ptr::with_exposed_provenance_mut::<u8>(page as usize);
                // SAFETY: the byte is in the caller's span.
                unsafe { byte.write_volatile(byte.read_volatile()) };
            }
            Ok(())
        }
        _ => Err(Error::Refused { call: "madvise", why: error.to_string() }),
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
pub(crate) unsafe fn map_huge(span: Span, exponent: c_int) -> Result<(), Error> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let huge = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | exponent << libc::MAP_HUGE_SHIFT;
    // The pages are taken elsewhere first: a refusal at the addresses themselves would leave a hole in the reservation.
    // SAFETY: the system chooses addresses that are not in use.
    let elsewhere = unsafe { libc::mmap(ptr::null_mut(), length(span), access, huge, -1, 0) };
    if elsewhere == libc::MAP_FAILED {
        return Err(refusal("mmap", Some(span.bytes)));
    }
    let elsewhere = Span::new(elsewhere as u64, span.bytes);
    // SAFETY: both ranges are the caller's, and `elsewhere` is not known to anybody.
    if unsafe { remap(elsewhere, span, 0) }.is_ok() {
        return Ok(());
    }
    // Kernels before 5.16 cannot move huge pages.
    // SAFETY: as above; the pages that this gives back are the ones that are taken next.
    unsafe { release(elsewhere)? };
    // SAFETY: the caller's.
    let start = unsafe { libc::mmap(pointer(span), length(span), access, huge | libc::MAP_FIXED, -1, 0) };
    if start == libc::MAP_FAILED {
        let error = refusal("mmap", Some(span.bytes));
        // SAFETY: the caller's.
        unsafe { vacate(span)? };
        return Err(error);
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
        remap(from, to, libc::MREMAP_DONTUNMAP)?;
        vacate(from)
    }
}

/// Gives back what is under the addresses, which stay as they are; touched again, they are zero.
///
/// # Safety
/// The caller owns the addresses and nobody uses what is under them any more.
pub(crate) unsafe fn discard(span: Span) -> Result<(), Error> {
    // SAFETY: the caller's.
    match unsafe { libc::madvise(pointer(span), length(span), libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(refusal("madvise", None)),
    }
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

/// # Safety
/// The caller owns both ranges; nothing is under `to`.
unsafe fn remap(from: Span, to: Span, flags: c_int) -> Result<(), Error> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | flags;
    // SAFETY: the caller's.
    let start = unsafe { libc::mremap(pointer(from), length(from), length(to), flags, pointer(to)) };
    if start != libc::MAP_FAILED {
        return Ok(());
    }
    let error = refusal("mremap", Some(from.bytes));
    // The call may have cleared the target before it failed: a hole there is filled, anything else left alone.
    let fill = EMPTY | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: this never replaces a mapping.
    let filled = unsafe { libc::mmap(pointer(to), length(to), libc::PROT_NONE, fill, -1, 0) };
    if filled != libc::MAP_FAILED && filled != pointer(to) {
        // SAFETY: a kernel that does not know the flag chose other addresses, which nobody knows of.
        unsafe { release(Span::new(filled as u64, to.bytes))? };
    }
    Err(error)
}

pub(crate) fn pointer(span: Span) -> *mut c_void {
    ptr::with_exposed_provenance_mut(span.start as usize)
}

pub(crate) fn length(span: Span) -> usize {
    span.bytes.get() as usize
}
