//! Opens the library that serves, once: where the program marks steps or wants the arena, at once, and otherwise when it has asked for so much
//! in large blocks that the cost is nothing to it. A process with one thread opens it itself. In others a thread does, because whoever asks
//! for memory may hold a lock that one of them waits for while it opens a library too.

#![expect(unsafe_code, reason = "asks the loader for a library, and calls what is in it")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use lowtide_core::preload::{ATTACH, Attach, Opening, SERVING, VERSION, WORTH};

use crate::entries::{self, TABLE};
use crate::first::{errno, set_errno};
use crate::{forks, loader, start, underlying};

const CLOSED: u8 = 0;
const OPENING: u8 = 1;
/// It is open.
const OPEN: u8 = 2;
/// It cannot be opened, or is not to be.
const RULED_OUT: u8 = 3;
static PHASE: AtomicU8 = AtomicU8::new(CLOSED);
static ASKED: AtomicU64 = AtomicU64::new(0);
/// How many threads are between the first and the last handler of a fork: the table does not change then.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The process that this memory belongs to: a child of `vfork` opens nothing in its parent's.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// How long anybody waits for another thread that is opening the library, in steps of [`NAP`].
const PATIENCE: u32 = 2000;
static NAP: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 500_000 };

/// The program asks for a large block of `bytes`: whether the library has just been opened for it.
#[inline]
pub(crate) fn is_due(bytes: usize) -> bool {
    if PHASE.load(Ordering::Relaxed) != CLOSED {
        return false;
    }
    // One that is refused is not to count for more than all others.
    let bytes = (bytes as u64).min(WORTH);
    forks::register();
    ASKED.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes) >= WORTH && open()
}

/// Opens it now, as the program asks for what only it can do, and says so where that fails; whether it is open.
#[cold]
pub(crate) fn now() -> bool {
    if begin() {
        finish(false, true);
    }
    is_open()
}

/// The process begins, or goes on as a forked child.
pub(crate) fn begin_process() {
    PROCESS.store(process(), Ordering::Relaxed);
}

/// Whether this process's memory is not another's too, as that of a child of `vfork` is.
pub(crate) fn has_own_memory() -> bool {
    // From then on children are known.
    forks::register();
    PROCESS.load(Ordering::Relaxed) == process()
}

fn process() -> libc::pid_t {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

/// As [`now`], before the program's first line.
pub(crate) fn at_start() {
    if begin() {
        finish(true, true);
    }
}

/// As [`now`], before the program goes where the library cannot be found, which may be well without it.
pub(crate) fn quietly() -> bool {
    if begin() {
        finish(false, false);
    }
    is_open()
}

/// Whether it is open, after a while if another thread is opening it.
pub(crate) fn is_open() -> bool {
    wait();
    PHASE.load(Ordering::Acquire) == OPEN
}

/// It is not to be opened any more.
pub(crate) fn rule_out() {
    let _ = PHASE.compare_exchange(CLOSED, RULED_OUT, Ordering::AcqRel, Ordering::Relaxed);
}

#[cold]
fn open() -> bool {
    if !begin() {
        return false;
    }
    if has_one_thread() {
        finish(false, false);
        return PHASE.load(Ordering::Acquire) == OPEN;
    }
    let kept = errno();
    if !launch() {
        // There may be room for a thread later.
        ASKED.store(0, Ordering::Relaxed);
        PHASE.store(CLOSED, Ordering::Release);
    }
    set_errno(kept);
    false
}

fn begin() -> bool {
    if !has_own_memory() {
        return false;
    }
    if PHASE.compare_exchange(CLOSED, OPENING, Ordering::SeqCst, Ordering::Relaxed).is_err() {
        return false;
    }
    let is_alone = FORKS.load(Ordering::SeqCst) == 0;
    if !is_alone {
        PHASE.store(CLOSED, Ordering::Release);
    }
    is_alone
}

fn finish(is_new: bool, complains: bool) {
    let kept = errno();
    let is_attached = attach(is_new);
    if !is_attached && complains {
        complain();
    }
    PHASE.store(if is_attached { OPEN } else { RULED_OUT }, Ordering::Release);
    set_errno(kept);
}

/// Says why it could not be opened. Where nobody listens, that is all right.
fn complain() {
    // SAFETY: the loader's own words, which end in a zero, or none; writes texts of these lengths.
    unsafe {
        let mut reason = libc::dlerror().cast_const();
        if reason.is_null() {
            reason = c"liblowtide_serving.so is of another version than liblowtide_malloc.so".as_ptr();
        }
        let part = |text: *const c_char| libc::iovec { iov_base: text.cast_mut().cast(), iov_len: libc::strlen(text) };
        let line = [
            part(c"lowtide: all memory comes from the underlying allocator: ".as_ptr()),
            part(reason),
            part(c"\n".as_ptr()),
        ];
        libc::syscall(libc::SYS_writev, libc::STDERR_FILENO, line.as_ptr(), line.len());
    }
}

fn wait() {
    let mut patience = PATIENCE;
    while PHASE.load(Ordering::SeqCst) == OPENING && patience > 0 {
        // SAFETY: sleeps for that time. The C library's own function would let the thread be cancelled here.
        unsafe { libc::syscall(libc::SYS_nanosleep, &raw const NAP, ptr::null_mut::<libc::timespec>()) };
        patience -= 1;
    }
}

/// Before a fork: a library that is half open is of no use to the child, nor is the loader's lock.
pub(crate) unsafe extern "C" fn prepare() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    wait();
    entries::call(&TABLE.fork_prepare);
}

/// In the parent.
pub(crate) unsafe extern "C" fn parent() {
    entries::call(&TABLE.fork_parent);
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// In a forked child, whoever was opening it is gone.
pub(crate) unsafe extern "C" fn child() {
    entries::call(&TABLE.fork_child);
    FORKS.store(0, Ordering::SeqCst);
    // What its parent has asked for is not its own.
    ASKED.store(0, Ordering::Relaxed);
    begin_process();
    let _ = PHASE.compare_exchange(OPENING, RULED_OUT, Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether this process has one thread. The C library knows of those that it has started.
fn has_one_thread() -> bool {
    unsafe extern "C" {
        static __libc_single_threaded: c_char;
    }
    // SAFETY: a flag of the C library, which only it writes.
    unsafe { (&raw const __libc_single_threaded).read_volatile() != 0 }
}

/// Has a thread open it, which takes no signals, and for which nobody waits. False where the system refuses.
fn launch() -> bool {
    const STACK: usize = 512 << 10;
    extern "C" fn run(_: *mut c_void) -> *mut c_void {
        finish(false, false);
        ptr::null_mut()
    }
    // SAFETY: sets of signals and the attributes are made before they are used; the thread has nothing of this one's.
    unsafe {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut attributes = MaybeUninit::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let (mut thread, mut usual) = (MaybeUninit::uninit(), 0);
        libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut usual);
        // Where libraries have much thread-local memory, the small stack is not enough.
        let is_launched = [STACK.min(usual), usual].into_iter().any(|bytes| {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), bytes);
            libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, ptr::null_mut()) == 0
        });
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        is_launched
    }
}

/// Opens the library and lets it take the places in the table. Where it is out of reach, as in another root, or is of another version, the
/// underlying allocator goes on serving.
fn attach(is_new: bool) -> bool {
    let Some(underlying) = underlying::known() else { return false };
    let opening = Opening {
        version: VERSION,
        entries: &raw const TABLE,
        underlying,
        start: start::found(ASKED.load(Ordering::Relaxed), is_new),
    };
    let mut path = [0; libc::PATH_MAX as usize];
    // SAFETY: the functions are of these types; the path ends in a zero.
    unsafe {
        let open = loader::next(c"dlopen");
        if open.is_null() || !beside(&mut path) {
            return false;
        }
        let open = transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>(open);
        let library = open(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return false;
        }
        let attach = libc::dlsym(library, ATTACH.as_ptr());
        !attach.is_null() && transmute::<*mut c_void, Attach>(attach)(&raw const opening) == 0
    }
}

/// Whether this library was loaded by a name that depends on the folder that the process is in.
pub(crate) fn may_not_be_found_later() -> bool {
    let name = own_name();
    // SAFETY: a name ends in a zero.
    name.is_null() || unsafe { *name.cast::<u8>() != b'/' }
}

/// The name by which this library was loaded; null where the loader does not know.
fn own_name() -> *const c_char {
    let mut own = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: asks for where a static of this library lies.
    unsafe {
        if libc::dladdr((&raw const TABLE).cast(), own.as_mut_ptr()) == 0 {
            return ptr::null();
        }
        own.assume_init().dli_fname
    }
}

/// Where the other library is: in the folder of this one.
unsafe fn beside(path: &mut [c_char; libc::PATH_MAX as usize]) -> bool {
    let name = own_name();
    if name.is_null() {
        return false;
    }
    // SAFETY: a name ends in a zero, and both texts fit.
    unsafe {
        let slash = libc::strrchr(name, c_int::from(b'/'));
        let folder = if slash.is_null() { 0 } else { slash.offset_from(name) as usize + 1 };
        if folder + SERVING.len() >= path.len() {
            return false;
        }
        let path = path.as_mut_ptr();
        path.copy_from_nonoverlapping(name, folder);
        path.add(folder).copy_from_nonoverlapping(SERVING.as_ptr().cast(), SERVING.len());
        path.add(folder + SERVING.len()).write(0);
    }
    true
}
