//! `cargo xtask soak`: thirteen programs of different kinds at once, again and again, in a control group with little more memory
//! than they need. Whoever survives there without Lowtide must survive under it, and print the same.

mod folder;
mod group;
mod options;
mod pass;
mod programs;
mod results;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::repository::Repository;
use crate::tally::counted;
use folder::{Folder, Way};
use group::Group;
use options::{HELP, Options, Request};
use pass::{End, Round, Setting};
use programs::{PROGRAMS, Program};
use results::{Counts, Record, head};

/// How many programs there should be.
const ENOUGH: usize = 10;

/// Between two lines of progress.
const INTERVAL: Duration = Duration::from_secs(30);

/// Soaks; whether nothing was worse under Lowtide.
pub(crate) fn run(arguments: &[&str]) -> Result<bool> {
    match options::parse(arguments)? {
        Request::Help => {
            print!("{HELP}");
            Ok(true)
        }
        Request::Soak(options) => soak(&options),
    }
}

fn soak(options: &Options) -> Result<bool> {
    let repository = Repository::find()?;
    process::output(process::cargo(&repository, &["build", "--release"]))?;
    let target = repository.target()?;
    let python = programs::python_with_torch(&target);
    let mut skips = Vec::new();
    let programs = installed(python.as_deref(), &mut skips);
    let folder = Folder::new(&repository, &target, python)?;
    let mut soak = Soak::new(&folder, &programs, skips)?;
    soak.measure()?;
    let plain = if options.is_plain { options.length } else { soak.begun.elapsed() + options.length / 10 };
    soak.phase(Way::Plain, plain)?;
    if !options.is_plain {
        soak.phase(Way::Lowtide, options.length)?;
    }
    Ok(soak.verdict(options.is_plain))
}

/// The programs that can be run here. Says of the others why not.
fn installed(python: Option<&Path>, skips: &mut Vec<String>) -> Vec<&'static Program> {
    let mut found = Vec::new();
    for program in &PROGRAMS {
        match program.obstacle(python) {
            Some(obstacle) => skip(skips, format!("{}: {obstacle}", program.name)),
            None => found.push(program),
        }
    }
    if found.len() < ENOUGH {
        skip(skips, format!("{} and not {ENOUGH} programs run at once", found.len()));
    }
    found
}

fn skip(skips: &mut Vec<String>, what: String) {
    println!("skipped {what}");
    skips.push(what);
}

/// What goes on, and what came of it.
struct Soak<'a> {
    folder: &'a Folder,
    programs: &'a [&'static Program],
    skips: Vec<String>,
    stopped: Arc<AtomicBool>,
    begun: Instant,
    records: Vec<Record>,
    /// What the programs may have together, where that can be limited.
    limit: Option<u64>,
    /// How many processes the system has killed for want of memory, without Lowtide and under it.
    kills: [u64; 2],
    /// What Lowtide's library said.
    notes: BTreeSet<String>,
}

impl<'a> Soak<'a> {
    fn new(folder: &'a Folder, programs: &'a [&'static Program], skips: Vec<String>) -> Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;
        let (records, notes) = (Vec::new(), BTreeSet::new());
        Ok(Self { folder, programs, skips, stopped, begun: Instant::now(), records, limit: None, kills: [0; 2], notes })
    }

    /// A pass without Lowtide and without a limit: what the programs print, and what they need.
    fn measure(&mut self) -> Result<()> {
        let group = Group::make("measured");
        let setting = self.setting(Way::Plain, group.as_ref());
        let mut rounds: Vec<Round> = Vec::new();
        let mut progress = Progress::default();
        let peak = pass::run(setting, |ended| {
            rounds.extend_from_slice(ended);
            progress.tell(|| println!("{} · measuring: {} ended", self.clock(), counted(rounds.len(), "round")));
            !self.is_stopped()
        })?;
        for (index, program) in self.programs.iter().enumerate() {
            let mut own = rounds.iter().filter(|round| round.program == index);
            if let Some(round) = own.clone().find(|round| round.end != End::Well) {
                bail!("{} does not run here, without Lowtide and without a limit:\n{}", program.name, round.words);
            }
            // A pass that was broken off has none of some.
            let expected = own.next().map(|round| round.output.clone()).unwrap_or_default();
            self.records.push(Record::new(program.name, expected));
        }
        if self.is_stopped() {
            return Ok(());
        }
        if peak == 0 {
            let why = "the limit: this user may not make a control group of memory; the programs run without one";
            skip(&mut self.skips, why.to_owned());
        } else {
            self.limit = Some(peak + peak / 10);
        }
        println!(
            "{} · together they need {} · limit {}",
            counted(self.programs.len(), "program"),
            mebibytes(peak),
            self.limit.map_or_else(|| "none".to_owned(), mebibytes)
        );
        Ok(())
    }

    /// Pass after pass within the limit, one at least, until so much time has gone since the beginning.
    fn phase(&mut self, way: Way, until: Duration) -> Result<()> {
        if self.is_stopped() {
            return Ok(());
        }
        let group = self.limited_group(way)?;
        let (mut passes, mut peak) = (0, 0);
        let mut progress = Progress::default();
        while !self.is_stopped() && (passes == 0 || self.begun.elapsed() < until) {
            passes += 1;
            let setting = self.setting(way, group.as_ref());
            let needed = pass::run(setting, |ended| {
                for round in ended {
                    self.count(way, round);
                }
                progress.tell(|| println!("{} · {way}, pass {passes}: {}", self.clock(), self.sum(way)));
                !self.is_stopped()
            })?;
            peak = peak.max(needed);
        }
        let kills = group.as_ref().map_or(0, Group::kills);
        self.kills[usize::from(way == Way::Lowtide)] = kills;
        let count = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "es" });
        println!(
            "{} · {way}: {} · {} at most · {} killed for want of memory",
            self.clock(),
            count(passes, "pass"),
            mebibytes(peak),
            count(kills, "process")
        );
        Ok(())
    }

    fn limited_group(&mut self, way: Way) -> Result<Option<Group>> {
        let Some(limit) = self.limit else { return Ok(None) };
        let name = if way == Way::Plain { "plain" } else { "soaked" };
        let group = Group::make(name).context("there is no second control group")?;
        let is_whole = group.limit(limit).context("cannot limit the control group")?;
        let swap = "swap: it cannot be turned off for the control group".to_owned();
        if !is_whole && !self.skips.contains(&swap) {
            skip(&mut self.skips, swap);
        }
        Ok(Some(group))
    }

    fn setting<'b>(&self, way: Way, group: Option<&'b Group>) -> Setting<'b>
    where
        'a: 'b,
    {
        Setting { folder: self.folder, programs: self.programs, group, way }
    }

    fn count(&mut self, way: Way, round: &Round) {
        let record = &mut self.records[round.program];
        if let Some(fault) = record.count(way, round) {
            println!("{} · {way}: {fault}", clock(self.begun.elapsed()));
        }
        let said = round.words.lines().filter(|line| line.starts_with("lowtide: "));
        self.notes.extend(said.map(|line| format!("{}: {line}", record.name)));
    }

    /// The rounds of all programs one way.
    fn sum(&self, way: Way) -> Counts {
        Counts::sum(self.records.iter().map(|record| record.counts(way)))
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn clock(&self) -> String {
        clock(self.begun.elapsed())
    }

    /// Prints what came of it all; whether it is good.
    fn verdict(&self, is_plain: bool) -> bool {
        println!("\n{}", head());
        for record in &self.records {
            println!("{}", record.line());
        }
        for note in &self.notes {
            println!("note: {note}");
        }
        for skipped in &self.skips {
            println!("skipped {skipped}");
        }
        if self.is_stopped() {
            println!("stopped by a signal after {}", self.clock());
        }
        let is_bad = |record: &&Record| {
            if is_plain { !record.counts(Way::Plain).are_good() } else { record.is_worse() }
        };
        let bad: Vec<&str> = self.records.iter().filter(is_bad).map(|record| record.name).collect();
        let what = if is_plain { "not good" } else { "worse under Lowtide" };
        let names = if bad.is_empty() { "none".to_owned() } else { bad.join(", ") };
        println!(
            "\nplain: {} · under Lowtide: {} · {} skipped · {what}: {names}",
            self.sum(Way::Plain),
            self.sum(Way::Lowtide),
            self.skips.len()
        );
        let [plain, lowtide] = self.kills;
        let is_killed = if is_plain { plain > 0 } else { lowtide > 0 && plain == 0 };
        let judged = self.sum(if is_plain { Way::Plain } else { Way::Lowtide });
        bad.is_empty() && !is_killed && judged.rounds() > 0
    }
}

/// Says every so often how things are.
struct Progress(Instant);

impl Default for Progress {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Progress {
    fn tell(&mut self, tell: impl FnOnce()) {
        if self.0.elapsed() >= INTERVAL {
            self.0 = Instant::now();
            tell();
        }
    }
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
