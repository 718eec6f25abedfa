//! The Python package as its users get it: the wheel is built, installed into an environment of its own under `target`,
//! and tried by the tests in `python/tests`, with the newest PyTorch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use lowtide_testing::DATA_VARIABLE;

use crate::process;
use crate::repository::Repository;
use crate::step::{Need, Passed};
use crate::tally::Tally;

/// What the step cannot do without.
pub(crate) const NEED: Need = Need {
    what: "the Python package was not tried: that needs Python 3.11 or later with `venv` and `pip`",
    how_to_get: "`apt-get install python3 python3-venv`, or any other Python from 3.11 on",
    is_met: |_| interpreter().is_some(),
};

/// What interpreters are called on the search path.
const INTERPRETERS: [&str; 5] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];

/// What the tests are run with and import.
const PACKAGES: [&str; 9] = [
    "maturin>=1.9,<2",
    "pytest",
    "pytest-xdist",
    "numpy",
    "torch",
    "torchvision",
    "transformers",
    "onnxruntime",
    "openvino",
];

/// Ends well where the interpreter will do.
const SUITS: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";

/// Ends well where all the distributions that are named are installed.
const HAS: &str = "import importlib.metadata, sys; [importlib.metadata.version(name) for name in sys.argv[1:]]";

/// Builds, installs and tries the wheel.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let target = repository.target()?;
    let environment = Environment::make(target.join("python"))?;
    let wheel = environment.build(repository, &target.join("wheels"))?;
    environment.replace(&wheel)?;
    let mut tests = environment.python(&["-m", "pytest", "python/tests", "-q", "-rs", "-p", "no:cacheprovider"]);
    // Most tests wait for a program of their own to import PyTorch.
    tests.args(["-n", "auto", "--dist", "worksteal"]).current_dir(&repository.root);
    if let Some(folder) = &repository.data {
        tests.env(DATA_VARIABLE, folder);
    }
    let tests = tally(&process::output(tests)?);
    ensure!(tests.passed > 0, "pytest ran no test");
    Ok(Passed { tests, ..Passed::default() })
}

/// A virtual environment, and how packages come into it.
struct Environment {
    folder: PathBuf,
    /// What installs in seconds where pip takes minutes; `None` where it cannot be had.
    uv: Option<PathBuf>,
}

impl Environment {
    /// The environment in `folder` with all that the tests need; what is there already is used again.
    fn make(folder: PathBuf) -> Result<Self> {
        if !interpreter_of(&folder).is_some_and(|python| suits(&python)) {
            let python = interpreter().context("there is no Python")?;
            process::output(command(&python, &["-m", "venv", "--clear", &folder.to_string_lossy()]))?;
        }
        let uv = ["uv".into(), folder.join("bin/uv")].into_iter().find(|uv| works(command(uv, &["--version"])));
        let mut environment = Self { folder, uv };
        let names = PACKAGES.map(|package| package.split(['>', '<']).next().unwrap_or(package));
        if !works(environment.python(&[&["-c", HAS], &names[..]].concat())) {
            environment.obtain_uv();
            environment.install(&PACKAGES)?;
        }
        Ok(environment)
    }

    fn obtain_uv(&mut self) {
        if self.uv.is_none() && works(self.python(&["-m", "pip", "install", "--quiet", "uv"])) {
            self.uv = Some(self.folder.join("bin/uv"));
        }
    }

    fn install(&self, what: &[&str]) -> Result<()> {
        let python = self.folder.join("bin/python").to_string_lossy().into_owned();
        let mut install = match &self.uv {
            Some(uv) => command(uv, &["pip", "install", "--python", &python]),
            None => self.python(&["-m", "pip", "install", "--disable-pip-version-check"]),
        };
        install.args(what);
        process::output(install).map(drop)
    }

    /// Installs a file, whatever version of it is there, and nothing else.
    fn replace(&self, wheel: &Path) -> Result<()> {
        let anew = if self.uv.is_some() { "--reinstall" } else { "--force-reinstall" };
        self.install(&["--no-deps", anew, &wheel.to_string_lossy()])
    }

    /// The wheel, built into `folder`, which then holds no other version of it.
    fn build(&self, repository: &Repository, folder: &Path) -> Result<PathBuf> {
        for old in wheels(folder) {
            fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        let mut library = self.python(&["python/backend.py"]);
        library.current_dir(&repository.root);
        process::output(library)?;
        let python = self.folder.join("bin/python");
        let arguments = ["-m", "maturin", "build", "--release", "--interpreter"];
        let mut build = self.python(&arguments);
        build.arg(python).arg("--out").arg(folder).current_dir(&repository.root);
        let output = process::output(build)?;
        let [wheel] = &wheels(folder)[..] else { anyhow::bail!("maturin made not one wheel\n{}", output.trim_end()) };
        let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ensure!(name.contains("-cp311-abi3-"), "`{name}` is not for every Python from 3.11 on");
        for library in ["lowtide/liblowtide_malloc.so", "lowtide/liblowtide_serving.so"] {
            ensure!(self.holds(wheel, library), "`{name}` has not the library `{library}`, which `run` needs");
        }
        Ok(wheel.clone())
    }

    /// Whether a file is in a wheel.
    fn holds(&self, wheel: &Path, file: &str) -> bool {
        const LOOK: &str = "import sys, zipfile; sys.exit(sys.argv[2] not in zipfile.ZipFile(sys.argv[1]).namelist())";
        works(self.python(&["-c", LOOK, &wheel.to_string_lossy(), file]))
    }

    fn python(&self, arguments: &[&str]) -> Command {
        command(&self.folder.join("bin/python"), arguments)
    }
}

/// The wheels of this project in a folder.
fn wheels(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("lowtide-") && path.extension().is_some_and(|end| end == "whl")
    };
    entries.filter(is_ours).collect()
}

/// The first interpreter on the search path that will do.
fn interpreter() -> Option<PathBuf> {
    INTERPRETERS.iter().map(PathBuf::from).find(|python| suits(python))
}

fn interpreter_of(environment: &Path) -> Option<PathBuf> {
    Some(environment.join("bin/python")).filter(|python| python.is_file())
}

fn suits(python: &Path) -> bool {
    works(command(python, &["-c", SUITS]))
}

fn works(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // Whatever environment the developer is in, this is another.
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME"] {
        command.env_remove(variable);
    }
    command
}

/// Reads the last line, `12 passed, 3 skipped in 4.56s`, and the lines `SKIPPED [3] FILE:LINE: REASON`.
fn tally(output: &str) -> Tally {
    let last = output.lines().rev().find(|line| line.contains(" passed"));
    let passed = last.and_then(|line| line.split_once(" passed")?.0.rsplit(' ').next()?.parse().ok());
    let mut tally = Tally { passed: passed.unwrap_or(0), ..Tally::default() };
    for (count, place, reason) in output.lines().filter_map(skipped) {
        for _ in 0..count {
            tally.skip(place, reason);
        }
    }
    tally
}

/// How many tests a line says were skipped, where, and why.
fn skipped(line: &str) -> Option<(usize, &str, &str)> {
    let (count, rest) = line.strip_prefix("SKIPPED [")?.split_once("] ")?;
    let (place, reason) = rest.split_once(": ").unwrap_or(("", rest));
    Some((count.parse().ok()?, place, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_and_what_was_skipped_is_counted() {
        let output = "...........ss.s\n\
                      SKIPPED [2] python/tests/test_gpu.py:10: needs a CUDA device\n\
                      SKIPPED [1] python/tests/test_more.py:3: could not import 'transformers'\n\
                      SKIPPED [2] python/tests/test_more.py:9: could not import 'transformers'\n\
                      12 passed, 5 skipped in 4.56s\n";
        let tally = tally(output);
        assert_eq!((tally.passed, tally.skips()), (12, 5));
        assert_eq!(tally.skipped["needs a CUDA device"], ["python/tests/test_gpu.py:10"; 2]);
        assert_eq!(tally.skipped["could not import 'transformers'"].len(), 3);
        assert_eq!(super::tally("no tests ran in 0.01s\n"), Tally::default());
    }

    #[test]
    fn an_interpreter_that_is_not_there_does_not_suit() {
        assert!(!suits(Path::new("/no/such/python")));
        assert_eq!(interpreter_of(Path::new("/no/such/folder")), None);
    }

    #[test]
    fn a_folder_without_wheels_has_none() {
        assert!(wheels(Path::new("/no/such/folder")).is_empty());
    }
}
