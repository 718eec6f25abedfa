//! The allocators that are measured: how each gets under a program, and what to do about one that is not there.
//! `bench host` and `bench malloc` share them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;
use lowtide_core::options::{ARENA_MAX, LEARN, MALLOC_CONF, Options, RECORD, RUN, SUMMARY, TRIM_THRESHOLD};

use super::report::Skipped;
use crate::options::HostFlags;
use crate::program;
use crate::verbs::run::conf::KEEPING;
use crate::verbs::run::host::{Equipment, Surroundings, Variable, handed_on};
use crate::verbs::run::library;
use crate::verbs::run::summary::{Folder, Summaries, Summary};
use crate::verbs::run::underlying::Known;
use crate::{Console, Failure};

/// An allocator, with settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Allocator {
    /// The system's own, as it is
    Glibc,
    /// Keeps what is freed, with transparent huge pages
    Jemalloc,
    /// With the settings that `DeepRec`'s documents recommend
    JemallocDecaying,
    /// With the settings that it has by itself
    JemallocDefault,
    /// As it is
    Tcmalloc,
    /// As it is
    Mimalloc,
    /// What `lowtide run --no-learn` does: what learning costs is the difference
    LowtideNoLearn,
    /// What `lowtide run` does
    Lowtide,
}

/// What `DeepRec`'s documents recommend for jemalloc.
const DECAYING: &str = "background_thread:true,metadata_thp:auto,dirty_decay_ms:20000,muzzy_decay_ms:20000";

/// What a program may inherit that changes how an allocator works.
const SETTINGS: [&str; 12] = [
    "LD_PRELOAD",
    MALLOC_CONF.variable(),
    ARENA_MAX.variable(),
    TRIM_THRESHOLD.variable(),
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
    "THP_MEM_ALLOC_ENABLE",
    "PYTHONMALLOC",
    RUN.variable(),
    RECORD.variable(),
    SUMMARY.variable(),
];

impl Allocator {
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::JemallocDecaying => "jemalloc-decaying",
            Self::JemallocDefault => "jemalloc-default",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
            Self::LowtideNoLearn => "lowtide-no-learn",
            Self::Lowtide => "lowtide",
        }
    }

    /// The library that has it, and its settings; none for Lowtide, which is not found so.
    fn rival(self) -> Option<(Known, Option<String>)> {
        match self {
            Self::Glibc => Some((Known::Glibc, None)),
            Self::Jemalloc => Some((Known::Jemalloc, Some(format!("thp:always,metadata_thp:auto,{KEEPING}")))),
            Self::JemallocDecaying => Some((Known::Jemalloc, Some(DECAYING.to_owned()))),
            Self::JemallocDefault => Some((Known::Jemalloc, None)),
            Self::Tcmalloc => Some((Known::Tcmalloc, None)),
            Self::Mimalloc => Some((Known::Mimalloc, None)),
            Self::LowtideNoLearn | Self::Lowtide => None,
        }
    }
}

/// Who takes part, who is not there, and what their users should know.
pub(super) struct Contestants {
    pub there: Vec<Contestant>,
    pub missing: Vec<Skipped>,
    /// Each once.
    pub warnings: Vec<String>,
}

impl Contestants {
    /// Looks for those that are wanted, and reports who is missing. Fails where nobody is there.
    pub fn find(
        wanted: &[Allocator],
        python: &OsStr,
        lowtide: &HostFlags,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for &allocator in wanted {
            match Contestant::find(allocator, python, lowtide)? {
                Ok(contestant) => there.push(contestant),
                Err(reason) => missing.push(Skipped { name: allocator.name().to_owned(), reason }),
            }
        }
        for Skipped { name, reason } in &missing {
            console.say(format!("MISSING {name}: {reason}"));
        }
        let mut warnings: Vec<String> = there.iter().flat_map(|contestant| contestant.warnings.clone()).collect();
        warnings.sort();
        warnings.dedup();
        for warning in &warnings {
            console.say(format!("warning: {warning}"));
        }
        if there.is_empty() {
            return Err(Failure::usage("no allocator is there to be measured", "install one of those above"));
        }
        Ok(Self { there, missing, warnings })
    }
}

/// An allocator that is there.
pub(super) struct Contestant {
    allocator: Allocator,
    variables: Vec<Variable>,
    /// What Python runs first, for Lowtide.
    injection: Option<PathBuf>,
    /// Where processes leave summaries, for Lowtide.
    folder: Option<Folder>,
    /// What its user should know, for Lowtide.
    warnings: Vec<String>,
}

impl Contestant {
    /// The allocator, or how to get it.
    fn find(allocator: Allocator, python: &OsStr, lowtide: &HostFlags) -> Result<Result<Self, String>, Failure> {
        let Some((known, conf)) = allocator.rival() else { return Self::lowtide(allocator, python, lowtide) };
        let mut variables: Vec<Variable> = Vec::new();
        if known != Known::Glibc {
            let Some(library) = known.library() else {
                return Ok(Err(format!("it is not on this machine; {}", known.how_to_get())));
            };
            variables.push(("LD_PRELOAD", library.into()));
        }
        variables.extend(conf.map(|conf| (MALLOC_CONF.variable(), conf.into())));
        Ok(Ok(Self { allocator, variables, injection: None, folder: None, warnings: Vec::new() }))
    }

    fn lowtide(allocator: Allocator, python: &OsStr, flags: &HostFlags) -> Result<Result<Self, String>, Failure> {
        let injection = program::injection(python).ok();
        let library = match library::find(injection.as_deref()) {
            Ok(library) => library,
            Err(failure) => return Ok(Err(format!("{failure}; {}", failure.hint()))),
        };
        let folder = Folder::new()?;
        let mut options = Options::default();
        flags.0.add_to(&mut options);
        let Equipment { mut variables, warnings } = Equipment::new(&options, &library, Surroundings::default())?;
        variables.extend(handed_on(&options));
        variables.push((SUMMARY.variable(), folder.path().into()));
        variables.push((RUN.variable(), "host".into()));
        if allocator == Allocator::LowtideNoLearn {
            variables.push((LEARN.variable(), "0".into()));
        }
        Ok(Ok(Self { allocator, variables, injection, folder: Some(folder), warnings }))
    }

    pub fn name(&self) -> &'static str {
        self.allocator.name()
    }

    /// Puts the allocator, and no other, under what `command` starts.
    pub fn under(&self, command: &mut Command) {
        for name in SETTINGS {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(injection) = &self.injection {
            let mut paths: OsString = injection.into();
            if let Some(known) = std::env::var_os("PYTHONPATH").filter(|known| !known.is_empty()) {
                paths.push(":");
                paths.push(known);
            }
            command.env("PYTHONPATH", paths);
        }
    }

    /// What the process `pid` said of itself, where it is Lowtide's.
    pub fn summary(&self, pid: u32) -> Option<Summary> {
        let folder = self.folder.as_ref()?;
        Summaries::read(folder.path()).of.into_iter().find(|summary| summary.pid == pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_nothing_but_its_own_settings() {
        let glibc = Contestant::find(Allocator::Glibc, OsStr::new("python3"), &HostFlags::default());
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", "x").env("MALLOC_CONF", "y");
        glibc.unwrap().unwrap().under(&mut command);
        assert!(command.get_envs().all(|(_, value)| value.is_none()));
        assert!(Allocator::Jemalloc.rival().unwrap().1.unwrap().contains(KEEPING));
        assert_eq!(Allocator::JemallocDefault.rival().unwrap().1, None);
    }
}
