//! The programs of a soak: scripts of `benches/programs`, and what has to be installed for each.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A script that runs a program.
#[derive(Debug)]
pub(super) struct Program {
    /// What the script is called, without its ending.
    pub(super) name: &'static str,
    /// How often in a pass: short ones run about as long as the others.
    pub(super) times: u32,
    /// What it cannot run without.
    needs: Need,
    /// Whether it refuses to run as root.
    pub(super) refuses_root: bool,
}

#[derive(Debug)]
enum Need {
    /// These programs.
    Installed(&'static [&'static str]),
    /// A Python that has PyTorch.
    Torch,
}

/// All of them. None needs another.
pub(super) const PROGRAMS: [Program; 13] = [
    Program::new("redis", 2, &["redis-server", "redis-cli", "redis-benchmark"]),
    Program { refuses_root: true, ..Program::new("postgres", 2, &["postgres", "initdb", "pg_ctl", "psql", "pgbench"]) },
    Program::new("git", 4, &["git"]),
    Program::new("gcc", 2, &["gcc"]),
    Program::new("cxx", 1, &["g++", "make"]),
    Program::new("javascript", 1, &["node"]),
    Program::new("java", 2, &["java", "javac"]),
    Program::new("ffmpeg", 10, &["ffmpeg"]),
    Program::new("lua", 15, &["lua5.4"]),
    Program::new("perl", 10, &["perl"]),
    Program::new("sqlite", 1, &["sqlite3"]),
    Program::new("zstd", 1, &["zstd"]),
    Program { needs: Need::Torch, ..Program::new("pytorch", 1, &[]) },
];

impl Program {
    const fn new(name: &'static str, times: u32, installed: &'static [&'static str]) -> Self {
        Self { name, times, needs: Need::Installed(installed), refuses_root: false }
    }

    /// Why it cannot be run here, if so.
    pub(super) fn obstacle(&self, python: Option<&Path>) -> Option<String> {
        match self.needs {
            Need::Torch => {
                python.is_none().then(|| "no Python with PyTorch; `cargo xtask test` installs one".to_owned())
            }
            Need::Installed(names) => {
                let folders = folders();
                let is_missing = |name: &&&str| !folders.iter().any(|folder| folder.join(name).is_file());
                let missing: Vec<&str> = names.iter().filter(is_missing).copied().collect();
                (!missing.is_empty()).then(|| format!("not installed: {}", missing.join(", ")))
            }
        }
    }
}

/// The search path, and where Debian has the programs of `PostgreSQL`.
fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    env::split_paths(&path).chain(versions.map(|version| version.path().join("bin"))).collect()
}

/// The environment of the tests below `target`, or else the one on the search path, if it has PyTorch.
pub(super) fn python_with_torch(target: &Path) -> Option<PathBuf> {
    let has_torch = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import torch"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    [target.join("python/bin/python"), "python3".into()].into_iter().find(has_torch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_script() {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/programs");
        for Program { name, .. } in &PROGRAMS {
            assert!(scripts.join(format!("{name}.sh")).is_file(), "{name}");
        }
    }

    #[test]
    fn what_is_not_installed_is_named() {
        let program = Program::new("example", 1, &["sh", "no-such-program-1", "no-such-program-2"]);
        assert_eq!(program.obstacle(None).unwrap(), "not installed: no-such-program-1, no-such-program-2");
        assert_eq!(Program::new("example", 1, &["sh"]).obstacle(None), None);
    }

    #[test]
    fn an_environment_without_pytorch_is_an_obstacle() {
        let program = Program { needs: Need::Torch, ..Program::new("example", 1, &[]) };
        assert!(program.obstacle(None).is_some());
        assert_eq!(program.obstacle(Some(Path::new("python3"))), None);
    }
}
