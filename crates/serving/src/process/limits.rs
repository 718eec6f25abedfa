//! Limits on addresses that the program sets itself: `setrlimit` and `prlimit`. The arena and slabs have taken far more addresses
//! than they use, and those count. So before such a limit holds, those that were never used go back.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{c_int, c_uint};

use crate::process::{exit, lifecycle};
use crate::serving::{large, slabs};
use crate::settings::SHARE;
use crate::system;
use crate::system::errno::Errno;

/// Sets a limit of a process, and says what it was.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn prlimit(
    process: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    if matches!(resource, libc::RLIMIT_AS | libc::RLIMIT_DATA) && is_own(process) {
        // SAFETY: the caller's: null, or a limit. What is there for another resource is only for the system to read.
        let limit = unsafe { new.as_ref() }.map(|limit| limit.rlim_cur);
        if let Some(limit) = limit.filter(|_| resource == libc::RLIMIT_AS) {
            make_room(limit);
        }
        if limit.is_some_and(|limit| limit != libc::RLIM64_INFINITY) {
            slabs::cut();
        }
    }
    // SAFETY: the caller's.
    unsafe { system::process::prlimit(process, resource, new, old) }
}

/// Whether it is this process, and not one that still has its parent's memory.
fn is_own(process: libc::pid_t) -> bool {
    (process == 0 || process == system::process::number()) && exit::has_own_memory()
}

/// Gives addresses back where the arena has too many for the limit.
fn make_room(limit: u64) {
    let range = lifecycle::range();
    if range.end - range.start <= limit / SHARE {
        return;
    }
    let kept = Errno::keep();
    large::call(lifecycle::arena(), |arena| arena.shrink_range(|left| lifecycle::cut(&left)));
    drop(kept);
}
