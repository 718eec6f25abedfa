//! A program that is run with Lowtide in it: which Python has the package, what the program finds in its environment, and
//! how it ends.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::{Answer, Failure, show};

/// Prints where the package has what Python runs before a program.
const ASK: &str = "import lowtide, os; print(os.path.join(os.path.dirname(lowtide.__file__), '_inject'))";

/// A program, and what it is told by variables.
pub(crate) struct Program<'a> {
    command: &'a [OsString],
    variables: Vec<(&'static str, OsString)>,
}

impl<'a> Program<'a> {
    pub fn new(command: &'a [OsString]) -> Self {
        Self { command, variables: Vec::new() }
    }

    /// The program finds `value` under `name`.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Runs it to its end, with the streams of this process. Ctrl-C goes to the program and not to this process; what
    /// else would end this process is passed on.
    pub fn run(self) -> Result<Answer, Failure> {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let folder = injection(name)?;
        let mut paths = vec![folder];
        if let Some(known) = env::var_os("PYTHONPATH").filter(|known| !known.is_empty()) {
            paths.extend(env::split_paths(&known));
        }
        let paths = env::join_paths(paths)
            .map_err(|error| Failure::usage(format!("PYTHONPATH cannot be set: {error}"), "install it elsewhere"))?;
        let child = Command::new(name)
            .args(&self.command[1..])
            .env("PYTHONPATH", paths)
            .envs(self.variables)
            .spawn()
            .map_err(|error| failure(name, &error))?;
        let status = Signals::block().wait(child).map_err(|error| failure(name, &error))?;
        Ok(Answer::Ended(code(status)))
    }
}

fn failure(name: &OsStr, error: &std::io::Error) -> Failure {
    let shown = show::path(Path::new(name));
    let hint = match error.kind() {
        ErrorKind::NotFound => format!("check the name; a Python program is run by `python {shown}`"),
        ErrorKind::PermissionDenied => format!("it is no program; a Python program is run by `python {shown}`"),
        _ => "try the command alone".to_owned(),
    };
    Failure::usage(format!("cannot run {shown}: {error}"), hint)
}

/// As a shell tells it: 128 and more for a program that a signal ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Signals that end a process, kept from this one.
struct Signals(SigSet);

impl Signals {
    /// Threads and programs that are begun later would inherit this; so the program is begun before.
    fn block() -> Self {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
        // Without this, Ctrl-C ends both processes, and what was recorded is not told.
        let _ = set.thread_block();
        Self(set)
    }

    /// Waits for `child`. What the terminal sends, it has sent to the child as well; the rest is passed on.
    fn wait(self, mut child: Child) -> std::io::Result<ExitStatus> {
        let Self(set) = self;
        let ended = Arc::new(AtomicBool::new(false));
        let pid = i32::try_from(child.id()).map(Pid::from_raw);
        let over = Arc::clone(&ended);
        std::thread::spawn(move || {
            while let Ok(signal) = set.wait() {
                let Ok(pid) = pid else { return };
                if over.load(Ordering::SeqCst) {
                    return;
                }
                if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
                    let _ = kill(pid, signal);
                }
            }
        });
        let status = child.wait();
        ended.store(true, Ordering::SeqCst);
        let _ = set.thread_unblock();
        status
    }
}

/// The folder that makes Python start Lowtide in a program, of the first Python that has the package.
fn injection(program: &OsStr) -> Result<PathBuf, Failure> {
    let mut asked: Vec<String> = Vec::new();
    for python in pythons(program) {
        let answer = Command::new(&python).args(["-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        if let Ok(answer) = answer
            && answer.status.success()
            && let Some(line) = String::from_utf8_lossy(&answer.stdout).lines().last()
        {
            let folder = PathBuf::from(line);
            if folder.join("sitecustomize.py").is_file() {
                return Ok(folder);
            }
        }
        asked.push(show::path(Path::new(&python)));
    }
    let message = format!("no Python was found that has the package lowtide; asked: {}", asked.join(", "));
    Err(Failure::usage(message, "install it where PyTorch is: pip install lowtide"))
}

/// Where to ask: what started this command, what the program is run by, and the usual one.
fn pythons(program: &OsStr) -> Vec<OsString> {
    let own = env::var_os("LOWTIDE_PYTHON").filter(|own| !own.is_empty());
    let is_python = Path::new(program).file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
    let by_program = if is_python { Some(program.to_owned()) } else { interpreter(program) };
    let mut pythons: Vec<OsString> = Vec::new();
    for python in own.into_iter().chain(by_program).chain([OsString::from("python3")]) {
        if !pythons.contains(&python) {
            pythons.push(python);
        }
    }
    pythons
}

/// The Python that a script names in its first line.
fn interpreter(script: &OsStr) -> Option<OsString> {
    let path = Path::new(script);
    let found = if path.components().count() > 1 {
        Some(path.to_owned())
    } else {
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(path)).find(|path| path.is_file())
    };
    let mut line = Vec::new();
    BufReader::new(File::open(found?).ok()?.take(1024)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = words.next()?;
    let word = if first.ends_with("/env") { words.find(|word| !word.starts_with('-'))? } else { first };
    Path::new(word).file_name()?.to_string_lossy().starts_with("python").then(|| OsString::from(word))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_in_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("torchrun");
        for (line, expected) in [
            ("#!/opt/venv/bin/python3.11\nimport sys\n", Some("/opt/venv/bin/python3.11")),
            ("#!/usr/bin/env -S python3 -u\n", Some("python3")),
            ("#!/bin/sh\n", None),
            ("\u{7f}ELF", None),
            ("", None),
        ] {
            fs::write(&path, line).unwrap();
            assert_eq!(interpreter(path.as_os_str()), expected.map(OsString::from), "{line:?}");
        }
        assert_eq!(interpreter(OsStr::new("surely/not/there")), None);
    }

    #[test]
    fn a_signal_is_a_code_above_128() {
        assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }
}
