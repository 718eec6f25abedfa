//! What the tests have in common: the command, a folder to run it in, and problems to run it on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use lowtide_cli::verbs::bench::synthetic::Synthetic;
use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_lowtide");

/// The command with `arguments`, where nothing in the environment colours it.
pub fn lowtide(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("NO_COLOR", "1").env_remove("COLUMNS").env_remove("RUST_BACKTRACE");
    command
}

/// What a command that ended left behind.
pub struct Ended {
    pub code: Option<i32>,
    pub data: String,
    pub talk: String,
}

impl Ended {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {}", self.data))
    }
}

/// A folder of its own.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with `files`.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (name, text) in files {
            folder.write(name, text.as_bytes());
        }
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// The names of what is in it, hidden files included.
    pub fn list(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the command here.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, b"")
    }

    /// As [`run`](Self::run), with `input` on stdin.
    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let output = lowtide(arguments).current_dir(self.path()).write_stdin(input).output().unwrap();
        Ended {
            code: output.status.code(),
            data: String::from_utf8(output.stdout).unwrap(),
            talk: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Starts the command in `folder`, presses Ctrl-C as soon as it surely works, and returns how it ended, which was soon.
pub fn interrupted(folder: &Folder, arguments: &[&str]) -> Output {
    let start = Instant::now();
    let child = std::process::Command::new(BINARY)
        .args(arguments)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    output
}

/// Three buffers, of which the first and the last are never alive together.
pub const SMALL: &str = "id,lower,upper,size\na,0,4,100\nb,2,8,50\nc,4,9,100\n";

/// A problem that is not solved at once, as lifetimes CSV.
pub fn hard(buffers: u32, alive: u32) -> Vec<u8> {
    let mut text = Vec::new();
    lowtide_formats::write_lifetimes(&Synthetic { buffers, alive }.problem(7), &mut text).unwrap();
    text
}
