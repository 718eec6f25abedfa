//! Calls that the system refuses to a process with several threads: `unshare` of some namespaces, and `setns`. A program that has one thread
//! does not know of the service's, so that ends first, as before a fork.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::c_int;

use lowtide_core::preload::forbids_calls;
use lowtide_memory::process::Uncancelled;

use crate::process::{evidence, exit};
use crate::service;
use crate::serving::slabs;
use crate::system::errno::Errno;
use crate::system::process;

/// Leaves what the process shares with others.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: the caller's.
    alone(|| unsafe { process::unshare(flags) })
}

/// Joins another namespace.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn setns(file: c_int, kind: c_int) -> c_int {
    // SAFETY: the caller's.
    alone(|| unsafe { process::setns(file, kind) })
}

/// Sets something about the process. One that forbids system calls to itself may be killed for those that it does not make itself: what is not
/// needed to serve what there is, is not done any more.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn prctl(option: c_int, one: usize, two: usize, three: usize, four: usize) -> c_int {
    if forbids_calls(option) && exit::has_own_memory() {
        evidence::stop();
        slabs::be_quiet();
    }
    // SAFETY: the caller's.
    unsafe { process::prctl(option, [one, two, three, four]) }
}

fn alone(call: impl FnOnce() -> c_int) -> c_int {
    let kept = Errno::keep();
    let uncancelled = Uncancelled::begin();
    service::pause();
    drop(uncancelled);
    drop(kept);
    let outcome = call();
    let kept = Errno::keep();
    service::resume();
    drop(kept);
    outcome
}
