//! A folder with copies of all that a soak runs: builds that go on meanwhile change nothing, and programs that run as
//! somebody else can read them. What the programs write lies there too, and all of it goes in the end.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::programs::Program;
use crate::repository::Repository;

/// Who runs programs that refuse to be root: nobody.
const NOBODY: u32 = 65_534;

/// The program, and what its libraries are called.
const PROGRAM: &str = "lowtide";
const LIBRARIES: [&str; 2] = ["liblowtide_", ".so"];

/// The shell waits for a line: by then it is in the group, which it may be the wrong user to enter by itself.
const WAITING: &str = "read -r line && exec \"$@\" </dev/null";

/// Under which allocator a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Plain,
    Lowtide,
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain => "plain",
            Self::Lowtide => "under Lowtide",
        })
    }
}

/// The folder.
pub(super) struct Folder {
    root: TempDir,
    is_root: bool,
    python: Option<PathBuf>,
}

impl Folder {
    /// Copies what is in the repository and was built below `target`.
    pub(super) fn new(repository: &Repository, target: &Path, python: Option<PathBuf>) -> Result<Self> {
        let root = tempfile::Builder::new().prefix("lowtide-soak-").tempdir().context("cannot make a folder")?;
        let is_root = fs::metadata(root.path()).context("cannot look at the folder")?.uid() == 0;
        open_to_all(root.path())?;
        let new = Self { root, is_root, python };
        let [start, end] = LIBRARIES;
        let is_ours = |name: &str| name == PROGRAM || (name.starts_with(start) && name.ends_with(end));
        copy(&target.join("release"), &new.path("bin"), &is_ours)?;
        ensure!(new.path("bin").join(PROGRAM).is_file(), "`cargo build --release` made no `{PROGRAM}`");
        copy(&repository.root.join("benches"), &new.path("benches"), &|_| true)?;
        for folder in ["work", "log"] {
            fs::create_dir(new.path(folder)).with_context(|| format!("cannot make `{folder}`"))?;
        }
        Ok(new)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Where a program's output is while it runs, and what it says.
    pub(super) fn streams(&self, program: &Program) -> [PathBuf; 2] {
        ["out", "err"].map(|ending| self.path("log").join(program.name).with_extension(ending))
    }

    /// The program, which begins once it gets a line.
    pub(super) fn command(&self, program: &Program, way: Way) -> Result<Command> {
        let work = self.path("work").join(program.name);
        fs::create_dir_all(&work).with_context(|| format!("cannot make `{}`", work.display()))?;
        let [output, words] = self.streams(program);
        let file = |path: &Path| File::create(path).with_context(|| format!("cannot write `{}`", path.display()));
        let mut command = Command::new("sh");
        command.args(["-c", WAITING, "sh"]).process_group(0);
        if way == Way::Lowtide {
            command.arg(self.path("bin").join(PROGRAM)).args(["run", "--quiet", "--"]);
        }
        command.arg(self.path("benches/programs").join(format!("{}.sh", program.name)));
        command.current_dir(&work).env("TMPDIR", &work).env("HOME", &work).env("LC_ALL", "C").env_remove("LD_PRELOAD");
        if let Some(python) = &self.python {
            command.env("PYTHON", python);
        }
        command.stdin(Stdio::piped()).stdout(file(&output)?).stderr(file(&words)?);
        if program.refuses_root && self.is_root {
            chown(&work, Some(NOBODY), Some(NOBODY)).context("cannot give a folder away")?;
            command.uid(NOBODY).gid(NOBODY);
        }
        Ok(command)
    }
}

fn open_to_all(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).context("cannot open the folder to others")
}

/// Copies the files of a folder whose names are wanted, and all folders in it.
fn copy(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    let context = || format!("cannot copy `{}`", from.display());
    fs::create_dir_all(to).with_context(context)?;
    for entry in fs::read_dir(from).with_context(context)? {
        let entry = entry.with_context(context)?;
        let (name, kind) = (entry.file_name(), entry.file_type().with_context(context)?);
        if !is_wanted(&name.to_string_lossy()) {
            continue;
        }
        if kind.is_dir() {
            copy(&entry.path(), &to.join(&name), is_wanted)?;
        } else {
            fs::copy(entry.path(), to.join(&name)).with_context(context)?;
        }
    }
    open_to_all(to)
}
