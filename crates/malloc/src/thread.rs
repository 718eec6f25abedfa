//! The words that each thread has for the library that serves: they lie in the block that every thread is born with.

#![expect(unsafe_code, reason = "asks the loader by assembly where thread-local words lie")]

use std::arch::global_asm;

use lowtide_core::preload::THREAD_WORDS;

global_asm!(
    ".pushsection .tbss.lowtide,\"awT\",@nobits",
    ".p2align 3",
    ".globl lowtide_thread_words",
    ".hidden lowtide_thread_words",
    ".type lowtide_thread_words, @object",
    ".size lowtide_thread_words, {bytes}",
    "lowtide_thread_words:",
    ".zero {bytes}",
    ".popsection",
    bytes = const THREAD_WORDS * size_of::<u64>(),
);

/// How far they are from a thread's pointer: the same for every thread, because this library is there from the start.
#[cfg(target_arch = "x86_64")]
pub(crate) fn words() -> isize {
    let distance;
    // SAFETY: reads what the loader has settled.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr [rip + lowtide_thread_words@GOTTPOFF]",
            out(reg) distance,
            options(nostack, pure, readonly),
        );
    }
    distance
}

/// How far they are from a thread's pointer: the same for every thread, because this library is there from the start.
#[cfg(target_arch = "aarch64")]
pub(crate) fn words() -> isize {
    let distance;
    // SAFETY: reads what the loader has settled.
    unsafe {
        std::arch::asm!(
            "adrp {0}, :gottprel:lowtide_thread_words",
            "ldr {0}, [{0}, :gottprel_lo12:lowtide_thread_words]",
            out(reg) distance,
            options(nostack, pure, readonly),
        );
    }
    distance
}
