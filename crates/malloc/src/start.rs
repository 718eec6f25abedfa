//! The first thing that happens in a process, and the last.

#![cfg_attr(test, allow(unsafe_code, reason = "reads what the loader hands over"))]
#![cfg_attr(
    not(test),
    expect(unsafe_code, reason = "names functions for the loader to call, and reads what it hands over")
)]

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lowtide_core::preload::{ALWAYS, KEPT, RUNNER, SUMMARY, Start};

use crate::entries::{self, TABLE};
use crate::{opening, thread};

unsafe extern "C" {
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void), library: *mut c_void) -> c_int;
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static FIRST: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = first;

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static LAST: extern "C" fn() = last;

/// Of longer words, those are kept that come first.
const MOST: usize = 4 << 10;

struct Words(UnsafeCell<[u8; MOST]>);

// SAFETY: written while there is one thread, before anybody reads it.
unsafe impl Sync for Words {}

/// What the process was called by, and its variables of interest. They are kept here because the program may overwrite them.
static WORDS: Words = Words(UnsafeCell::new([0; MOST]));
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static IS_CUT: AtomicBool = AtomicBool::new(false);

extern "C" fn first(count: c_int, arguments: *const *const c_char, variables: *const *const c_char) {
    // SAFETY: the loader's word: so many arguments, and the variables with a null behind them.
    let is_wanted = unsafe {
        if count < 1 || !keep((*arguments).cast()) {
            keep(c"".as_ptr().cast());
        }
        read(variables)
    };
    // SAFETY: the handler lives as long as the program.
    unsafe { __cxa_at_quick_exit(at_quick_exit, ptr::null_mut()) };
    if is_wanted {
        opening::at_start();
    }
}

extern "C" fn at_quick_exit(_: *mut c_void) {
    entries::call(&TABLE.quick_finish);
}

extern "C" fn last() {
    entries::call(&TABLE.finish);
}

/// How the process was found, to which belongs that it has `asked` for so much in large blocks, and whether it `is_new`.
pub(crate) fn found(asked: u64, is_new: bool) -> Start {
    Start {
        words: WORDS.0.get().cast(),
        words_bytes: LENGTH.load(Ordering::Relaxed),
        is_cut: IS_CUT.load(Ordering::Relaxed),
        is_new,
        asked,
        thread_words: thread::words(),
    }
}

/// Keeps the variables of interest, and says whether the library that serves is wanted at once: where the arena is, where a summary is
/// wanted whatever the program does, and where the library would not be found later.
unsafe fn read(variables: *const *const c_char) -> bool {
    let (mut wants_arena, mut wants_summary, mut is_runners, mut may_move) = (false, false, true, false);
    let mut place = variables;
    // SAFETY: the caller's: a null is behind the last.
    unsafe {
        while !place.is_null() && !(*place).is_null() {
            let variable = (*place).cast::<u8>();
            if KEPT.iter().any(|start| !behind(variable, start).is_null()) {
                if !keep(variable) {
                    IS_CUT.store(true, Ordering::Relaxed);
                }
                let always = behind(variable, ALWAYS);
                wants_arena |= !always.is_null() && *always == 0;
                let folder = behind(variable, SUMMARY);
                wants_summary |= !folder.is_null() && *folder != 0;
                let runner = behind(variable, RUNNER);
                if !runner.is_null() {
                    is_runners = number(runner) == i64::from(libc::getppid());
                }
            } else {
                let libraries = behind(variable, "LD_PRELOAD=");
                may_move |= !libraries.is_null() && has_relative(libraries);
            }
            place = place.add(1);
        }
    }
    wants_arena || wants_summary && is_runners || may_move && opening::may_not_be_found_later()
}

/// Whether a list of libraries has one whose name may depend on the folder that the process is in.
unsafe fn has_relative(list: *const u8) -> bool {
    let (mut place, mut is_start) = (list, true);
    // SAFETY: the caller's: a zero is behind the last byte.
    unsafe {
        while *place != 0 {
            let is_separator = *place == b':' || *place == b' ';
            if is_start && !is_separator && *place != b'/' {
                return true;
            }
            is_start = is_separator;
            place = place.add(1);
        }
    }
    false
}

/// What is in `text` behind `start`; null where it begins otherwise.
unsafe fn behind(text: *const u8, start: &str) -> *const u8 {
    let mut place = text;
    for byte in start.bytes() {
        // SAFETY: the caller's: a zero is behind the last byte, and it is not passed.
        unsafe {
            if *place != byte {
                return std::ptr::null();
            }
            place = place.add(1);
        }
    }
    place
}

/// The number that `text` is, or none that a process has.
unsafe fn number(text: *const u8) -> i64 {
    let (mut number, mut place) = (0_i64, text);
    // SAFETY: the caller's: a zero is behind the last byte.
    unsafe {
        while *place != 0 {
            let digit = (*place).wrapping_sub(b'0');
            if digit > 9 || number > i64::from(i32::MAX) {
                return -1;
            }
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
            place = place.add(1);
        }
    }
    number
}

/// Keeps a text and the zero behind it, if there is room for both.
unsafe fn keep(text: *const u8) -> bool {
    let length = LENGTH.load(Ordering::Relaxed);
    // SAFETY: the caller's: the text ends in a zero; what is written to is this thread's.
    unsafe {
        let bytes = libc::strlen(text.cast()) + 1;
        let has_room = bytes <= MOST - length;
        if has_room {
            WORDS.0.get().cast::<u8>().add(length).copy_from_nonoverlapping(text, bytes);
            LENGTH.store(length + bytes, Ordering::Relaxed);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_are_read() {
        // SAFETY: texts with a zero behind them.
        let of = |text: &std::ffi::CStr| unsafe { number(text.as_ptr().cast()) };
        assert_eq!((of(c"12345"), of(c"1a"), of(c"99999999999999999999999"), of(c"-1")), (12345, -1, -1, -1));
    }

    #[test]
    fn a_name_without_a_folder_is_found() {
        // SAFETY: texts with a zero behind them.
        let has = |text: &std::ffi::CStr| unsafe { has_relative(text.as_ptr().cast()) };
        assert!(has(c"./liblowtide_malloc.so") && !has(c"/l/liblowtide_malloc.so"));
        assert!(has(c"/a.so:b.so") && !has(c"/a.so: /b.so:") && !has(c""));
    }

    #[test]
    fn variables_say_whether_to_begin_at_once() {
        let own = format!("LOWTIDE_RUNNER={}\0", std::os::unix::process::parent_id());
        let says = |variables: &[&str]| {
            let list: Vec<_> = variables.iter().map(|text| text.as_ptr().cast()).chain([std::ptr::null()]).collect();
            // SAFETY: a list with a null behind it.
            unsafe { read(list.as_ptr()) }
        };
        assert!(!says(&[]) && !says(&["LOWTIDE_ARENA=auto\0", "LOWTIDE_ARENA=always2\0", "PATH=/bin\0"]));
        assert!(says(&["A=B\0", "LOWTIDE_ARENA=always\0"]));
        assert!(says(&["LOWTIDE_SUMMARY=/tmp\0"]) && says(&["LOWTIDE_SUMMARY=/tmp\0", &own]));
        assert!(!says(&["LOWTIDE_SUMMARY=\0"]) && !says(&["LOWTIDE_SUMMARY=/tmp\0", "LOWTIDE_RUNNER=1x\0"]));
    }
}
