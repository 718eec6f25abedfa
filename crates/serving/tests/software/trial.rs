//! A folder to try a program in: what runs there has the library in it, and every process tells in the end what it was
//! served.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lowtide_core::preload::SERVING;
use serde_json::Value;
use tempfile::TempDir;

use crate::preload::{library, summaries};

/// How long a program may take to become ready.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who runs programs that refuse to be root: nobody.
const NOBODY: u32 = 65_534;

/// The folder.
pub(crate) struct Trial {
    folder: TempDir,
    /// Whether programs are to run as somebody else than root.
    humble: bool,
}

impl Trial {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Whoever runs programs here can read the library here.
        for own in [library(), &library().with_file_name(SERVING)] {
            let place = folder.path().join(own.file_name().unwrap());
            fs::copy(own, &place).unwrap();
            fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(folder.path().join("summaries")).unwrap();
        Self { folder, humble: false }
    }

    /// As [`new`](Self::new), for programs that refuse to be root.
    pub(crate) fn not_as_root() -> Self {
        let mut trial = Self::new();
        trial.humble = fs::metadata(trial.folder.path()).unwrap().uid() == 0;
        if trial.humble {
            for folder in [trial.path(""), trial.path("summaries")] {
                chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        trial
    }

    /// Where `name` is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program without the library.
    pub(crate) fn bare(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("HOME", self.folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        if self.humble {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// A program with the library in it, and in all that it starts.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.bare(program);
        command.env("LD_PRELOAD", self.path("liblowtide_malloc.so")).env("LOWTIDE_SUMMARY", self.path("summaries"));
        // What is tried is the arena, whether it is worth it or not.
        command.env("LOWTIDE_ARENA", "always");
        command
    }

    /// Runs a program with the library in it, and returns what it printed.
    #[track_caller]
    pub(crate) fn run(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
        printed(&well(self.command(program).args(arguments)))
    }

    /// Processes had the library in them, and it has stepped aside in none; of those whose name begins with `command`, one was
    /// served large blocks.
    #[track_caller]
    pub(crate) fn assert_served(&self, command: &str) {
        let all = summaries(&self.path("summaries"));
        let aside: Vec<&Value> = all.iter().filter(|summary| !summary["stepped_aside"].is_null()).collect();
        assert!(aside.is_empty(), "{aside:?}");
        let is_served = |summary: &&Value| {
            let name = summary["command"].as_str().unwrap_or_default();
            name.starts_with(command) && summary["large"]["allocations"].as_u64() > Some(0)
        };
        let names = all.iter().map(|summary| &summary["command"]);
        assert!(all.iter().any(|summary| is_served(&summary)), "{:?}", names.collect::<Vec<_>>());
    }
}

/// Runs it to a good end, in which the library has said nothing.
#[track_caller]
pub(crate) fn well(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{}\n{words}", output.status, printed(&output));
    assert!(!words.contains("lowtide: "), "{command:?}: {words}");
    output
}

/// What it printed.
pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not {what} after {PATIENCE:?}");
        sleep(Duration::from_millis(50));
    }
}

/// A program that serves others, and is killed where the test ends before it.
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts it; what it says goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let file = fs::File::create(log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, log: log.to_owned() }
    }

    /// It has been asked to end, and does so well; the library has said nothing.
    #[track_caller]
    pub(crate) fn ends_well(mut self) {
        let status = self.child.wait().unwrap();
        let words = fs::read_to_string(&self.log).unwrap();
        assert!(status.success() && !words.contains("lowtide: "), "{status}: {words}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
