//! What no request should wait for: it lets memory decay, trims the underlying allocator, and purges memory under pressure. A thread does
//! that in a process that has several. It is started once the arena has handed out enough to be worth it, takes no signals, and ends
//! when it is the last, so that it keeps no process alive; a process whose other threads have ended forks without it. A process that
//! has one thread keeps one: it is asked now and then as it allocates, and while it allocates nothing, nothing goes back. Programs look at how many threads they have.

mod pressure;

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_core::options::Every;
use lowtide_memory::process::{Uncancelled, without_signals};
use lowtide_memory::system::files::own;
use lowtide_pool::HostArena;

use crate::process::lifecycle;
use crate::report::faults;
use crate::service::pressure::Pressure;
use crate::serving::thread::Inside;
use crate::serving::{large, underlying};
use crate::settings::Settings;
use crate::system::errno::Errno;
use crate::system::{process, threads};

/// How many calls of the arena go by before the clock is looked at.
const TURNS_BETWEEN_LOOKS: u64 = 16;

/// How much the arena has to hand out before the thread is started.
const WORTH: u64 = 32 << 20;

/// How often the thread takes a sample.
const PERIOD: Duration = Duration::from_millis(250);

/// How many of these pass from one sample of what changes slowly to the next.
const SLOW: u64 = 4;

/// The least time between two answers to pressure: each costs the program faults if it goes on as before.
const RESPITE: Duration = Duration::from_secs(10);

/// Free memory below this is not worth an answer.
const MORSEL: Bytes = Bytes::new(1 << 20);

const STACK: usize = 256 << 10;

/// How long a fork waits for the thread to end. It does so as soon as it runs, unless what it needs is in use by the
/// fork itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether the thread was started and has not ended, or cannot be had.
static STARTED: AtomicBool = AtomicBool::new(false);
static HANDED: AtomicU64 = AtomicU64::new(0);
static TURNS: AtomicU64 = AtomicU64::new(0);
/// The system's number of the thread.
static TASK: AtomicI32 = AtomicI32::new(NOBODY);
/// There is no thread, or it is being started and has not run yet.
const NOBODY: i32 = 0;
const NEWBORN: i32 = -1;
/// Whether the thread is to end; it sleeps on this.
static ENDS: AtomicU32 = AtomicU32::new(0);
/// When it may be started at the earliest, in milliseconds of the clock.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// How long the thread has looked after the arena, in milliseconds. What was freed while it did not run is not older
/// for that.
static SERVED: AtomicU64 = AtomicU64::new(0);
/// When the underlying allocator was last trimmed, and when pressure was last answered; zero for never.
static TRIMMED: AtomicU64 = AtomicU64::new(0);
static PRESSED: AtomicU64 = AtomicU64::new(0);

/// The arena has handed out a block, or taken back one of no bytes; its lock is not held.
#[inline]
pub(crate) fn handed(bytes: usize) {
    if !STARTED.load(Ordering::Relaxed) {
        count(bytes as u64);
    }
}

#[cold]
fn count(bytes: u64) {
    let handed = HANDED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let asked = matches!(trim_underlying(), Some(Every::Time(_)));
    let is_time = || TURNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(TURNS_BETWEEN_LOOKS);
    let due = (handed > WORTH || asked) && is_time() && milliseconds() >= NOT_BEFORE.load(Ordering::Relaxed);
    if due && !STARTED.swap(true, Ordering::AcqRel) {
        if process::has_one_thread() {
            serve_inline();
            STARTED.store(false, Ordering::Release);
            return;
        }
        // What the C library allocates for a thread comes from the underlying allocator.
        if let Some(inside) = Inside::enter() {
            launch();
            drop(inside);
        }
    }
}

/// How much more memory there is for the process, for an arena that was made just now.
pub(crate) fn look_for_room(arena: &HostArena) {
    arena.set_room(Pressure::new().room());
}

/// Does what the thread would do in a period, in a process that has none.
fn serve_inline() {
    static PRESSURE: OnceLock<Pressure> = OnceLock::new();
    static ROUND: AtomicU64 = AtomicU64::new(1);
    static LAST: AtomicU64 = AtomicU64::new(0);
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let kept = Errno::keep();
    let uncancelled = Uncancelled::begin();
    let now = milliseconds();
    NOT_BEFORE.store(now + PERIOD.as_millis() as u64, Ordering::Relaxed);
    let last = LAST.swap(now, Ordering::Relaxed);
    // While the program allocates nothing, nothing gets older.
    let passed = if last == 0 { 0 } else { now.saturating_sub(last).min(4 * PERIOD.as_millis() as u64) };
    let served = Duration::from_millis(SERVED.fetch_add(passed, Ordering::Relaxed) + passed);
    let look = |arena| sample(arena, served, PRESSURE.get_or_init(Pressure::new));
    if let Some(sample) = large::call(lifecycle::serving(), look) {
        let _ = TRIMMED.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        trim_if_due(&sample, STEPS.swap(sample.steps, Ordering::Relaxed));
        let is_slow = ROUND.fetch_add(1, Ordering::Relaxed).is_multiple_of(SLOW);
        if sample.free > MORSEL && is_rested() && PRESSURE.get().is_some_and(|pressure| pressure.is_met(is_slow)) {
            relieve();
        }
    }
    drop(uncancelled);
    drop(kept);
}

/// Gives back all that is free.
fn relieve() {
    large::trim();
    underlying::trim(0);
    PRESSED.store(milliseconds(), Ordering::Relaxed);
}

/// The process is about to fork: where it has no other threads, this one ends first.
pub(crate) fn pause() {
    let mut task = TASK.load(Ordering::Acquire);
    if task == NOBODY || !is_only_other() {
        return;
    }
    ENDS.store(1, Ordering::Release);
    threads::wake(&ENDS);
    let start = process::now();
    while process::now().saturating_sub(start) < PATIENCE {
        if task == NEWBORN {
            task = TASK.load(Ordering::Acquire);
        }
        if task == NOBODY || task != NEWBORN && threads::is_gone(task) {
            break;
        }
        std::thread::yield_now();
    }
}

/// The process has forked: for a while it stays without the thread.
pub(crate) fn resume() {
    NOT_BEFORE.store(milliseconds() + PERIOD.as_millis() as u64, Ordering::Relaxed);
}

/// In a forked child the thread is gone; it is started again at need.
pub(crate) fn forget() {
    end();
    resume();
}

/// There is no thread any more, and another may be started.
fn end() {
    TASK.store(NOBODY, Ordering::Release);
    ENDS.store(0, Ordering::Release);
    STARTED.store(false, Ordering::Release);
}

/// Whether the process has two threads.
fn is_only_other() -> bool {
    own::threads() == Some(2)
}

fn milliseconds() -> u64 {
    process::now().as_millis() as u64
}

/// Sleeps for the period, and says whether the thread is to end.
fn is_over() -> bool {
    threads::sleep_while_zero(&ENDS, PERIOD);
    ENDS.load(Ordering::Acquire) != 0
}

/// The program has closed a step.
pub(crate) fn step() {
    if trim_underlying() == Some(Every::Step) {
        underlying::trim(0);
    }
}

fn trim_underlying() -> Option<Every> {
    Settings::get().and_then(|settings| settings.trim_underlying)
}

/// Starts the thread. Where the system refuses, memory goes back only when it is asked for.
fn launch() {
    let kept = Errno::keep();
    TASK.store(NEWBORN, Ordering::Release);
    if !without_signals(|| threads::start(run, STACK)) {
        TASK.store(NOBODY, Ordering::Release);
    }
    drop(kept);
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    threads::set_name(c"lowtide");
    TASK.store(threads::number(), Ordering::Release);
    serve();
    end();
    ptr::null_mut()
}

/// Looks after the arena until the thread is to end, the arena is given up, or no other thread is left.
fn serve() {
    let pressure = Pressure::new();
    let mut steps = 0;
    let mut last = process::now();
    let _ = TRIMMED.compare_exchange(0, milliseconds(), Ordering::Relaxed, Ordering::Relaxed);
    for round in 1_u64.. {
        if is_over() {
            break;
        }
        let now = process::now();
        let passed = now.saturating_sub(last).min(PERIOD * 4).as_millis() as u64;
        last = now;
        let served = Duration::from_millis(SERVED.fetch_add(passed, Ordering::Relaxed) + passed);
        let Some(sample) = large::call(lifecycle::serving(), |arena| sample(arena, served, &pressure)) else { break };
        trim_if_due(&sample, steps);
        steps = sample.steps;
        let is_slow = round.is_multiple_of(SLOW);
        if is_slow && own::is_down_to_one_thread() {
            break;
        }
        if sample.free > MORSEL && is_rested() && pressure.is_met(is_slow) {
            relieve();
        }
    }
}

/// Trims the underlying allocator if it was asked for: by the clock, or by a step that was found since the last sample.
fn trim_if_due(sample: &Sample, steps: u64) {
    let due = match trim_underlying() {
        None => false,
        Some(Every::Time(time)) => {
            milliseconds().saturating_sub(TRIMMED.load(Ordering::Relaxed)) >= time.as_millis() as u64
        }
        Some(Every::Step) => faults::marked() == 0 && sample.steps != steps,
    };
    if due {
        underlying::trim(0);
        TRIMMED.store(milliseconds(), Ordering::Relaxed);
    }
}

/// Whether the last answer to pressure is long ago.
fn is_rested() -> bool {
    let pressed = PRESSED.load(Ordering::Relaxed);
    pressed == 0 || milliseconds().saturating_sub(pressed) >= RESPITE.as_millis() as u64
}

/// What a sample of the arena shows.
struct Sample {
    steps: u64,
    free: Bytes,
}

fn sample(arena: &HostArena, now: Duration, pressure: &Pressure) -> Sample {
    arena.tick(now);
    arena.set_room(pressure.room());
    faults::sample_period(arena);
    let stats = arena.stats();
    Sample { steps: stats.steps, free: stats.resident.saturating_sub(stats.live) }
}
