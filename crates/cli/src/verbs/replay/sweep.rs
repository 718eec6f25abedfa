//! `lowtide replay --sweep`: which setting of PyTorch's allocator serves a run best, and what it saves.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use lowtide_core::Bytes;
use lowtide_replay::{Replay, ReplayError, Setting, Strategy, Sweep, SweepProgress, sweep};
use serde::Serialize;

use super::outcome::Numbers;
use super::text::{count, percent};
use super::{Stage, failure, write};
use crate::atomic_file::Target;
use crate::console::Emphasis;
use crate::console::{columns, progress, show};
use crate::planning::solving::was_interrupted;
use crate::{Answer, Console, Failure};

/// What `--sweep --format json` prints: the best setting's numbers, and what it is compared with.
#[derive(Debug, Serialize)]
struct Swept {
    #[serde(flatten)]
    best: Numbers,
    /// What the sweep began with.
    base_alloc_conf: String,
    base_peak_reserved: Bytes,
    /// Absent where what it began with does not fit.
    saves: Option<i64>,
    arena_peak_reserved: Option<Bytes>,
    planned_peak_reserved: Option<Bytes>,
    /// What the best setting reserves beyond the arena.
    over_arena: Option<i64>,
    tried: usize,
    interrupted: bool,
    settings: Vec<Tried>,
}

/// What Lowtide's own allocators did, as far as Ctrl-C let them.
struct Own {
    arena: Option<Replay>,
    planned: Option<Replay>,
}

/// A setting that was tried.
#[derive(Debug, Serialize)]
struct Tried {
    alloc_conf: String,
    strategy: &'static str,
    fits: bool,
    peak_reserved: Bytes,
    fragmentation: f64,
    driver_calls: u64,
    driver_ns: u64,
}

impl Tried {
    fn new(setting: &Setting) -> Self {
        Self {
            alloc_conf: setting.options.to_string(),
            strategy: Strategy::torch(setting.options.clone()).name(),
            fits: setting.replay.out_of_memory.is_none(),
            peak_reserved: setting.replay.peak_reserved,
            fragmentation: setting.replay.fragmentation(),
            driver_calls: setting.replay.calls.handles(),
            driver_ns: setting.replay.calls.nanoseconds,
        }
    }
}

/// Tries settings, shows the best and writes the numbers.
pub(super) fn run(stage: &Stage<'_>, target: Option<&Target>, console: &mut Console) -> Result<Answer, Failure> {
    let Some(found) = found(stage)? else {
        console.say("interrupted before any setting was tried");
        return Ok(Answer::No);
    };
    let started = |strategy| stage.arguments.start.of(strategy);
    let (arena, planned) = (started(Strategy::arena()), started(Strategy::planned()));
    let own = Own { arena: stage.play(&arena)?, planned: stage.play(&planned)? };
    let swept = swept(stage, &found, &own);
    if stage.arguments.view.is_json() {
        console.print_json(&swept)?;
    } else {
        show(stage, &swept, console)?;
    }
    console.finish()?;
    if swept.interrupted {
        console.say("interrupted: this is the best setting so far");
    }
    if let Some(target) = target {
        write(&swept, target)?;
    }
    if !stage.arguments.view.is_json() {
        let wrote = target.map(|target| format!("wrote {}; ", show::path(target.path()))).unwrap_or_default();
        console.say(format!("{wrote}next: {}", next(stage, &swept)));
    }
    Ok(Answer::from_bool(swept.best.fits()))
}

/// Everything that was tried; nothing where Ctrl-C came first.
fn found(stage: &Stage<'_>) -> Result<Option<Sweep>, Failure> {
    let line = progress::Counting::new("trying settings");
    let mut watch = |SweepProgress { tried, of, best }: SweepProgress<'_>| {
        line.show(tried as u64, of as u64);
        if let Some(best) = best {
            line.say(&format!("best {}", best.replay.peak_reserved));
        }
        if was_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match sweep(&stage.run.trace, &stage.arguments.alloc_conf, &stage.options(), &mut watch) {
        Ok(sweep) => Ok(Some(sweep)),
        Err(ReplayError::Stopped) => Ok(None),
        Err(error) => Err(failure(&stage.source.to_string(), error)),
    }
}

fn swept(stage: &Stage<'_>, found: &Sweep, own: &Own) -> Swept {
    let (base, best) = (found.base(), found.best());
    let reserved = |replay: &Option<Replay>| {
        let fitting = replay.as_ref().filter(|replay| replay.out_of_memory.is_none());
        fitting.map(|replay| replay.peak_reserved)
    };
    let (arena, planned) = (reserved(&own.arena), reserved(&own.planned));
    let difference = |a: Bytes, b: Bytes| a.get() as i64 - b.get() as i64;
    let numbers = Numbers::new(&Strategy::torch(best.options.clone()), &best.replay, stage.run);
    let base_fits = base.replay.out_of_memory.is_none();
    let mut settings: Vec<Tried> = found.settings.iter().map(Tried::new).collect();
    settings.sort_by_key(|tried| (Reverse(tried.fits), tried.peak_reserved, tried.driver_ns));
    Swept {
        base_alloc_conf: base.options.to_string(),
        base_peak_reserved: base.replay.peak_reserved,
        saves: (base_fits && numbers.fits()).then(|| difference(base.replay.peak_reserved, numbers.peak_reserved)),
        arena_peak_reserved: arena,
        planned_peak_reserved: planned,
        over_arena: arena.filter(|_| numbers.fits()).map(|arena| difference(numbers.peak_reserved, arena)),
        tried: settings.len(),
        interrupted: found.is_stopped || own.planned.is_none(),
        settings,
        best: numbers,
    }
}

/// Settings that are shown behind the best.
const ROWS: usize = 5;

fn show(stage: &Stage<'_>, swept: &Swept, console: &mut Console) -> Result<(), Failure> {
    let sheet = stage.arguments.view.sheet();
    let best = &swept.best;
    let (emphasis, headline) = headline(swept);
    for line in sheet.headline(&headline) {
        let line = console.paint(emphasis, line);
        console.print(line)?;
    }
    let about = [format!("{} tried", show::counted(swept.tried, "setting")), format!("{} alive at once", best.bound)];
    console.print(sheet.headline(&about).join("\n"))?;
    console.print("")?;
    for line in columns::aligned(&cells(swept)) {
        console.print(sheet.written(&line))?;
    }
    console.print("")?;
    let line = best.alloc_conf.as_deref().unwrap_or_default();
    if best.fits() && line != swept.base_alloc_conf {
        let line = console.paint(Emphasis::Good, format!("PYTORCH_ALLOC_CONF={line}"));
        console.print(line)?;
    }
    Ok(())
}

fn headline(swept: &Swept) -> (Emphasis, Vec<String>) {
    let best = &swept.best;
    if !best.fits() {
        return (Emphasis::Bad, vec!["no setting of PyTorch's allocator fits".to_owned()]);
    }
    let saves = match swept.saves {
        None => format!("it fits, {} does not", named(&swept.base_alloc_conf)),
        Some(0) => format!("no setting reserves less than {}", named(&swept.base_alloc_conf)),
        Some(saves) => {
            format!("{} less than {}", Bytes::new(saves.unsigned_abs()), named(&swept.base_alloc_conf))
        }
    };
    let beside = swept.over_arena.map(|over| match over {
        0 => "as much as Lowtide's arena".to_owned(),
        1.. => format!("{} more than Lowtide's arena", Bytes::new(over.unsigned_abs())),
        _ => format!("{} less than Lowtide's arena", Bytes::new(over.unsigned_abs())),
    });
    let parts = [Some(format!("best setting reserves {}", best.peak_reserved)), Some(saves), beside];
    (Emphasis::Strong, parts.into_iter().flatten().collect())
}

/// What people call a setting.
fn named(line: &str) -> String {
    if line.is_empty() { "PyTorch's default".to_owned() } else { format!("`{line}`") }
}

fn cells(swept: &Swept) -> Vec<Vec<String>> {
    let mut cells = vec![["setting", "reserved", "wasted", "driver calls", "cost"].map(str::to_owned).to_vec()];
    let base = swept.settings.iter().skip(ROWS).find(|tried| tried.alloc_conf == swept.base_alloc_conf);
    for tried in swept.settings.iter().take(ROWS).chain(base) {
        let line = if tried.alloc_conf.is_empty() { "(default)".to_owned() } else { tried.alloc_conf.clone() };
        cells.push(vec![
            line,
            if tried.fits { tried.peak_reserved.to_string() } else { "no room".to_owned() },
            if tried.fits { percent(tried.fragmentation) } else { "-".to_owned() },
            count(tried.driver_calls),
            show::seconds(tried.driver_ns as f64 / 1e9),
        ]);
    }
    let own = [("Lowtide's arena", swept.arena_peak_reserved), ("Lowtide's plan", swept.planned_peak_reserved)];
    for (name, reserved) in own {
        let otherwise = || if swept.interrupted { "-" } else { "no room" }.to_owned();
        cells.push(vec![name.to_owned(), reserved.map_or_else(otherwise, |bytes| bytes.to_string())]);
    }
    cells
}

fn next(stage: &Stage<'_>, swept: &Swept) -> String {
    let line = swept.best.alloc_conf.as_deref().unwrap_or_default();
    if !swept.best.fits() {
        format!("`lowtide explain {}` says what would lower the peak", stage.source.typed())
    } else if line == swept.base_alloc_conf {
        format!("`{}` shows what other allocators do", stage.typed(""))
    } else {
        format!("`export PYTORCH_ALLOC_CONF={}` before the program starts", show::quoted(line))
    }
}
