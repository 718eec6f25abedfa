//! Whole processes: on which NUMA nodes they compute and have their memory, and what they used once they have ended.
//! What is set here holds for the calling thread and for every process that it starts afterwards.

#![expect(unsafe_code, reason = "sets an affinity, and waits for a process with its use of resources")]

use std::ffi::c_int;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use lowtide_core::Bytes;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::Error;
use crate::host::Placement;
use crate::system::numa;

pub use crate::system::files::nodes::{Node, nodes, parse_list};
pub use crate::system::files::processes::{Reading, children, lists_children, read, reset_peak};

/// The calling thread, and what it starts from now on, computes on these processors alone.
pub fn run_on(processors: &[u32]) -> Result<(), Error> {
    const CALL: &str = "sched_setaffinity";
    let mut set = CpuSet::new();
    for &processor in processors {
        if processor as usize >= CpuSet::MAX_CPU {
            return Err(Error::Refused { call: CALL, why: format!("there is no room for processor {processor}") });
        }
        set.set(processor as usize);
    }
    let set = sched_setaffinity(None, &set);
    set.map_err(|error| Error::Refused { call: CALL, why: io::Error::from(error).to_string() })
}

/// The calling thread, and what it starts from now on, has its memory there.
pub fn place(placement: &Placement) -> Result<(), Error> {
    numa::place_thread(placement)
}

/// What `command` starts has the signals that the calling thread lets through now, whatever it keeps back later.
pub fn keep_signals(command: &mut Command) -> io::Result<()> {
    // SAFETY: a set of signals is plain bits.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set, and the set is there to be written to.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let restore = move || {
        // SAFETY: the set was filled above; between fork and exec this call is allowed.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: the function makes one call that is allowed there, and allocates nothing.
    unsafe { command.pre_exec(restore) };
    Ok(())
}

/// Starts something, a thread as a rule, that no signal of the program reaches: it inherits that all are kept back. The
/// calling thread has its own again afterwards.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    // SAFETY: sets of signals are plain bits.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are there to be written to.
    let kept = unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0
    };
    let started = start();
    if kept {
        // SAFETY: the set was filled above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    }
    started
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// For as long as it lives, the thread is not cancelled: that would unwind through whoever is called, or leave locks
/// held.
#[derive(Debug)]
pub struct Uncancelled(c_int);

impl Uncancelled {
    /// Puts it off.
    #[must_use]
    pub fn begin() -> Self {
        const DISABLED: c_int = 1;
        let mut before = 0;
        // SAFETY: writes there what held before.
        unsafe { pthread_setcancelstate(DISABLED, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: what held before.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

/// How a process ended, and what it and those that it waited for used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its end.
    pub status: ExitStatus,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Page faults that were served without reading a disk.
    pub minor_faults: u64,
    /// The most memory that one of them had at once.
    pub peak: Bytes,
}

/// Waits for a child of this process. Nobody else may wait for it.
pub fn wait(child: u32) -> io::Result<Ended> {
    let child = libc::pid_t::try_from(child).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut status = 0;
    // SAFETY: the record is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places are there for the call to write to.
        if unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) } == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
        peak: Bytes::new(u64::try_from(usage.ru_maxrss).unwrap_or(0) * unit),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_started_without_signals_gets_none() {
        let is_kept_back = || {
            // SAFETY: a set of signals is plain bits, and there to be written to.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
                libc::sigismember(&raw const set, libc::SIGUSR1) == 1
            }
        };
        let before = is_kept_back();
        assert!(without_signals(|| std::thread::spawn(is_kept_back)).join().unwrap());
        assert_eq!(is_kept_back(), before);
    }

    #[test]
    fn a_process_that_ended_tells_what_it_used() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 3"]);
        let ended = wait(command.spawn().unwrap().id()).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.user + ended.system > Duration::ZERO);
        assert!(ended.minor_faults > 0 && ended.peak > Bytes::new(1 << 16), "{ended:?}");
        assert!(wait(u32::MAX).is_err());
    }

    #[test]
    fn what_a_thread_starts_inherits_its_place() {
        let Some(node) = nodes().into_iter().find(|node| !node.processors.is_empty()) else {
            return lowtide_testing::skip("this system says of no NUMA node which processors it has");
        };
        let processor = node.processors[0];
        let output = std::thread::spawn(move || {
            run_on(&[processor]).unwrap();
            place(&Placement::Bound(vec![node.number])).unwrap();
            let script = "grep Cpus_allowed_list /proc/self/status; grep -c bind: /proc/self/numa_maps";
            Command::new("sh").args(["-c", script]).output().unwrap()
        });
        let output = String::from_utf8(output.join().unwrap().stdout).unwrap();
        let mut lines = output.lines();
        assert!(lines.next().unwrap().ends_with(&format!("\t{processor}")), "{output}");
        assert!(lines.next().unwrap().parse::<u32>().is_ok_and(|bound| bound > 0), "{output}");
    }

    #[test]
    fn what_is_started_has_the_signals_of_before() {
        let mut command = Command::new("grep");
        command.args(["SigBlk", "/proc/self/status"]);
        let output = std::thread::spawn(move || {
            keep_signals(&mut command).unwrap();
            // SAFETY: the set is there for both calls.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigaddset(&raw mut set, libc::SIGUSR1);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            command.output().unwrap()
        });
        let output = String::from_utf8(output.join().unwrap().stdout).unwrap();
        let blocked = u64::from_str_radix(output.split_whitespace().last().unwrap(), 16).unwrap();
        assert_eq!(blocked & (1 << (libc::SIGUSR1 - 1)), 0, "{output}");
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        assert!(std::thread::spawn(|| place(&Placement::Bound(vec![1000]))).join().unwrap().is_err());
        assert!(run_on(&[1_000_000]).is_err());
        assert!(std::thread::spawn(|| run_on(&[])).join().unwrap().is_err());
    }
}
