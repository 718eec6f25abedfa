//! What the variables ask for, read once before the program's first line: later it may change or overwrite them.

#![expect(unsafe_code, reason = "keeps the settings for as long as the process runs, and asks for a limit")]

use std::env;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_learn::LearnerOptions;
use lowtide_memory::Pages;
use lowtide_pool::HostArenaOptions;

use crate::serving::underlying;

/// When to give back what the allocator below holds and nobody uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TrimBelow {
    /// Only when the program asks.
    Never,
    /// Whenever this much time has passed.
    Every(Duration),
    /// After each step of the program.
    Step,
}

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The arena's pages.
    pub(crate) pages: Pages,
    prefault: bool,
    decay: Option<Duration>,
    learn: bool,
    statistic: Option<LearnerOptions>,
    /// When to trim the allocator below.
    pub(crate) trim_below: TrimBelow,
    /// The folder for the summary.
    pub(crate) summary: Option<PathBuf>,
    /// Where `lowtide watch` hears of marks.
    pub(crate) marks: Option<PathBuf>,
    /// The process that wants a summary of those it starts, whatever they did; of others it wants those that had large blocks.
    pub(crate) runner: Option<u32>,
    /// The allocator below, by name.
    pub(crate) below: String,
    /// The program, by the name it was called by.
    pub(crate) command: String,
    /// What was asked for and makes no sense, a sentence each.
    pub(crate) warnings: Vec<String>,
}

static SETTINGS: AtomicPtr<Settings> = AtomicPtr::new(ptr::null_mut());

impl Settings {
    /// The settings, once they were read.
    pub(crate) fn get() -> Option<&'static Self> {
        // SAFETY: null, or made of a box that nobody frees.
        unsafe { SETTINGS.load(Ordering::Acquire).as_ref() }
    }

    /// Reads them.
    pub(crate) fn read() {
        let settings = Self::of(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
        SETTINGS.store(Box::into_raw(Box::new(settings)), Ordering::Release);
    }

    fn of(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let mut warnings = Vec::new();
        let mut read = |name, range, parse: &dyn Fn(&str) -> Option<Value>| {
            let value = lookup(name).filter(|value| !value.is_empty())?;
            let parsed = parse(&value);
            if parsed.is_none() {
                warnings.push(format!("`{name}` cannot be `{value}`: it is {range}; the default is used"));
            }
            parsed
        };
        let pages = read("LOWTIDE_PAGES", "`base`, `transparent`, `2M` or `1G`", &pages);
        let prefault = read("LOWTIDE_PREFAULT", "`0` or `1`", &switch);
        let learn = read("LOWTIDE_LEARN", "`0` or `1`", &switch);
        let decay = read("LOWTIDE_DECAY", "a number of seconds", &seconds);
        let trim_below = read("LOWTIDE_TRIM_BELOW", "a number of seconds above 0, or `step`", &|value| match value {
            "step" => Some(Value::Step),
            _ => seconds(value).filter(|value| *value != Value::Time(Duration::ZERO)),
        });
        let statistic = LearnerOptions::from_settings(&lookup).unwrap_or_else(|error| {
            warnings.push(format!("{error}; the default is used"));
            LearnerOptions::default()
        });
        Self {
            pages: if let Some(Value::Pages(pages)) = pages { pages } else { Pages::Transparent },
            prefault: prefault == Some(Value::Switch(true)),
            decay: if let Some(Value::Time(time)) = decay { Some(time) } else { None },
            learn: learn != Some(Value::Switch(false)),
            statistic: (statistic != LearnerOptions::default()).then_some(statistic),
            trim_below: match trim_below {
                Some(Value::Time(time)) => TrimBelow::Every(time),
                Some(Value::Step) => TrimBelow::Step,
                _ => TrimBelow::Never,
            },
            summary: lookup("LOWTIDE_SUMMARY")
                .filter(|folder| !folder.is_empty())
                .map(|folder| std::path::absolute(&folder).unwrap_or_else(|_| folder.into())),
            marks: lookup("LOWTIDE_MARKS").filter(|path| !path.is_empty()).map(PathBuf::from),
            runner: lookup("LOWTIDE_RUNNER").and_then(|number| number.parse().ok()),
            below: match lookup("LOWTIDE_BELOW") {
                _ if underlying::is_glibc() => GLIBC.to_owned(),
                // Whoever started the program cannot know what it is linked with.
                Some(name) if !name.is_empty() && name != GLIBC => name,
                _ => "the program's own".to_owned(),
            },
            command: command(),
            warnings,
        }
    }

    /// What they say about the arena.
    pub(crate) fn arena(&self) -> HostArenaOptions {
        let mut options = HostArenaOptions::default();
        if let Some(limit) = address_limit() {
            options.range = options.range.min(Bytes::new(limit / SHARE / ROUND * ROUND));
        }
        options.pages.pages = self.pages;
        options.pages.prefault = self.prefault;
        if let Some(decay) = self.decay {
            options.decay = decay;
        }
        if let (Some(learner), Some(statistic)) = (&mut options.learner, &self.statistic) {
            let LearnerOptions { enabled, start, stable, max, relearn, .. } = *statistic;
            *learner = LearnerOptions { enabled, start, stable, max, relearn, ..learner.clone() };
        }
        if !self.learn || options.learner.as_ref().is_some_and(|learner| !learner.enabled) {
            options.learner = None;
            options.find_steps = None;
        }
        options
    }
}

/// The allocator below where no other is.
const GLIBC: &str = "glibc";

/// What a range that is cut short is a multiple of.
const ROUND: u64 = 2 << 20;

/// The part of the addresses that a process may have which the arena takes at most: the rest of the program needs addresses
/// too.
pub(crate) const SHARE: u64 = 4;

/// How many addresses the process may have, where that is limited.
fn address_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: writes the limit there.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[derive(Clone, PartialEq, Eq)]
enum Value {
    Pages(Pages),
    Switch(bool),
    Time(Duration),
    Step,
}

fn pages(value: &str) -> Option<Value> {
    let pages = match value {
        "base" => Pages::Base,
        "transparent" => Pages::Transparent,
        "2M" => Pages::Huge2M,
        "1G" => Pages::Huge1G,
        _ => return None,
    };
    Some(Value::Pages(pages))
}

fn switch(value: &str) -> Option<Value> {
    match value {
        "0" => Some(Value::Switch(false)),
        "1" => Some(Value::Switch(true)),
        _ => None,
    }
}

fn seconds(value: &str) -> Option<Value> {
    Duration::try_from_secs_f64(value.trim().parse().ok()?).ok().map(Value::Time)
}

fn command() -> String {
    let name = env::args_os().next().unwrap_or_default();
    PathBuf::from(name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
