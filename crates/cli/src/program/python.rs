//! Which Python has the package, and where that has what Python runs before a program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lowtide_core::options::PYTHON;

use super::executable;
use crate::Failure;
use crate::console::show;

/// Prints where the package has what Python runs before a program.
const ASK: &str = "import lowtide, os; print(os.path.join(os.path.dirname(lowtide.__file__), '_inject'))";

/// The folder that makes Python start Lowtide in `program`, of the first Python that has the package; fails first of all
/// where there is no such program.
pub(crate) fn injection(program: &OsStr) -> Result<PathBuf, Failure> {
    let found = executable::find(program)?;
    let mut asked: Vec<String> = Vec::new();
    for python in pythons(program, &found) {
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
    Err(Failure::usage(message, INSTALL))
}

/// How to get the package, which is built from its source.
pub(crate) const INSTALL: &str = "install it where PyTorch is: `pip install .` in Lowtide's repository";

/// Where to ask: what started this command, what the program is run by, and the usual one.
fn pythons(program: &OsStr, found: &Path) -> Vec<OsString> {
    let own = env::var_os(PYTHON.variable()).filter(|own| !own.is_empty());
    let is_python = Path::new(program).file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
    let by_program = if is_python { Some(program.to_owned()) } else { interpreter(found) };
    let mut pythons: Vec<OsString> = Vec::new();
    for python in own.into_iter().chain(by_program).chain([OsString::from("python3")]) {
        if !pythons.contains(&python) {
            pythons.push(python);
        }
    }
    pythons
}

/// The Python that a script names in its first line.
fn interpreter(script: &Path) -> Option<OsString> {
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(1024)).read_until(b'\n', &mut line).ok()?;
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
            assert_eq!(interpreter(&path), expected.map(OsString::from), "{line:?}");
        }
        assert_eq!(interpreter(Path::new("surely/not/there")), None);
    }
}
