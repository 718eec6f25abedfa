//! Threads of this library's own, and what they sleep on.

#![expect(unsafe_code, reason = "starts a thread with a small stack, and asks the system for threads")]

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::{Timespec, futex};

/// What a thread runs.
pub(crate) type Run = extern "C" fn(*mut c_void) -> *mut c_void;

/// Starts a thread that nobody waits for, with a stack of `stack` bytes, or of the usual size where that is too small:
/// libraries with much thread-local memory need more. False where the system refuses. The C library allocates for it.
pub(crate) fn start(run: Run, stack: usize) -> bool {
    // SAFETY: the attributes are made before they are used; the thread has nothing of this one's.
    unsafe {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let mut usual = 0;
        libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut usual);
        let started = [stack, usual].into_iter().any(|bytes| {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), bytes);
            let mut id = MaybeUninit::uninit();
            libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), run, ptr::null_mut()) == 0
        });
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        started
    }
}

/// A key by which each thread has a pointer. When a thread ends that has one, `end` gets it. None where there are no more keys.
pub(crate) fn key(end: extern "C" fn(*mut c_void)) -> Option<u32> {
    // SAFETY: hands over a function of the same kind, which lives as long as the program.
    let end = unsafe { std::mem::transmute::<extern "C" fn(*mut c_void), unsafe extern "C" fn(*mut c_void)>(end) };
    let mut key = 0;
    // SAFETY: writes the key there.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
}

/// Gives this thread a pointer by a key; false where the C library has no memory for it.
pub(crate) fn set_for_key(key: u32, pointer: *mut c_void) -> bool {
    // SAFETY: the key is one that was made.
    unsafe { libc::pthread_setspecific(key, pointer) == 0 }
}

/// Gives this thread a name, of up to 15 bytes.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the name ends in zero, and the thread is this one.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
}

/// The system's number of this thread.
pub(crate) fn number() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

/// Whether the process has no thread of this number any more. `errno` may change.
pub(crate) fn is_gone(number: i32) -> bool {
    // SAFETY: sends nothing, and only says whether the thread is still there.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, 0) != 0 }
}

/// Whether this thread is on the small stack that some signals are handled on.
pub(crate) fn is_on_signal_stack() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: writes there what the thread has; all zeros are a stack too.
    let stack = unsafe {
        libc::sigaltstack(ptr::null(), stack.as_mut_ptr());
        stack.assume_init()
    };
    stack.ss_flags & libc::SS_ONSTACK != 0
}

/// Sleeps while the word is zero, no longer than the time.
pub(crate) fn sleep_while_zero(word: &AtomicU32, time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // Whoever is woken early looks at the word.
    let _ = futex::wait(word, futex::Flags::PRIVATE, 0, Some(&time));
}

/// Wakes whoever sleeps on the word.
pub(crate) fn wake(word: &AtomicU32) {
    // That nobody sleeps is all right.
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}
