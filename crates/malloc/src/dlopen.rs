//! `dlopen` without `RTLD_DEEPBIND`, where the underlying allocator is not glibc. A library that is opened with that flag
//! binds `malloc` and `free` to glibc while glibc's own functions use the other allocator, and blocks come back to the
//! wrong one. The real `dlopen` is jumped to, not called: it looks at its caller for the paths to search.

#![expect(unsafe_code, reason = "jumps to the loader's function")]

use std::arch::naked_asm;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The flags that are passed on.
static FLAGS: AtomicU32 = AtomicU32::new(u32::MAX);
/// The real function; null until it is needed.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// From now on `RTLD_DEEPBIND` is not passed on.
pub(crate) fn strip_deep_binding() {
    FLAGS.store(!(libc::RTLD_DEEPBIND as u32), Ordering::Relaxed);
}

/// Finds the real function, which is always there: this library needs the one that has it.
extern "C" fn find() -> *mut c_void {
    let real = crate::loader::next(c"dlopen");
    REAL.store(real, Ordering::Release);
    real
}

/// Opens a library, as the loader does.
///
/// # Safety
/// As of the C library.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "endbr64",
        "and esi, dword ptr [rip + {flags}]",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        flags = sym FLAGS,
        real = sym REAL,
        find = sym find,
    )
}

/// Opens a library, as the loader does.
///
/// # Safety
/// As of the C library.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "hint #34",
        "adrp x16, {flags}",
        "ldr w16, [x16, :lo12:{flags}]",
        "and w1, w1, w16",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        flags = sym FLAGS,
        real = sym REAL,
        find = sym find,
    )
}
