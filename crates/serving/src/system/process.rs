//! This process: its number, its clock, its limits, its forks and its end.

#![expect(unsafe_code, reason = "calls the system, and hands it functions to call")]

use std::ffi::{c_char, c_int, c_uint};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::time::Duration;

use super::errno::Errno;

/// The number of this process, also where it has another's memory.
pub(crate) fn number() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// A clock that goes on.
pub(crate) fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long this process has been there, by the system's count, which is in hundredths of a second; none where it does not say.
pub(crate) fn age() -> Option<Duration> {
    /// The field with the moment at which the process began, counted from behind the name, which may have any characters.
    const BEGAN: usize = 19;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').nth(BEGAN)?.parse().ok()?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time there, and reads a constant of the system.
    let per_second = unsafe {
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time);
        u64::try_from(libc::sysconf(libc::_SC_CLK_TCK)).ok()?
    };
    let began = Duration::from_nanos(ticks.checked_mul(1_000_000_000)?.checked_div(per_second)?);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).checked_sub(began)
}

/// What the process has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Faults for which nothing was read from a disk.
    pub(crate) minor: u64,
    /// How many bytes were resident at most, also before the process became this program.
    pub(crate) peak_resident: u64,
    /// Seconds in the program.
    pub(crate) user: f64,
    /// Seconds in the system.
    pub(crate) system: f64,
}

/// What the process has used until now.
pub(crate) fn usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: writes the counts there; all zeros are counts too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Usage {
        minor: usage.ru_minflt as u64,
        peak_resident: usage.ru_maxrss as u64 * 1024,
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
    }
}

/// Why the system does not say something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unknown {
    /// It may later.
    Now,
    /// It has no such files.
    ForGood,
}

/// How many bytes of this program were resident at most.
pub(crate) fn peak_resident() -> Result<u64, Unknown> {
    use rustix::fs::{Mode, OFlags, open};
    let file = open(c"/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
        use rustix::io::Errno;
        if matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR) {
            Unknown::Now
        } else {
            Unknown::ForGood
        }
    })?;
    number_behind(b"\nVmHWM:", |into| rustix::io::read(&file, into).ok()).map(|kibibytes| kibibytes << 10)
}

/// The number in a line that begins so, of a text that is read piece by piece. Other lines may be long, and may be cut inside a character.
fn number_behind(name: &[u8], mut read: impl FnMut(&mut [u8]) -> Option<usize>) -> Result<u64, Unknown> {
    let mut text = [0_u8; 2048];
    let mut filled = 0;
    loop {
        let more = text.get_mut(filled..).and_then(&mut read).ok_or(Unknown::Now)?;
        filled += more;
        let known = &text[..filled];
        if let Some(at) = known.windows(name.len()).position(|begin| begin == name)
            && let Some(length) = known[at + 1..].iter().position(|&byte| byte == b'\n')
        {
            let digits = known[at + name.len()..at + 1 + length].iter().filter(|byte| byte.is_ascii_digit());
            return Ok(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')));
        }
        if more == 0 {
            return Err(Unknown::ForGood);
        }
        if filled == text.len() {
            // The line itself is shorter than this.
            let kept = text.len() / 2;
            text.copy_within(filled - kept.., 0);
            filled = kept;
        }
    }
}

/// Whether this process has one thread. The C library knows of those that it has started.
pub(crate) fn has_one_thread() -> bool {
    unsafe extern "C" {
        static __libc_single_threaded: c_char;
    }
    // SAFETY: a flag of the C library, which only it writes.
    unsafe { (&raw const __libc_single_threaded).read_volatile() != 0 }
}

/// How many addresses the process may have, where that is limited and may be asked.
pub(crate) fn address_limit() -> Option<u64> {
    limit(libc::RLIMIT_AS)
}

fn limit(resource: c_uint) -> Option<u64> {
    let kept = Errno::keep();
    let mut limit = libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: libc::RLIM64_INFINITY };
    // SAFETY: writes the limit there; where that is refused, it stays as it is.
    unsafe { prlimit(0, resource, ptr::null(), &raw mut limit) };
    drop(kept);
    (limit.rlim_cur != libc::RLIM64_INFINITY).then_some(limit.rlim_cur)
}

/// Whether addresses or data of the process are limited.
pub(crate) fn is_limited() -> bool {
    limit(libc::RLIMIT_AS).is_some() || limit(libc::RLIMIT_DATA).is_some()
}

/// `prlimit` of the C library, without calling it: Lowtide stands in for that.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn prlimit(
    process: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, new, old) as c_int }
}

/// `mlockall`, likewise.
pub(crate) fn lock_all(flags: c_int) -> c_int {
    // SAFETY: what is in memory stays.
    unsafe { libc::syscall(libc::SYS_mlockall, flags) as c_int }
}

/// `prctl`, likewise.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn prctl(option: c_int, arguments: [usize; 4]) -> c_int {
    let [one, two, three, four] = arguments;
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_prctl, option, one, two, three, four) as c_int }
}

/// `unshare`, likewise.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn unshare(flags: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int }
}

/// `setns`, likewise.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn setns(file: c_int, kind: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_setns, file, kind) as c_int }
}

/// Ends the process at once, as the C library does.
pub(crate) fn exit(status: c_int) -> ! {
    loop {
        // SAFETY: always; it does not come back.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Ends the process as glibc does when its heap is broken.
pub(crate) fn abort() -> ! {
    // SAFETY: always.
    unsafe { libc::abort() }
}

/// Writes to standard error by one call; where nobody listens, that is all right.
pub(crate) fn write_error(text: &[u8]) {
    // SAFETY: lives for this call alone, which fails where the number is not open.
    let error = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    let _ = rustix::io::write(error, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_behind_lines_of_any_length() {
        for before in [0, 1, 1000, 2040, 2047, 2048, 5000, 70_000] {
            for piece in [1, 7, 1024, 4096] {
                let mut text = b"Name:\t\xff".to_vec();
                text.extend(std::iter::repeat_n(b'7', before));
                text.extend(b"\nVmHWM:\t   1234 kB\nVmRSS:\t 5 kB\n");
                let mut rest = text.as_slice();
                let mut read = |into: &mut [u8]| {
                    let count = piece.min(into.len()).min(rest.len());
                    into[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    Some(count)
                };
                assert!(matches!(number_behind(b"\nVmHWM:", &mut read), Ok(1234)), "{before} {piece}");
                assert!(matches!(number_behind(b"\nVmHWM:", &mut read), Err(Unknown::ForGood)));
            }
        }
        assert!(matches!(number_behind(b"\nVmHWM:", |_| None), Err(Unknown::Now)));
        assert!(peak_resident().is_ok_and(|bytes| bytes > 1 << 20));
    }
}
