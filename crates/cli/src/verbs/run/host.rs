//! What a program gets whose host memory is served: the library, the options that it reads, and the settings of the
//! underlying allocator.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use lowtide_core::options::{
    ARENA_MAX, Entry, Key, MALLOC_CONF, Options, Origin, PAGES, RUNNER, TRIM_THRESHOLD, Typed, UNDERLYING,
};

use super::underlying::{Known, Underlying};
use super::{conf, huge, library};
use crate::Failure;

/// A variable and its value.
pub(crate) type Variable = (&'static str, OsString);

/// What a program gets, and what its user should know before.
pub(crate) struct Equipment {
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
            malloc_conf: env::var_os(MALLOC_CONF.variable()),
            tunables: env::var_os("GLIBC_TUNABLES"),
        }
    }
}

impl Equipment {
    /// What a program gets that has `library` in it. Other options than those of the underlying allocator are for the caller to
    /// hand on.
    pub fn new(options: &Options, library: &Path, surroundings: Surroundings) -> Result<Self, Failure> {
        let Surroundings { preloaded, malloc_conf, tunables } = surroundings;
        let underlying = underlying(options, &library::words(preloaded.as_deref()))?;
        let known = underlying.known;
        let libraries: Vec<&Path> = [library].into_iter().chain(underlying.library.as_deref()).collect();
        let mut variables = vec![
            ("LD_PRELOAD", library::preload(&libraries, preloaded.as_deref())?),
            (RUNNER.variable(), std::process::id().to_string().into()),
            (UNDERLYING.variable(), known.name().into()),
        ];
        variables.extend(of_glibc(options, known, tunables)?);
        let asked = asked(options, MALLOC_CONF).flatten();
        let conf = conf::settle(asked.as_deref(), malloc_conf, known);
        variables.extend(conf.set.map(|text| (MALLOC_CONF.variable(), text.into())));
        let warnings = conf.warnings.into_iter().chain(huge::doubts(options.given(PAGES))).collect();
        Ok(Self { variables, warnings })
    }
}

/// The variables that hand on what flags and a file say, but for those that [`Equipment`] has.
pub(crate) fn handed_on(options: &Options) -> impl Iterator<Item = Variable> {
    let is_equipment = |entry: &Entry| entry.is_foreign() || entry.name == UNDERLYING.entry().name;
    options.handed_on().filter(move |(entry, _)| !is_equipment(entry)).map(|(entry, value)| (entry.variable, value))
}

/// What a flag or a file says; variables are there already.
fn asked<T: Typed>(options: &Options, key: Key<T>) -> Option<T> {
    let is_asked = matches!(options.setting(key).origin, Origin::Flag | Origin::File { .. });
    is_asked.then(|| options.get(key))
}

/// The underlying allocator. One that is preloaded already is not loaded again, unless another is asked for.
fn underlying(options: &Options, preloaded: &[String]) -> Result<Underlying, Failure> {
    let already = preloaded.iter().find_map(|library| Known::of_file(Path::new(library))).unwrap_or(Known::Glibc);
    let there = Underlying { known: already, library: None };
    let Some(text) = options.given(UNDERLYING) else { return Ok(there) };
    let is_inherited = matches!(options.setting(UNDERLYING).origin, Origin::Variable(_));
    if is_inherited && [already.name(), Known::Glibc.name()].contains(&text.as_str()) {
        return Ok(there);
    }
    Underlying::find(&text)
}

/// What glibc reads. Another allocator does not, so that to ask for it there is a mistake. What `tunables` says goes
/// before variables of their own, and the last of a name before the others.
fn of_glibc(options: &Options, known: Known, tunables: Option<OsString>) -> Result<Vec<Variable>, Failure> {
    let threshold = asked(options, TRIM_THRESHOLD).flatten().map(|size| size.get().to_string());
    let arenas = asked(options, ARENA_MAX).flatten().map(|count| count.to_string());
    let asked = [(TRIM_THRESHOLD.entry(), "trim_threshold", threshold), (ARENA_MAX.entry(), "arena_max", arenas)];
    let (mut variables, mut all) = (Vec::new(), tunables.unwrap_or_default());
    let had = all.len();
    for (entry, tunable, value) in asked {
        let Some(value) = value else { continue };
        if known != Known::Glibc {
            let name = entry.name;
            let message = format!("`{name}` is a setting of glibc, and the underlying allocator is {}", known.name());
            return Err(Failure::usage(message, format!("leave `{name}` out, or write `--underlying glibc`")));
        }
        if had > 0 {
            all.push(format!(":glibc.malloc.{tunable}={value}"));
        }
        variables.push((entry.variable, value.into()));
    }
    variables.extend((all.len() > had).then_some(("GLIBC_TUNABLES", all)));
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use lowtide_core::Bytes;
    use lowtide_core::options::Value;

    use super::*;

    fn with_arenas(count: u64, origin: Origin) -> Options {
        let mut options = Options::default();
        options.set(ARENA_MAX.entry(), Value::Count(count), origin);
        options
    }

    #[test]
    fn a_program_gets_the_library_and_what_the_underlying_allocator_reads() {
        let mut options = with_arenas(2, Origin::Flag);
        options.set(TRIM_THRESHOLD.entry(), Value::Size(Bytes::new(131_072)), Origin::File { line: 1 });
        let equipment = Equipment::new(&options, Path::new("/l/own.so"), Surroundings::default()).unwrap();
        let value = |name: &str| {
            let found = equipment.variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        for (name, expected) in [
            ("LD_PRELOAD", "/l/own.so"),
            (UNDERLYING.variable(), "glibc"),
            ("MALLOC_TRIM_THRESHOLD_", "131072"),
            ("MALLOC_ARENA_MAX", "2"),
        ] {
            assert_eq!(value(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn what_is_preloaded_already_is_the_underlying_allocator() {
        let preloaded = ["/x/libfoo.so".to_owned(), "/x/libjemalloc.so.2".to_owned()];
        let mut options = Options::default();
        let there = Underlying { known: Known::Jemalloc, library: None };
        assert_eq!(underlying(&options, &preloaded).unwrap(), there);
        assert_eq!(underlying(&options, &[]).unwrap().known, Known::Glibc);
        for name in ["jemalloc", "glibc"] {
            let origin = Origin::Variable(UNDERLYING.variable());
            options.set(UNDERLYING.entry(), Value::Text(name.to_owned()), origin);
            assert_eq!(underlying(&options, &preloaded).unwrap(), there, "a run inside of another");
        }
        options.set(UNDERLYING.entry(), Value::Text("glibc".to_owned()), Origin::Flag);
        assert_eq!(underlying(&options, &preloaded).unwrap().known, Known::Glibc);
    }

    #[test]
    fn a_setting_of_glibc_is_not_for_others() {
        let options = with_arenas(1, Origin::Flag);
        assert_eq!(of_glibc(&options, Known::Glibc, None).unwrap(), [("MALLOC_ARENA_MAX", "1".into())]);
        assert!(of_glibc(&options, Known::Jemalloc, None).unwrap_err().hint().contains("--underlying glibc"));
        let inherited = with_arenas(1, Origin::Variable(ARENA_MAX.variable()));
        assert_eq!(of_glibc(&inherited, Known::Jemalloc, None).unwrap(), []);
    }

    #[test]
    fn a_flag_goes_before_what_the_environment_says() {
        let tunables = || Some("glibc.malloc.arena_max=5".into());
        let variables = of_glibc(&with_arenas(2, Origin::Flag), Known::Glibc, tunables()).unwrap();
        let expected = "glibc.malloc.arena_max=5:glibc.malloc.arena_max=2";
        assert_eq!(variables.last(), Some(&("GLIBC_TUNABLES", expected.into())));
        assert_eq!(of_glibc(&Options::default(), Known::Glibc, tunables()).unwrap(), []);
    }
}
