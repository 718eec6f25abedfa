//! What the variables ask for, as they were before the program's first line: later it may change or overwrite them.

#![expect(unsafe_code, reason = "keeps the settings for as long as the process runs")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use lowtide_core::Bytes;
use lowtide_core::options::{
    ARENA, ArenaUse, DECAY, Every, MARKS, NOT, ONLY, Options, PAGES, PREFAULT, Pages, RUNNER, SUMMARY, Scope,
    TRIM_UNDERLYING, UNDERLYING,
};
use lowtide_pool::HostArenaOptions;

use crate::serving::underlying;
use crate::system::process::address_limit;

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Settings {
    options: Options,
    /// When the arena serves.
    pub(crate) arena_use: ArenaUse,
    /// The arena's pages.
    pub(crate) pages: Pages,
    /// When to trim the underlying allocator, other than when the program asks.
    pub(crate) trim_underlying: Option<Every>,
    /// The folder for the summary.
    pub(crate) summary: Option<PathBuf>,
    /// Where `lowtide watch` gets marks.
    pub(crate) marks: Option<PathBuf>,
    /// The process that wants a summary of those it starts, whatever they did; of others it wants those that had large
    /// blocks.
    pub(crate) runner: Option<u32>,
    /// The underlying allocator, by name.
    pub(crate) underlying: String,
    /// Whether glibc's memory may be in explicit huge pages, which do not go back in parts; some systems round a part up.
    pub(crate) is_heap_huge: bool,
    /// The program, by the name it was called by.
    pub(crate) command: String,
    /// What was asked for and makes no sense, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// What this library reads.
const SCOPES: [Scope; 5] = [Scope::Host, Scope::Underlying, Scope::Learning, Scope::Watching, Scope::Internal];

/// How glibc's allocator is set.
const TUNABLES: &str = "GLIBC_TUNABLES";

static SETTINGS: AtomicPtr<Settings> = AtomicPtr::new(ptr::null_mut());

impl Settings {
    /// The settings, once they were read.
    pub(crate) fn get() -> Option<&'static Self> {
        // SAFETY: null, or made of a box that nobody frees.
        unsafe { SETTINGS.load(Ordering::Acquire).as_ref() }
    }

    /// Reads them. A library cannot refuse a program: what makes no sense is a warning, and the default is used.
    pub(crate) fn read(words: &[u8], is_cut: bool) {
        let mut settings = Self::of(words);
        if is_cut {
            settings.warnings.push("the variables for Lowtide are too long, and some of them were not read".to_owned());
        }
        SETTINGS.store(Box::into_raw(Box::new(settings)), Ordering::Release);
    }

    /// Those of a process that was called by the first of the words, with the variables that the others are; each ends in a zero.
    fn of(words: &[u8]) -> Self {
        let mut words = words.split(|byte| *byte == 0);
        let command = file_name(words.next().unwrap_or_default());
        let lookup = |name: &str| {
            let value = |word: &[u8]| Some(word.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned());
            words.clone().find_map(value).map(OsString::from_vec)
        };
        let (options, errors) = Options::from_variables(&SCOPES, lookup);
        Self {
            arena_use: if is_left_out(&command, &options) { ArenaUse::Never } else { options.get(ARENA) },
            pages: options.get(PAGES),
            trim_underlying: options.get(TRIM_UNDERLYING),
            summary: options.get(SUMMARY).map(|folder| std::path::absolute(&folder).unwrap_or(folder)),
            marks: options.get(MARKS),
            runner: options.get(RUNNER).and_then(|number| u32::try_from(number).ok()),
            underlying: match options.get(UNDERLYING) {
                _ if underlying::is_glibc() => GLIBC.to_owned(),
                // Whoever started the program cannot know what it is linked with.
                name if name != GLIBC => name,
                _ => "the program's own".to_owned(),
            },
            is_heap_huge: lookup(TUNABLES).is_some_and(|set| set.to_string_lossy().contains("hugetlb")),
            command,
            warnings: errors.iter().map(|error| format!("{error}; the default is used")).collect(),
            options,
        }
    }

    /// What they say about the arena.
    pub(crate) fn arena(&self) -> HostArenaOptions {
        let mut options = HostArenaOptions::default();
        if let Some(limit) = address_limit() {
            options.range = options.range.min(Bytes::new(limit / SHARE / ROUND * ROUND));
        }
        options.pages.pages = self.pages;
        options.pages.prefault = self.options.get(PREFAULT);
        options.decay = self.options.get(DECAY);
        options.learner = options.learner.map(|learner| learner.with(&self.options)).filter(|learner| learner.enabled);
        if options.learner.is_none() {
            options.find_steps = None;
        }
        options
    }
}

/// The underlying allocator where no other is.
const GLIBC: &str = "glibc";

/// What a range that is cut short is a multiple of.
const ROUND: u64 = 2 << 20;

/// The part of the addresses that a process may have which the arena takes at most: the rest of the program needs
/// addresses too.
pub(crate) const SHARE: u64 = 4;

/// Whether a program of this name is not among those that are to be served.
fn is_left_out(command: &str, options: &Options) -> bool {
    let names = |list: &Option<String>| list.as_ref().map(|list| list.split(',').any(|name| name.trim() == command));
    names(&options.get(ONLY)) == Some(false) || names(&options.get(NOT)) == Some(true)
}

fn file_name(path: &[u8]) -> String {
    String::from_utf8_lossy(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Settings {
        let words = variables.iter().map(|(name, value)| format!("{name}={value}\0"));
        Settings::of(["/bin/program\0".to_owned()].into_iter().chain(words).collect::<String>().as_bytes())
    }

    #[test]
    fn without_variables_the_arena_is_the_usual_one() {
        let (arena, usual) = (of(&[]).arena(), HostArenaOptions::default());
        assert_eq!((arena.pages, arena.decay, arena.learner), (usual.pages, usual.decay, usual.learner));
        assert_eq!(arena.find_steps, usual.find_steps);
    }

    #[test]
    fn variables_reach_the_arena() {
        let arena = of(&[
            ("LOWTIDE_PAGES", "base"),
            ("LOWTIDE_PREFAULT", "1"),
            ("LOWTIDE_DECAY", "2.5"),
            ("START_STATISTIC_STEP", "7"),
        ])
        .arena();
        assert_eq!((arena.pages.pages, arena.pages.prefault, arena.decay.as_secs_f64()), (Pages::Base, true, 2.5));
        let learner = arena.learner.unwrap();
        assert_eq!((learner.start, learner.stable, learner.max, learner.relearn), (7, 10, 100, false));
        assert_eq!(learner.patterns, HostArenaOptions::default().learner.unwrap().patterns);
    }

    #[test]
    fn learning_is_switched_off_by_either_name() {
        for variable in ["LOWTIDE_LEARN", "ENABLE_MEMORY_OPTIMIZATION"] {
            let arena = of(&[(variable, "0")]).arena();
            assert_eq!((arena.learner, arena.find_steps), (None, None), "{variable}");
        }
    }

    #[test]
    fn programs_are_left_out_by_name() {
        let is_left_out = |variables: &[(&str, &str)]| {
            let lookup = |name: &str| variables.iter().find(|known| known.0 == name).map(|known| known.1.into());
            super::is_left_out("gcc", &Options::from_variables(&SCOPES, lookup).0)
        };
        assert!(!is_left_out(&[]));
        assert!(is_left_out(&[("LOWTIDE_NOT", "ld, gcc")]) && !is_left_out(&[("LOWTIDE_NOT", "ld")]));
        assert!(is_left_out(&[("LOWTIDE_ONLY", "python")]) && !is_left_out(&[("LOWTIDE_ONLY", "python,gcc")]));
        assert!(is_left_out(&[("LOWTIDE_ONLY", "gcc"), ("LOWTIDE_NOT", "gcc")]));
        let off = |variables: &[(&str, &str)]| of(variables).arena_use;
        assert_eq!(off(&[("ENABLE_MEMORY_OPTIMIZATION", "0")]), ArenaUse::Never);
        assert_eq!(off(&[("ENABLE_MEMORY_OPTIMIZATION", "0"), ("LOWTIDE_ARENA", "always")]), ArenaUse::Always);
    }

    #[test]
    fn what_makes_no_sense_is_a_warning_and_leaves_the_default() {
        let settings = of(&[("LOWTIDE_PAGES", "4K"), ("LOWTIDE_RUNNER", "me"), ("MALLOC_ARENA_MAX", "0x2")]);
        assert_eq!(settings.pages, Pages::Transparent);
        assert_eq!(settings.warnings.len(), 2, "{:?}", settings.warnings);
        let first = "`LOWTIDE_PAGES` cannot be `4K`: it is `base`, `transparent`, `2M` or `1G`; the default is used";
        assert_eq!(settings.warnings[0], first);
    }
}
