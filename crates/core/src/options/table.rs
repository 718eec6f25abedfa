//! The table. An option is one entry here: its flag, its variable, its key in `lowtide.toml`, its line in `lowtide config`
//! and in the reference page follow from it. The sentence above an entry is its help.

use std::path::PathBuf;
use std::time::Duration;

use super::choices::{ArenaUse, Pages};
use super::entry::{Entry, Former, Older, Scope};
use super::key::Key;
use super::kind::{Every, Kind};
use crate::Bytes;

/// Makes the table, and a typed key of each entry.
macro_rules! table {
    ($($(#[doc = $sentence:literal])+ $key:ident: $type:ty = { $($field:ident: $value:expr),+ $(,)? })+) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the keys are")]
        enum Index { $($key),+ }

        pub(super) const ENTRIES: &[Entry] = &[$(Entry {
            sentence: concat!($($sentence),+).trim_ascii(),
            $($field: $value,)+
            ..Entry::USUAL
        }),+];

        /// Every option.
        pub static TABLE: &[Entry] = ENTRIES;

        $(
            $(#[doc = $sentence])+
            pub const $key: Key<$type> = Key::new(Index::$key as usize, &ENTRIES[Index::$key as usize]);
        )+
    };
}

/// What the older system of this name has.
const fn deeprec(variable: Option<&'static str>, kind: Kind, default: &'static str) -> Older {
    Older { system: "DeepRec", variable, kind, default: Some(default) }
}

table! {
    /// End the program where Lowtide cannot serve it, instead of going on without
    STRICT: bool = { name: "strict", variable: "LOWTIDE_STRICT", kind: Kind::Switch, default: Some("0"), scope: Scope::Run }

    /// When large blocks come from Lowtide's arena
    ARENA: ArenaUse = {
        name: "arena",
        variable: "LOWTIDE_ARENA",
        kind: ArenaUse::KIND,
        default: Some("auto"),
        scope: Scope::Host,
    }

    /// Serve programs of these names alone, of all that the program starts; separated by commas
    ONLY: Option<String> = {
        name: "only",
        variable: "LOWTIDE_ONLY",
        kind: Kind::Names,
        scope: Scope::Host,
    }

    /// Leave programs of these names out; separated by commas
    NOT: Option<String> = {
        name: "not",
        variable: "LOWTIDE_NOT",
        kind: Kind::Names,
        scope: Scope::Host,
    }

    /// The pages of large blocks
    PAGES: Pages = {
        name: "pages",
        variable: "LOWTIDE_PAGES",
        kind: Pages::KIND,
        default: Some("transparent"),
        scope: Scope::Host,
    }

    /// Touch pages before the program does, so that it never waits for one
    PREFAULT: bool = {
        name: "prefault",
        variable: "LOWTIDE_PREFAULT",
        kind: Kind::Switch,
        default: Some("0"),
        scope: Scope::Host,
    }

    /// Return memory to the system that was not needed for this long; 0 is at once
    DECAY: Duration = {
        name: "decay",
        variable: "LOWTIDE_DECAY",
        kind: Kind::Seconds,
        default: Some("10"),
        scope: Scope::Host,
    }

    /// Learn the steps of the program and plan them
    LEARN: bool = {
        name: "learn",
        variable: "LOWTIDE_LEARN",
        kind: Kind::Switch,
        default: Some("1"),
        scope: Scope::Learning,
        older: &[deeprec(Some("ENABLE_MEMORY_OPTIMIZATION"), Kind::Switch, "1")],
    }

    /// The first step to learn from
    LEARN_START: u64 = {
        name: "learn-start",
        variable: "LOWTIDE_LEARN_START",
        kind: Kind::count(0),
        default: Some("1"),
        scope: Scope::Learning,
        older: &[deeprec(Some("START_STATISTIC_STEP"), Kind::count(0), "100")],
    }

    /// How many steps in a row must bring nothing new before a plan is used; with 0, the first plan is
    LEARN_STABLE: u64 = {
        name: "learn-stable",
        variable: "LOWTIDE_LEARN_STABLE",
        kind: Kind::count(0),
        default: Some("0"),
        scope: Scope::Learning,
        older: &[deeprec(Some("STABLE_STATISTIC_STEP"), Kind::count(1), "10")],
    }

    /// After how many learned steps a plan is used even if steps still bring something new
    LEARN_MAX: u64 = {
        name: "learn-max",
        variable: "LOWTIDE_LEARN_MAX",
        kind: Kind::count(1),
        default: Some("20"),
        scope: Scope::Learning,
        older: &[deeprec(Some("MAX_STATISTIC_STEP"), Kind::count(1), "100")],
    }

    /// Go on learning once a plan is used
    RELEARN: bool = {
        name: "relearn",
        variable: "LOWTIDE_RELEARN",
        kind: Kind::Switch,
        default: Some("1"),
        scope: Scope::Learning,
        older: &[deeprec(None, Kind::Switch, "0")],
    }

    /// The underlying allocator, which serves small blocks: glibc, jemalloc, mimalloc, tcmalloc, or the path of such a
    /// library
    UNDERLYING: String = {
        name: "underlying",
        variable: "LOWTIDE_UNDERLYING",
        kind: Kind::Text,
        default: Some("glibc"),
        scope: Scope::Underlying,
        former: &[Former { name: "below", variable: "LOWTIDE_BELOW" }],
    }

    /// Call `malloc_trim(0)` of the underlying allocator every so often, or at every step
    TRIM_UNDERLYING: Option<Every> = {
        name: "trim-underlying",
        variable: "LOWTIDE_TRIM_UNDERLYING",
        kind: Kind::SecondsOrStep,
        scope: Scope::Underlying,
        former: &[Former { name: "trim-below", variable: "LOWTIDE_TRIM_BELOW" }],
    }

    /// glibc returns free memory at the end of its heap to the system from this size on
    TRIM_THRESHOLD: Option<Bytes> = {
        name: "trim-threshold",
        variable: "MALLOC_TRIM_THRESHOLD_",
        kind: Kind::SIZE,
        scope: Scope::Underlying,
    }

    /// glibc has at most this many arenas
    ARENA_MAX: Option<u64> = {
        name: "arena-max",
        variable: "MALLOC_ARENA_MAX",
        kind: Kind::count(1),
        scope: Scope::Underlying,
    }

    /// Settings of jemalloc, as its documents have them
    MALLOC_CONF: Option<String> = {
        name: "malloc-conf",
        variable: "MALLOC_CONF",
        kind: Kind::Text,
        scope: Scope::Underlying,
    }

    /// The most that is taken of each device: bytes, or such as 40GiB
    LIMIT: Option<Bytes> = { name: "limit", variable: "LOWTIDE_LIMIT", kind: Kind::SIZE, scope: Scope::Device }

    /// CPU tensors below this size are not recorded; of devices everything is
    MIN_SIZE: Bytes = {
        name: "min-size",
        variable: "LOWTIDE_MIN_SIZE",
        kind: Kind::SIZE,
        default: Some("4KiB"),
        scope: Scope::Recording,
    }

    /// The FIFO to which a watched program writes a line where an action ends
    MARKS: Option<PathBuf> = { name: "marks", variable: "LOWTIDE_MARKS", kind: Kind::Path, scope: Scope::Watching }

    /// The library that is loaded into a program, where it is not beside `lowtide`
    LIBRARY: Option<PathBuf> = { name: "library", variable: "LOWTIDE_LIBRARY", kind: Kind::Path, scope: Scope::Places }

    /// The Python that has the package, where it is not the program's
    PYTHON: Option<PathBuf> = { name: "python", variable: "LOWTIDE_PYTHON", kind: Kind::Path, scope: Scope::Places }

    /// The library of the CUDA driver, where it is not `libcuda.so.1`
    CUDA_DRIVER: Option<PathBuf> = {
        name: "cuda-driver",
        variable: "LOWTIDE_CUDA_DRIVER",
        kind: Kind::Path,
        scope: Scope::Places,
    }

    /// The folder with data for tests and `lowtide bench`
    DATA: Option<PathBuf> = { name: "data", variable: "LOWTIDE_DATA", kind: Kind::Path, scope: Scope::Places }

    /// What is served in a program: `host`, `device`, `cpu`, `pinned`, with commas between them
    RUN: Option<String> = { name: "run", variable: "LOWTIDE_RUN", kind: Kind::Text, scope: Scope::Internal }

    /// The process that wants a summary of each process it starts
    RUNNER: Option<u64> = {
        name: "runner",
        variable: "LOWTIDE_RUNNER",
        kind: Kind::Count { least: 1, most: u32::MAX as u64 },
        scope: Scope::Internal,
    }

    /// The folder in which processes leave their summaries
    SUMMARY: Option<PathBuf> = { name: "summary", variable: "LOWTIDE_SUMMARY", kind: Kind::Path, scope: Scope::Internal }

    /// The trace that a program writes, before its process number goes into the name
    RECORD: Option<PathBuf> = { name: "record", variable: "LOWTIDE_RECORD", kind: Kind::Path, scope: Scope::Internal }

    /// The file that lists the traces that processes have written
    RECORD_LIST: Option<PathBuf> = {
        name: "record-list",
        variable: "LOWTIDE_RECORD_LIST",
        kind: Kind::Path,
        scope: Scope::Internal,
    }

    /// The file to which every process that imports PyTorch adds a byte
    IMPORTED: Option<PathBuf> = { name: "imported", variable: "LOWTIDE_IMPORTED", kind: Kind::Path, scope: Scope::Internal }

    /// What marks the end of an action for `lowtide watch`: `step`
    MARK: Option<String> = { name: "mark", variable: "LOWTIDE_MARK", kind: Kind::Text, scope: Scope::Internal }
}
