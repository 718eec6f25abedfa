//! A thread that does what no request should wait for: it lets memory decay, trims the allocator below, and gives memory
//! back under pressure. It is started once the arena has handed out enough to be worth it, takes no signals, and ends when it
//! is the last thread, so that it keeps no process alive.

#![expect(unsafe_code, reason = "starts a thread with a small stack and no signals")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, ptr};

use lowtide_core::Bytes;
use lowtide_pool::HostArena;

use crate::notice::Errno;
use crate::pressure::Pressure;
use crate::settings::{Settings, TrimBelow};
use crate::thread::Inside;
use crate::{below, faults, large, life, start};

/// How much the arena has to hand out before the thread is started.
const WORTH: u64 = 32 << 20;

/// How often the thread looks.
const PERIOD: Duration = Duration::from_millis(250);

/// How many of these pass from one look at what changes slowly to the next.
const SLOW: u64 = 4;

/// The least time between two answers to pressure: each costs the program faults if it goes on as before.
const RESPITE: Duration = Duration::from_secs(10);

/// Free memory below this is not worth an answer.
const MORSEL: Bytes = Bytes::new(1 << 20);

const STACK: usize = 256 << 10;

static STARTED: AtomicBool = AtomicBool::new(false);
static HANDED: AtomicU64 = AtomicU64::new(0);

/// The arena has handed out a block; its lock is not held.
#[inline]
pub(crate) fn handed(bytes: usize) {
    if !STARTED.load(Ordering::Relaxed) {
        count(bytes as u64);
    }
}

#[cold]
fn count(bytes: u64) {
    let handed = HANDED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let asked = matches!(trim_below(), TrimBelow::Every(_));
    if (handed > WORTH || asked) && !STARTED.swap(true, Ordering::AcqRel) {
        // What the C library allocates for a thread comes from below.
        if let Some(inside) = Inside::enter() {
            launch();
            drop(inside);
        }
    }
}

/// In a forked child the thread is gone; it is started again at need.
pub(crate) fn forget() {
    STARTED.store(false, Ordering::Release);
}

/// The program has closed a step.
pub(crate) fn step() {
    if trim_below() == TrimBelow::Step {
        below::trim(0);
    }
}

fn trim_below() -> TrimBelow {
    Settings::get().map_or(TrimBelow::Never, |settings| settings.trim_below)
}

/// Starts the thread. Where the system refuses, memory goes back only when it is asked for.
fn launch() {
    let kept = Errno::keep();
    // SAFETY: the sets and attributes are made before they are used; the thread has nothing of this one's.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let usual = {
            let mut bytes = 0;
            libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut bytes);
            bytes
        };
        // Libraries with much thread-local memory need more than the small stack.
        for bytes in [STACK, usual] {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), bytes);
            let mut id = MaybeUninit::uninit();
            if libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), run, ptr::null_mut()) == 0 {
                libc::pthread_setname_np(id.assume_init(), c"lowtide".as_ptr());
                break;
            }
        }
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
    }
    drop(kept);
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let mut pressure = Pressure::new();
    let mut trimmed = start::now();
    let mut pressed = None;
    let mut steps = 0;
    for round in 1.. {
        std::thread::sleep(PERIOD);
        let now = start::now();
        let Some(looked) = large::call(life::serving(), |arena| look(arena, now)) else { break };
        let due = match trim_below() {
            TrimBelow::Never => false,
            TrimBelow::Every(time) => now.saturating_sub(trimmed) >= time,
            TrimBelow::Step => faults::marked() == 0 && looked.steps != steps,
        };
        if due {
            below::trim(0);
            trimmed = now;
        }
        steps = looked.steps;
        if round % SLOW != 0 {
            continue;
        }
        if is_last() {
            break;
        }
        let rested = pressed.is_none_or(|last| now.saturating_sub(last) >= RESPITE);
        if rested && looked.free > MORSEL && pressure.is_high() {
            large::trim();
            below::trim(0);
            pressed = Some(now);
        }
    }
    ptr::null_mut()
}

/// What a look at the arena shows.
struct Looked {
    steps: u64,
    free: Bytes,
}

fn look(arena: &HostArena, now: Duration) -> Looked {
    arena.tick(now);
    faults::look(arena);
    let stats = arena.stats();
    Looked { steps: stats.steps, free: stats.held.saturating_sub(stats.live) }
}

/// Whether only this thread is left: the first has ended, and no other goes on.
fn is_last() -> bool {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return false };
    // Behind the name, which may hold anything but ends in the last parenthesis: the state, and 17 fields on, the threads.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let ended = fields.next() == Some("Z");
    let threads = fields.nth(16).and_then(|count| count.parse::<u64>().ok());
    ended && threads.is_some_and(|count| count <= 2)
}
