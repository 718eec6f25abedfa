//! What the two libraries of the host tell each other. One goes under every program that is started under Lowtide; most of them end soon, so
//! it is as little as can be: a table of functions, which lead to the underlying allocator. The other serves. The first opens it in a
//! process that turns out to be worth it, and its functions take the places in the table.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::AtomicPtr;

/// The file of the library that serves; it lies beside the one that goes under the program.
pub const SERVING: &str = "liblowtide_serving.so";

/// Which shape the things below have. Files of two versions that lie beside each other know it by this.
pub const VERSION: u32 = 2;

/// The smallest request that is Lowtide's business.
pub const LARGE: usize = 32 << 10;

/// How much has to be asked for in large blocks before a program is worth it, and worth telling of.
pub const WORTH: u64 = 64 << 20;

/// A block that was handed out before the underlying allocator was known is preceded by its size, so many bytes before it.
pub const EARLY_UNIT: usize = 16;

/// What the names of the variables begin with that are of interest to the library that serves. They are kept as they are when the program
/// starts; later it may change or overwrite them.
pub const KEPT: [&str; 7] =
    ["LOWTIDE", "MALLOC", "ENABLE_MEMORY", "START_STATISTIC", "STABLE_STATISTIC", "MAX_STATISTIC", "GLIBC_TUNABLES"];

/// The variable that wants the arena at once, and its value.
pub const ALWAYS: &str = "LOWTIDE_ARENA=always";

/// The variable with the folder for the summary, and the one with the process that wants one of each program that it starts itself.
pub const SUMMARY: &str = "LOWTIDE_SUMMARY=";
/// See [`SUMMARY`].
pub const RUNNER: &str = "LOWTIDE_RUNNER=";

/// A place in the table: a function of the type that its name has in the C library.
pub type Entry = AtomicPtr<c_void>;

macro_rules! entries {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// What a program calls, by the names that the C library has for it.
        #[derive(Debug)]
        #[repr(C)]
        pub struct Entries {
            $($(#[$meta])* pub $name: Entry,)*
        }
    };
}

entries! {
    /// `free`.
    free,
    /// `realloc`.
    realloc,
    /// `malloc_usable_size`.
    malloc_usable_size,
    /// `malloc`.
    malloc,
    /// `calloc`.
    calloc,
    /// `memalign`.
    memalign,
    /// `posix_memalign`.
    posix_memalign,
    /// `aligned_alloc`.
    aligned_alloc,
    /// `valloc`.
    valloc,
    /// `pvalloc`.
    pvalloc,
    /// `malloc_trim`.
    malloc_trim,
    /// `mallinfo2`.
    mallinfo2,
    /// `mprotect`.
    mprotect,
    /// `madvise`.
    madvise,
    /// `mlock`.
    mlock,
    /// `mlock2`.
    mlock2,
    /// `mlockall`.
    mlockall,
    /// `prlimit`.
    prlimit,
    /// `prctl`.
    prctl,
    /// `unshare`.
    unshare,
    /// `setns`.
    setns,
    /// `_exit`.
    exit,
    /// The process ends by `exit`, or by the end of `main`.
    finish,
    /// The process ends by `quick_exit`.
    quick_finish,
    /// The process is about to fork.
    fork_prepare,
    /// It has forked, and is the parent.
    fork_parent,
    /// It has forked, and is the child.
    fork_child,
    /// `lowtide_step`.
    step,
    /// `lowtide_expect_steps`.
    expect_steps,
    /// `lowtide_trim`.
    trim,
    /// `lowtide_mark`.
    mark,
}

/// The functions of the underlying allocator, each of the type that its name has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Underlying {
    /// Whether it is glibc.
    pub is_glibc: bool,
    /// `malloc`.
    pub malloc: *mut c_void,
    /// `free`.
    pub free: *mut c_void,
    /// `calloc`.
    pub calloc: *mut c_void,
    /// `realloc`.
    pub realloc: *mut c_void,
    /// `memalign`.
    pub memalign: *mut c_void,
    /// What a name means for those who come after the library under the program; null for nothing. The loader may allocate.
    pub next: extern "C" fn(*const c_char) -> *mut c_void,
    /// Where blocks lie that were handed out before the underlying allocator was known. Each is preceded by its size, and never goes back.
    pub early: usize,
    /// How long that range is; zero where there are no such blocks.
    pub early_bytes: usize,
}

/// How the process was found.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Start {
    /// What it was called by, and its variables of interest, each of them ended by a zero.
    pub words: *const u8,
    /// How many bytes that is.
    pub words_bytes: usize,
    /// Whether not all of them had room.
    pub is_cut: bool,
    /// Whether it has just begun.
    pub is_new: bool,
    /// How many bytes it has asked for in large blocks.
    pub asked: u64,
    /// How far from a thread's pointer the words lie that are for the library that serves, zero at first.
    pub thread_words: isize,
}

/// How many words each thread has for the library that serves. They are the other's, which is there from the start: what comes later may find no
/// room beside a thread's pointer, or take it from who needs it.
pub const THREAD_WORDS: usize = 3;

/// All that is told.
#[derive(Debug)]
#[repr(C)]
pub struct Opening {
    /// [`VERSION`].
    pub version: u32,
    /// The table.
    pub entries: *const Entries,
    /// Who served until now.
    pub underlying: Underlying,
    /// How the process was found.
    pub start: Start,
}

/// The function of the library that serves which takes the places in the table. Zero, and it serves from now on; anything else, and
/// the table is as it was.
pub type Attach = unsafe extern "C" fn(*const Opening) -> c_int;

/// Its name.
pub const ATTACH: &CStr = c"lowtide_attach";

/// Whether a process that calls `prctl` with this is about to be killed for calls that it does not make itself.
#[must_use]
pub const fn forbids_calls(option: c_int) -> bool {
    const PR_SET_SECCOMP: c_int = 22;
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    matches!(option, PR_SET_SECCOMP | PR_SET_NO_NEW_PRIVS)
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS, KEPT, RUNNER, SUMMARY};
    use crate::options::{self, TABLE};

    #[test]
    fn all_variables_are_kept() {
        for entry in TABLE {
            let older = entry.older.iter().filter_map(|older| older.variable);
            let former = entry.former.iter().map(|former| former.variable);
            for variable in former.chain(older).chain([entry.variable]) {
                assert!(KEPT.iter().any(|start| variable.starts_with(start)), "{variable}");
            }
        }
    }

    #[test]
    fn variables_have_the_names_of_their_options() {
        assert_eq!(ALWAYS, format!("{}=always", options::ARENA.variable()));
        assert_eq!(SUMMARY, format!("{}=", options::SUMMARY.variable()));
        assert_eq!(RUNNER, format!("{}=", options::RUNNER.variable()));
    }
}
