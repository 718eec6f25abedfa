//! A pass: all programs begin at once, short ones again until they have run as often as they should, and the pass ends
//! with the last of them.

use std::fs;
use std::io::Write as _;
use std::mem;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::folder::{Folder, Way};
use super::group::Group;
use super::programs::Program;

/// Between two looks at the programs and at what they have.
const INTERVAL: Duration = Duration::from_millis(20);

/// A program that runs for so long hangs.
const PATIENCE: Duration = Duration::from_mins(10);

/// How a shell tells that a program was killed.
const KILLED: i32 = 128 + Signal::SIGKILL as i32;

/// How a program is run.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) folder: &'a Folder,
    pub(super) programs: &'a [&'static Program],
    pub(super) group: Option<&'a Group>,
    pub(super) way: Way,
}

/// A program that ran once.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Its place among the programs.
    pub(super) program: usize,
    pub(super) end: End,
    pub(super) wall: Duration,
    pub(super) output: Vec<u8>,
    /// What it said on stderr.
    pub(super) words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Well,
    /// By the system, or whoever else sends that signal.
    Killed,
    /// With this code, or by a signal, or it did not end and had to be ended.
    Failed(Option<i32>),
}

/// Runs a pass, and returns the most that all programs had at once, without pages of files; 0 without a group.
///
/// `tell` hears all the time which rounds have ended; where it says no, the rest is killed.
pub(super) fn run(setting: Setting, mut tell: impl FnMut(&[Round]) -> bool) -> Result<u64> {
    let mut peak = 0;
    let mut running = Vec::new();
    for (index, program) in setting.programs.iter().enumerate() {
        running.push(Running::start(setting, index, program.times)?);
    }
    let mut rounds = Vec::new();
    while tell(&rounds) && !running.is_empty() {
        sleep(INTERVAL);
        peak = peak.max(setting.group.and_then(Group::needed).unwrap_or(0));
        rounds.clear();
        for mut one in mem::take(&mut running) {
            let Some(status) = one.ended()? else {
                running.push(one);
                continue;
            };
            rounds.push(one.round(setting, status)?);
            if one.times > 1 {
                running.push(Running::start(setting, one.program, one.times - 1)?);
            }
        }
    }
    drop(running);
    if let Some(group) = setting.group {
        group.clear();
    }
    Ok(peak)
}

/// A program that runs; it ends with this.
struct Running {
    program: usize,
    /// How often it is to run, this time included.
    times: u32,
    child: Child,
    begun: Instant,
    hangs: bool,
}

impl Running {
    fn start(setting: Setting, index: usize, times: u32) -> Result<Self> {
        let program = setting.programs[index];
        let child = setting.folder.command(program, setting.way)?.spawn().context("cannot start a shell")?;
        let mut running = Self { program: index, times, child, begun: Instant::now(), hangs: false };
        if let Some(group) = setting.group {
            group.add(running.child.id()).context("cannot put a program into the control group")?;
        }
        let mut input = running.child.stdin.take().context("a shell has no input")?;
        input.write_all(b"\n").context("cannot wake a shell")?;
        Ok(running)
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.begun.elapsed() > PATIENCE && !self.hangs {
            self.hangs = true;
            self.kill();
        }
        self.child.try_wait().context("cannot wait for a program")
    }

    fn round(&self, setting: Setting, status: ExitStatus) -> Result<Round> {
        let [output, words] = setting.folder.streams(setting.programs[self.program]);
        let read = |path| fs::read(path).context("cannot read what a program printed");
        Ok(Round {
            program: self.program,
            end: if self.hangs { End::Failed(None) } else { end(status) },
            wall: self.begun.elapsed(),
            output: read(output)?,
            words: String::from_utf8_lossy(&read(words)?).into_owned(),
        })
    }

    /// Kills it with all that it has started, as far as that stayed in its process group.
    fn kill(&self) {
        // There may be nothing left of it.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(0), _) => End::Well,
        (Some(KILLED), _) => End::Killed,
        (None, Some(signal)) if signal == Signal::SIGKILL as i32 => End::Killed,
        (code, _) => End::Failed(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_killed_is_told_from_who_failed() {
        let code = |code: i32| end(ExitStatus::from_raw(code << 8));
        assert_eq!([code(0), code(137), code(3)], [End::Well, End::Killed, End::Failed(Some(3))]);
        assert_eq!([9, 11].map(|signal| end(ExitStatus::from_raw(signal))), [End::Killed, End::Failed(None)]);
    }
}
