//! What is asked of the host's memory, as flags and as the variables that the library in the program reads.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lowtide_core::Bytes;

use super::below::{Below, Known};
use super::{conf, huge, library};
use crate::Failure;
use crate::arguments::numbers;

/// A variable and its value.
pub(crate) type Variable = (&'static str, OsString);

/// What is asked of the host's memory.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct HostArguments {
    /// The pages of large blocks [default: transparent]
    #[arg(long, value_name = "PAGES", value_enum)]
    pages: Option<Pages>,
    /// Touch pages before the program does, so that it never waits for one
    #[arg(long)]
    prefault: bool,
    /// Give memory back that was not needed for this long; 0 is at once
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds, allow_negative_numbers = true)]
    decay: Option<Duration>,
    /// Place blocks as they come, without learning steps
    #[arg(long)]
    no_learn: bool,
    /// Who serves small blocks: glibc, jemalloc, mimalloc, tcmalloc, or a path of one [default: glibc]
    #[arg(long, value_name = "ALLOCATOR")]
    below: Option<String>,
    /// glibc gives back free memory at the end of its heap from this size on
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, allow_negative_numbers = true)]
    trim_threshold: Option<Bytes>,
    /// glibc has at most this many arenas
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    arena_max: Option<std::num::NonZeroUsize>,
    /// Settings of jemalloc, as `MALLOC_CONF` has them
    #[arg(long, value_name = "TEXT")]
    malloc_conf: Option<String>,
    /// Call `malloc_trim(0)` of the allocator below every so often, or at every step
    #[arg(long, value_name = "SECONDS|step", value_parser = every, allow_negative_numbers = true)]
    trim_below: Option<Every>,
}

/// How large pages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Pages {
    /// The machine's smallest
    Base,
    /// Huge where the system can join small ones
    Transparent,
    /// Huge ones of 2 MiB, from the system's pool
    #[value(name = "2M")]
    Huge2M,
    /// Huge ones of 1 GiB, from the system's pool
    #[value(name = "1G")]
    Huge1G,
}

impl Pages {
    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Transparent => "transparent",
            Self::Huge2M => "2M",
            Self::Huge1G => "1G",
        }
    }
}

/// How often something is done.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Every {
    Step,
    Time(Duration),
}

fn every(text: &str) -> Result<Every, String> {
    if text == "step" {
        return Ok(Every::Step);
    }
    match numbers::seconds(text) {
        Ok(Duration::ZERO) => Err("write more than 0 seconds, or `step`".to_owned()),
        Ok(time) => Ok(Every::Time(time)),
        Err(_) => Err("write seconds, such as 5 or 0.5, or `step`".to_owned()),
    }
}

/// What a program is told, and what its user should know before.
pub(crate) struct Told {
    pub variables: Vec<Variable>,
    pub warnings: Vec<String>,
}

/// What a program would find in its environment without Lowtide, as far as that matters here.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    preloaded: Option<OsString>,
    malloc_conf: Option<OsString>,
    tunables: Option<OsString>,
}

impl Surroundings {
    /// Those of this process, which a program inherits.
    pub fn of_process() -> Self {
        Self {
            preloaded: env::var_os("LD_PRELOAD"),
            malloc_conf: env::var_os("MALLOC_CONF"),
            tunables: env::var_os("GLIBC_TUNABLES"),
        }
    }
}

impl HostArguments {
    /// The first flag that was given, for a message.
    pub fn first_given(&self) -> Option<&'static str> {
        let Self { pages, prefault, decay, no_learn, below, trim_threshold, arena_max, malloc_conf, trim_below } = self;
        let given = [
            ("--pages", pages.is_some()),
            ("--prefault", *prefault),
            ("--decay", decay.is_some()),
            ("--no-learn", *no_learn),
            ("--below", below.is_some()),
            ("--trim-threshold", trim_threshold.is_some()),
            ("--arena-max", arena_max.is_some()),
            ("--malloc-conf", malloc_conf.is_some()),
            ("--trim-below", trim_below.is_some()),
        ];
        given.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// What a program is told that has `library` in it.
    pub fn told(&self, library: &Path, surroundings: Surroundings) -> Result<Told, Failure> {
        let Surroundings { preloaded, malloc_conf, tunables } = surroundings;
        let below = self.below.as_deref().map(Below::find).transpose()?;
        let known = below.as_ref().map_or_else(|| already_below(&library::words(preloaded.as_deref())), |it| it.known);
        let of_below = below.as_ref().and_then(|below| below.library.as_deref());
        let libraries: Vec<&Path> = [library].into_iter().chain(of_below).collect();
        let mut variables = vec![
            ("LD_PRELOAD", library::preload(&libraries, preloaded.as_deref())?),
            ("LOWTIDE_RUNNER", std::process::id().to_string().into()),
            ("LOWTIDE_BELOW", known.name().into()),
        ];
        variables.extend(self.settings());
        variables.extend(self.of_glibc(known, tunables)?);
        let conf = conf::settle(self.malloc_conf.as_deref(), malloc_conf, known);
        variables.extend(conf.set.map(|text| ("MALLOC_CONF", text.into())));
        let warnings = conf.warnings.into_iter().chain(huge::doubts(self.pages)).collect();
        Ok(Told { variables, warnings })
    }

    /// What the library reads.
    fn settings(&self) -> Vec<Variable> {
        let text = |duration: Duration| duration.as_secs_f64().to_string();
        let trim_below = self.trim_below.map(|every| match every {
            Every::Step => "step".to_owned(),
            Every::Time(time) => text(time),
        });
        [
            ("LOWTIDE_PAGES", self.pages.map(|pages| pages.name().to_owned())),
            ("LOWTIDE_PREFAULT", self.prefault.then(|| "1".to_owned())),
            ("LOWTIDE_DECAY", self.decay.map(text)),
            ("LOWTIDE_LEARN", self.no_learn.then(|| "0".to_owned())),
            ("LOWTIDE_TRIM_BELOW", trim_below),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.into())))
        .collect()
    }

    /// What glibc reads. Another allocator does not, so that to ask for it there is a mistake. What `tunables` says goes
    /// before variables of their own, and the last of a name before the others.
    fn of_glibc(&self, known: Known, tunables: Option<OsString>) -> Result<Vec<Variable>, Failure> {
        let threshold = self.trim_threshold.map(|size| size.get().to_string());
        let arenas = self.arena_max.map(|count| count.to_string());
        let asked = [
            ("--trim-threshold", "MALLOC_TRIM_THRESHOLD_", "trim_threshold", threshold),
            ("--arena-max", "MALLOC_ARENA_MAX", "arena_max", arenas),
        ];
        let (mut variables, mut all) = (Vec::new(), tunables.unwrap_or_default());
        let had = all.len();
        for (flag, name, tunable, value) in asked {
            let Some(value) = value else { continue };
            if known != Known::Glibc {
                let message = format!("`{flag}` is a setting of glibc, and {} is below", known.name());
                return Err(Failure::usage(message, format!("leave `{flag}` out, or write `--below glibc`")));
            }
            if had > 0 {
                all.push(format!(":glibc.malloc.{tunable}={value}"));
            }
            variables.push((name, value.into()));
        }
        variables.extend((all.len() > had).then_some(("GLIBC_TUNABLES", all)));
        Ok(variables)
    }
}

/// The allocator that a program has already been given.
fn already_below(preloaded: &[String]) -> Known {
    preloaded.iter().find_map(|library| Known::of_file(Path::new(library))).unwrap_or(Known::Glibc)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(told: &Told, name: &str) -> Option<String> {
        let found = told.variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    }

    #[test]
    fn flags_become_the_variables_that_the_library_reads() {
        let arguments = HostArguments {
            pages: Some(Pages::Base),
            prefault: true,
            decay: Some(Duration::from_millis(1500)),
            no_learn: true,
            trim_threshold: Some(Bytes::new(131_072)),
            arena_max: std::num::NonZeroUsize::new(2),
            trim_below: Some(Every::Step),
            ..HostArguments::default()
        };
        let told = arguments.told(Path::new("/l/own.so"), Surroundings::default()).unwrap();
        for (name, expected) in [
            ("LOWTIDE_BELOW", "glibc"),
            ("LOWTIDE_PAGES", "base"),
            ("LOWTIDE_PREFAULT", "1"),
            ("LOWTIDE_DECAY", "1.5"),
            ("LOWTIDE_LEARN", "0"),
            ("LOWTIDE_TRIM_BELOW", "step"),
            ("MALLOC_TRIM_THRESHOLD_", "131072"),
            ("MALLOC_ARENA_MAX", "2"),
        ] {
            assert_eq!(value(&told, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(value(&told, "LD_PRELOAD").unwrap(), "/l/own.so");
        assert_eq!(arguments.first_given(), Some("--pages"));
    }

    #[test]
    fn what_is_preloaded_already_is_below() {
        assert_eq!(already_below(&["/x/libfoo.so".into(), "/x/libjemalloc.so.2".into()]), Known::Jemalloc);
        assert_eq!(already_below(&[]), Known::Glibc);
    }

    #[test]
    fn a_setting_of_glibc_is_not_for_others() {
        let arguments = HostArguments { arena_max: std::num::NonZeroUsize::new(1), ..HostArguments::default() };
        assert_eq!(arguments.of_glibc(Known::Glibc, None).unwrap(), [("MALLOC_ARENA_MAX", "1".into())]);
        assert!(arguments.of_glibc(Known::Jemalloc, None).unwrap_err().hint().contains("--below glibc"));
    }

    #[test]
    fn a_flag_goes_before_what_the_environment_says() {
        let arguments = HostArguments { arena_max: std::num::NonZeroUsize::new(2), ..HostArguments::default() };
        let variables = arguments.of_glibc(Known::Glibc, Some("glibc.malloc.arena_max=5".into())).unwrap();
        let expected = "glibc.malloc.arena_max=5:glibc.malloc.arena_max=2";
        assert_eq!(variables.last(), Some(&("GLIBC_TUNABLES", expected.into())));
        let none = HostArguments::default().of_glibc(Known::Glibc, Some("glibc.malloc.arena_max=5".into()));
        assert_eq!(none.unwrap(), []);
    }

    #[test]
    fn a_trim_is_at_steps_or_after_time() {
        assert_eq!(every("step"), Ok(Every::Step));
        assert_eq!(every("0.5"), Ok(Every::Time(Duration::from_millis(500))));
        for text in ["0", "-1", "often", "inf"] {
            assert!(every(text).is_err(), "{text}");
        }
    }
}
