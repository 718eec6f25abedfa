//! A thread that is started without asking the loader for anything: whoever starts one may hold a lock that others wait
//! for while they are inside `dlopen`. The standard library's threads register destructors as they are started, for
//! which the loader's own lock is needed.

#![expect(unsafe_code, reason = "starts a thread by the C library, and waits for its end")]

use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::system::process::{Uncancelled, without_signals};

/// A thread that makes one thing, and takes no signals.
pub struct Worker<T> {
    thread: libc::pthread_t,
    place: Arc<Place<T>>,
    /// Whether the thread was waited for.
    is_joined: bool,
}

/// Where the thread puts what it made.
struct Place<T> {
    made: Mutex<Option<T>>,
    is_done: AtomicBool,
}

/// What a thread is to do.
type Work = Box<dyn FnOnce() + Send>;

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread of this name, of up to 15 bytes; none where the system refuses.
    pub fn start(name: &CStr, work: impl FnOnce() -> T + Send + 'static) -> Option<Self> {
        let place = Arc::new(Place { made: Mutex::new(None), is_done: AtomicBool::new(false) });
        let theirs = Arc::clone(&place);
        let work: Work = Box::new(move || {
            // What panicked has made nothing.
            if let Ok(made) = catch_unwind(AssertUnwindSafe(work)) {
                *theirs.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            }
            theirs.is_done.store(true, Ordering::Release);
        });
        let argument = Box::into_raw(Box::new(work));
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the thread takes over what `argument` points to.
        let refused = without_signals(|| unsafe {
            libc::pthread_create(thread.as_mut_ptr(), ptr::null(), run, argument.cast::<c_void>())
        });
        if refused != 0 {
            // SAFETY: no thread has it.
            drop(unsafe { Box::from_raw(argument) });
            return None;
        }
        // SAFETY: it was written when the thread was started.
        let thread = unsafe { thread.assume_init() };
        // SAFETY: the thread is there until it is waited for.
        unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
        Some(Self { thread, place, is_joined: false })
    }
}

impl<T> Worker<T> {
    /// Whether it has ended, or is about to.
    pub fn is_finished(&self) -> bool {
        self.place.is_done.load(Ordering::Acquire)
    }

    /// Waits for its end, and has what it made; none where it panicked.
    pub fn join(mut self) -> Option<T> {
        self.wait();
        self.place.made.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn wait(&mut self) {
        if !std::mem::replace(&mut self.is_joined, true) {
            // Whoever waits may hold a lock, and is not to be cancelled with it.
            let uncancelled = Uncancelled::begin();
            // SAFETY: the thread was started here and is waited for once.
            unsafe { libc::pthread_join(self.thread, ptr::null_mut()) };
            drop(uncancelled);
        }
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.wait();
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Worker").field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` made of a box, for this thread alone.
    let work = unsafe { Box::from_raw(argument.cast::<Work>()) };
    work();
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_makes_is_there_when_it_has_ended() {
        let worker = Worker::start(c"works", || 6 * 7).unwrap();
        assert_eq!(worker.join(), Some(42));
    }

    #[test]
    fn a_panic_makes_nothing_and_harms_nobody() {
        let worker: Worker<()> = Worker::start(c"panics", || panic!("on purpose")).unwrap();
        while !worker.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(worker.join(), None);
    }

    #[test]
    fn one_that_nobody_asks_is_waited_for() {
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        drop(Worker::start(c"slow", move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            theirs.store(true, Ordering::Release);
        }));
        assert!(done.load(Ordering::Acquire));
    }
}
