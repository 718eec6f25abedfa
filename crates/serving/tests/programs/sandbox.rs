//! Builds programs, runs them under the library, and reads what they leave behind.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::preload::{library, summaries};

/// A folder with programs.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// A skip where there is no C compiler.
    pub(crate) fn new() -> Option<Self> {
        lowtide_testing::program("cc")?;
        Some(Self { folder: tempfile::tempdir().unwrap() })
    }

    /// Where `name` is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds `target` of `c/source.c`.
    pub(crate) fn build(&self, source: &str, target: &str, flags: &[&str]) -> PathBuf {
        let target = self.path(target);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = folder.join("tests/programs/c").join(format!("{source}.c"));
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wno-deprecated-declarations", "-Wno-unused", "-pthread"])
            .args(["-fno-builtin-malloc", "-fno-builtin-free", "-I"])
            .arg(folder.join("../malloc/include"))
            .arg("-o")
            .arg(&target)
            .arg(file)
            .args(flags)
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        target
    }

    /// A program under the library.
    pub(crate) fn program(&self, source: &str) -> Run<'_> {
        self.program_at(&self.build(source, source, &[]))
    }

    /// A program that is built already, under the library.
    pub(crate) fn program_at(&self, program: &Path) -> Run<'_> {
        let mut command = Command::new(program);
        // Small programs have no time to show what the arena is worth.
        command.env("LOWTIDE_ARENA", "always");
        Run { sandbox: self, command, preload: library().into() }
    }
}

/// A program that is about to run.
pub(crate) struct Run<'a> {
    sandbox: &'a Sandbox,
    command: Command,
    preload: OsString,
}

impl Run<'_> {
    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.command.arg(argument.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Has another library follow.
    pub(crate) fn followed_by(mut self, library: &Path) -> Self {
        self.preload.push(":");
        self.preload.push(library);
        self
    }

    /// Runs it.
    pub(crate) fn output(mut self) -> Output {
        self.command.env("LD_PRELOAD", &self.preload).output().unwrap()
    }

    /// Runs it without the library.
    pub(crate) fn output_alone(mut self) -> Output {
        self.command.env_remove("LD_PRELOAD").output().unwrap()
    }

    /// Runs it under `sh` with a limit set first.
    pub(crate) fn output_limited(self, limit: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{limit}; LD_PRELOAD=\"$0\" exec \"$@\"")).arg(self.preload);
        shell.arg(self.command.get_program()).args(self.command.get_args());
        shell.output().unwrap()
    }

    /// Runs it to a good end without a word, and returns its summary.
    pub(crate) fn summary(mut self) -> Value {
        let folder = self.sandbox.path("summaries");
        fs::create_dir_all(&folder).unwrap();
        self.command.env("LOWTIDE_SUMMARY", &folder).env("LD_PRELOAD", &self.preload);
        let child = self.command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_well(&output);
        let summary = summaries(&folder).into_iter().find(|summary| summary["pid"] == pid).unwrap();
        assert_eq!(summary["stepped_aside"], Value::Null, "{summary}");
        summary
    }
}

/// The program ended well and nobody said anything.
#[track_caller]
pub(crate) fn assert_well(output: &Output) {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.is_empty(), "{}: {words}", output.status);
}

/// What a program printed that ended well.
#[track_caller]
pub(crate) fn printed(output: &Output) -> String {
    assert_well(output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
