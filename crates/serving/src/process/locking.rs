//! `mlockall`: it locks, and puts memory under, all that a process has mapped, and the arena and slabs have far more addresses than blocks. So they
//! first give up what no block lies on, and new blocks come from the underlying allocator, whose memory is locked as the program expects.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::c_int;

use crate::process::lifecycle;
use crate::serving::{large, slabs};
use crate::system::errno::Errno;
use crate::system::process;

/// Locks the memory of this process.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let kept = Errno::keep();
    lifecycle::retire();
    large::call(lifecycle::arena(), |arena| arena.close(|left| lifecycle::cut(&left)));
    slabs::close();
    drop(kept);
    process::lock_all(flags)
}
