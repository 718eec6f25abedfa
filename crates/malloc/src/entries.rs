//! What the program calls: a jump to the function that has the place in the table.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::Ordering;

use lowtide_core::preload::{Entries, Entry};

use crate::{first, opening};

/// A function of the C library by its name, its place in the table, and who has it first.
macro_rules! entries {
    ($($(#[$meta:meta])* $name:ident at $place:ident = $first:path, fn($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// As of the C library.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: what has the place is of this type; the rest is the caller's.
                unsafe {
                    transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(
                        TABLE.$place.load(Ordering::Acquire),
                    )($($argument),*)
                }
            }
        )*

        /// Who has which place.
        pub(crate) static TABLE: Entries = Entries {
            $($place: Entry::new($first as unsafe extern "C" fn($($type),*) $(-> $result)? as *mut c_void),)*
            finish: Entry::new(first::nothing as extern "C" fn() as *mut c_void),
            quick_finish: Entry::new(first::nothing as extern "C" fn() as *mut c_void),
            fork_prepare: Entry::new(first::nothing as extern "C" fn() as *mut c_void),
            fork_parent: Entry::new(first::nothing as extern "C" fn() as *mut c_void),
            fork_child: Entry::new(first::nothing as extern "C" fn() as *mut c_void),
        };
    };
}

entries! {
    /// A block of at least `bytes`.
    malloc at malloc = first::malloc, fn(bytes: usize) -> *mut c_void;
    /// Takes a block back, and leaves `errno` alone.
    free at free = first::free, fn(block: *mut c_void);
    /// A block of zeros.
    calloc at calloc = first::calloc, fn(count: usize, bytes: usize) -> *mut c_void;
    /// Makes a block larger or smaller.
    realloc at realloc = first::realloc, fn(block: *mut c_void, bytes: usize) -> *mut c_void;
    /// A block at a multiple of `align`. What is no power of two is the underlying allocator's to judge.
    memalign at memalign = first::memalign, fn(align: usize, bytes: usize) -> *mut c_void;
    /// A block at a multiple of `align`, put where `place` points to. What went wrong is returned; `errno` is left alone.
    posix_memalign at posix_memalign = first::posix_memalign, fn(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
    /// A block at a multiple of `align`. What is no power of two is the underlying allocator's to judge: versions of glibc differ.
    aligned_alloc at aligned_alloc = first::aligned_alloc, fn(align: usize, bytes: usize) -> *mut c_void;
    /// A block at the beginning of a page.
    valloc at valloc = first::valloc, fn(bytes: usize) -> *mut c_void;
    /// Whole pages.
    pvalloc at pvalloc = first::pvalloc, fn(bytes: usize) -> *mut c_void;
    /// How much of a block can be used.
    malloc_usable_size at malloc_usable_size = first::malloc_usable_size, fn(block: *mut c_void) -> usize;
    /// Gives free memory back to the system, Lowtide's and that of the underlying allocator. 1 where some was given back.
    malloc_trim at malloc_trim = first::malloc_trim, fn(keep: usize) -> c_int;
    /// What is allocated. Blocks of the arena count as those that glibc maps one by one.
    mallinfo2 at mallinfo2 = first::mallinfo2, fn() -> libc::mallinfo2;
    /// Sets what may be done with pages.
    mprotect at mprotect = first::mprotect, fn(start: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    /// Says how pages will be used.
    madvise at madvise = first::madvise, fn(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    /// Keeps pages in memory.
    mlock at mlock = first::mlock, fn(start: *const c_void, bytes: usize) -> c_int;
    /// Keeps pages in memory, at once or as they are touched.
    mlock2 at mlock2 = first::mlock2, fn(start: *const c_void, bytes: usize, flags: c_uint) -> c_int;
    /// Locks the memory of this process.
    mlockall at mlockall = first::mlockall, fn(flags: c_int) -> c_int;
    /// Sets a limit of a process, and says what it was.
    prlimit at prlimit = first::prlimit,
        fn(process: libc::pid_t, resource: c_uint, new: *const libc::rlimit64, old: *mut libc::rlimit64) -> c_int;
    /// Sets something about the process.
    prctl at prctl = first::prctl, fn(option: c_int, one: usize, two: usize, three: usize, four: usize) -> c_int;
    /// Leaves what the process shares with others.
    unshare at unshare = first::unshare, fn(flags: c_int) -> c_int;
    /// Joins another namespace.
    setns at setns = first::setns, fn(file: c_int, kind: c_int) -> c_int;
    /// Ends the process at once, after its summary.
    _exit at exit = first::exit, fn(status: c_int) -> !;
    /// The program closes a step.
    lowtide_step at step = first::step, fn();
    /// The program will mark its steps: large blocks come from the arena from now on.
    lowtide_expect_steps at expect_steps = first::expect_steps, fn();
    /// Gives free memory back to the system, and says how many bytes of Lowtide's.
    lowtide_trim at trim = first::trim, fn() -> usize;
    /// The program names a moment, for the summary. `name` is null or ends in zero.
    lowtide_mark at mark = first::mark, fn(name: *const c_char);
}

/// `free` by an old name.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { free(block) }
}

/// `realloc` to `count` times `bytes`.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    let Some(total) = count.checked_mul(bytes) else {
        first::set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's.
    unsafe { realloc(block, total) }
}

/// `mallinfo2` with numbers that were long enough once; one that is too large is cut off, as in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn mallinfo() -> libc::mallinfo {
    // SAFETY: asks for numbers.
    let info = unsafe { mallinfo2() };
    libc::mallinfo {
        arena: info.arena as c_int,
        ordblks: info.ordblks as c_int,
        smblks: info.smblks as c_int,
        hblks: info.hblks as c_int,
        hblkhd: info.hblkhd as c_int,
        usmblks: info.usmblks as c_int,
        fsmblks: info.fsmblks as c_int,
        uordblks: info.uordblks as c_int,
        fordblks: info.fordblks as c_int,
        keepcost: info.keepcost as c_int,
    }
}

/// Sets a limit of this process.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setrlimit(resource: c_uint, new: *const libc::rlimit64) -> c_int {
    // SAFETY: the caller's.
    unsafe { prlimit(0, resource, new, ptr::null_mut()) }
}

/// `setrlimit` by its other name; with addresses of 64 bits they are the same.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setrlimit64(resource: c_uint, new: *const libc::rlimit64) -> c_int {
    // SAFETY: the caller's.
    unsafe { prlimit(0, resource, new, ptr::null_mut()) }
}

/// `prlimit` by its other name.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn prlimit64(
    process: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { prlimit(process, resource, new, old) }
}

/// Changes the root of this process, from which the library that serves could not be found any more.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    opening::quietly();
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_chroot, path) as c_int }
}

/// Calls the function of a place that takes nothing and gives nothing.
pub(crate) fn call(place: &Entry) {
    // SAFETY: what has the place is of this type.
    unsafe { transmute::<*mut c_void, extern "C" fn()>(place.load(Ordering::Acquire))() }
}

/// `_exit` by the name that C has for it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: it does not come back.
    unsafe { _exit(status) }
}
