//! What a process leaves behind when it ends: one JSON file, named by its number, in the folder that `LOWTIDE_SUMMARY`
//! names. A process that is killed leaves none, and neither does one of many that had no large blocks.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lowtide_core::options::ArenaUse;
use lowtide_core::preload::WORTH;
use lowtide_memory::system::files::own;
use lowtide_pool::{HostArena, HostStats};
use serde::Serialize;

use crate::process::{evidence, exit, lifecycle, start};
use crate::report::marks::Mark;
use crate::report::notice::say;
use crate::report::{faults, marks};
use crate::serving::{large, slabs};
use crate::settings::Settings;
use crate::system::process;

#[derive(Debug, Serialize)]
struct Summary<'a> {
    version: u32,
    pid: u32,
    command: &'a str,
    seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    steps: u64,
    steps_by: &'static str,
    planned_from_step: Option<u64>,
    faults: Faults,
    peak_rss_bytes: u64,
    rss_bytes: u64,
    /// Which the system does not count as resident.
    explicit_huge_bytes: u64,
    large: Large,
    huge_page_bytes: u64,
    arena_resident_bytes: u64,
    below: &'a str,
    stepped_aside: Option<&'static str>,
    warnings: Vec<String>,
    marks: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Faults {
    total: u64,
    /// None where there were no steps.
    per_step_before_plan: Option<f64>,
    per_step_after_plan: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Large {
    allocations: u64,
    hits: u64,
    misses: u64,
    peak_live_bytes: u64,
    held_bytes: u64,
    /// Who served them: `arena`; `slabs` or `underlying` where the arena was not needed; `off` where nobody wants it.
    by: &'static str,
    /// What was asked for before the arena was made, if it was.
    asked_before_bytes: u64,
}

/// Whether it is being written, or was.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether it was asked for, and not yet begun.
pub(crate) fn is_wanted() -> bool {
    Settings::get().is_some_and(|settings| settings.summary.is_some() && is_worth_it(settings))
        && !BEGUN.load(Ordering::Relaxed)
}

/// Whether there is anything to report: programs start others by the thousand that do nothing to speak of.
fn is_worth_it(settings: &Settings) -> bool {
    let had_large = lifecycle::arena().is_some() || evidence::asked() >= WORTH;
    let did = had_large || faults::marked() > 0 || marks::are_any();
    let went_wrong = lifecycle::reason().is_some() || !settings.warnings.is_empty();
    did || went_wrong || settings.runner.is_none_or(|runner| runner == std::os::unix::process::parent_id())
}

/// A forked child leaves one of its own.
pub(crate) fn forget() {
    BEGUN.store(false, Ordering::Relaxed);
}

/// Writes it, where it was asked for.
pub(crate) fn write() {
    let Some(settings) = Settings::get() else { return };
    let Some(folder) = settings.summary.as_ref().filter(|_| is_worth_it(settings)) else { return };
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    let (marks, missed) = marks::all();
    let mut summary = summary(settings, marks);
    if missed > 0 {
        summary.warnings.push(format!("{missed} marks were not kept"));
    }
    let Ok(text) = serde_json::to_vec(&summary) else { return };
    match put(folder, summary.pid, &text) {
        // Who wanted it has gone, as where a daemon outlives the program that started it.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => say(format_args!("no summary in {}: {error}", folder.display())),
        Ok(()) => {}
    }
}

/// Beside its place, then renamed: who finds the file finds it whole.
fn put(folder: &Path, pid: u32, text: &[u8]) -> std::io::Result<()> {
    let beside = folder.join(format!(".{pid}.json"));
    fs::write(&beside, text)?;
    fs::rename(beside, folder.join(format!("{pid}.json")))
}

fn summary(settings: &Settings, marks: Vec<Mark>) -> Summary<'_> {
    let stats = stats().unwrap_or_default();
    let usage = process::usage();
    let (before, after) = faults::per_step();
    let marked = faults::marked();
    let steps = stats.steps.max(marked);
    let steps_by = match (marked, steps) {
        (0, 0) => "none",
        (0, _) => "period",
        _ => "marks",
    };
    let memory = own::memory();
    let arena = lifecycle::arena().map(|_| own::resident_in(&lifecycle::range())).unwrap_or_default();
    Summary {
        version: 1,
        pid: std::process::id(),
        command: &settings.command,
        seconds: start::elapsed().as_secs_f64(),
        user_seconds: usage.user,
        system_seconds: usage.system,
        steps,
        steps_by,
        planned_from_step: stats.planned_from,
        faults: Faults {
            total: usage.minor,
            per_step_before_plan: (steps > 0).then(|| before.unwrap_or(usage.minor as f64 / steps as f64)),
            per_step_after_plan: after,
        },
        peak_rss_bytes: memory.peak.get(),
        rss_bytes: memory.resident.get(),
        explicit_huge_bytes: memory.explicit_huge.get(),
        huge_page_bytes: arena.huge.get(),
        arena_resident_bytes: arena.bytes.get(),
        below: &settings.underlying,
        stepped_aside: lifecycle::reason(),
        warnings: settings.warnings.iter().chain(&stats.warnings).cloned().collect(),
        large: large(&stats),
        marks,
    }
}

/// What the arena has done; none where it cannot be asked.
fn stats() -> Option<HostStats> {
    if exit::is_last() {
        let arena = lifecycle::arena()?;
        exit::ask(|| arena.try_stats())
    } else {
        large::call(lifecycle::arena(), HostArena::stats)
    }
}

fn served_by() -> &'static str {
    let is_off = || Settings::get().is_some_and(|settings| settings.arena_use == ArenaUse::Never);
    match lifecycle::arena() {
        Some(_) => "arena",
        None if is_off() => "off",
        None if slabs::are_serving() => "slabs",
        None => "underlying",
    }
}

fn large(stats: &HostStats) -> Large {
    Large {
        allocations: stats.allocations,
        hits: stats.hits,
        misses: stats.misses,
        peak_live_bytes: stats.peak_live.get(),
        held_bytes: stats.resident.get(),
        asked_before_bytes: evidence::asked(),
        by: served_by(),
    }
}
