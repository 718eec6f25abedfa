//! The table of options is consistent, and its values are read as their documents say.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_core::options::{self, *};

fn read(variables: &[(&str, &str)]) -> (Options, Vec<String>) {
    let lookup = |name: &str| variables.iter().find(|known| known.0 == name).map(|known| OsString::from(known.1));
    let (options, errors) = Options::from_variables(&Scope::ALL, lookup);
    (options, errors.iter().map(ToString::to_string).collect())
}

#[test]
fn every_name_is_there_once() {
    let mut names = HashSet::new();
    let mut variables = HashSet::new();
    for entry in TABLE {
        let former = entry.former.iter().map(|former| (former.name, former.variable));
        for (name, variable) in former.chain([(entry.name, entry.variable)]) {
            assert!(names.insert(name), "{name}");
            assert!(variables.insert(variable), "{variable}");
        }
        for variable in entry.older.iter().filter_map(|older| older.variable) {
            assert!(variables.insert(variable), "{variable}");
        }
    }
}

#[test]
fn names_follow_one_pattern() {
    for entry in TABLE {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        assert!(!entry.name.is_empty() && entry.name.chars().all(is_plain), "{}", entry.name);
        let names = entry.former.iter().map(|former| (former.name, former.variable));
        for (name, variable) in names.chain([(entry.name, entry.variable)]) {
            let expected = format!("LOWTIDE_{}", name.replace('-', "_").to_uppercase());
            assert!(entry.is_foreign() || variable == expected, "{variable}");
        }
    }
}

#[test]
fn every_option_has_a_sentence() {
    for entry in TABLE {
        assert!(entry.sentence.len() > 10 && !entry.sentence.ends_with('.'), "{}: {}", entry.name, entry.sentence);
    }
}

#[test]
fn every_default_is_in_its_range_and_reads_the_same_once_written() {
    for entry in TABLE {
        let older = entry.older.iter().filter_map(|older| Some((&older.kind, older.default?)));
        for (kind, text) in older.chain(entry.default.map(|default| (&entry.kind, default))) {
            let value = kind.parse(OsStr::new(text)).unwrap_or_else(|| panic!("{}: {text}", entry.name));
            assert_eq!(kind.parse(&value.text()), Some(value), "{}", entry.name);
        }
    }
}

#[test]
fn an_option_is_found_by_its_name_and_by_its_former_name() {
    assert_eq!(options::find("underlying").unwrap().variable, UNDERLYING.variable());
    assert_eq!(options::find("below"), options::find("underlying"));
    assert_eq!(options::find("LOWTIDE_PAGES"), None);
}

#[test]
fn a_switch_that_is_on_has_a_flag_that_switches_it_off() {
    assert_eq!((LEARN.entry().flag(), LEARN.entry().switched()), ("no-learn".to_owned(), Some(Value::Switch(false))));
    assert_eq!((STRICT.entry().flag(), STRICT.entry().switched()), ("strict".to_owned(), Some(Value::Switch(true))));
    assert_eq!((DECAY.entry().flag(), DECAY.entry().switched()), ("decay".to_owned(), None));
    assert_eq!(TRIM_THRESHOLD.entry().key(), "trim_threshold");
}

#[test]
fn variables_are_read_by_their_types() {
    let (options, errors) = read(&[
        ("LOWTIDE_PAGES", "1G"),
        ("LOWTIDE_PREFAULT", "TRUE"),
        ("LOWTIDE_DECAY", " 0.5 "),
        ("LOWTIDE_LIMIT", "1.5GiB"),
        ("LOWTIDE_TRIM_UNDERLYING", "step"),
        ("LOWTIDE_RUNNER", "17"),
        ("LOWTIDE_SUMMARY", "/a b"),
    ]);
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!((options.get(PAGES), options.get(PREFAULT)), (Pages::Huge1G, true));
    assert_eq!(options.get(DECAY), Duration::from_millis(500));
    assert_eq!(options.get(LIMIT), Some(Bytes::new(3 << 29)));
    assert_eq!(options.get(TRIM_UNDERLYING), Some(Every::Step));
    assert_eq!((options.get(RUNNER), options.get(SUMMARY)), (Some(17), Some(PathBuf::from("/a b"))));
    assert_eq!((options.get(LEARN), options.given(LEARN)), (true, None), "nobody said");
}

#[test]
fn a_value_out_of_range_is_named_with_the_range() {
    for (variable, value, range) in [
        ("LOWTIDE_PAGES", "4K", "`base`, `transparent`, `2M` or `1G`"),
        ("LOWTIDE_PREFAULT", "maybe", "`1` or `true`, `0` or `false`"),
        ("LOWTIDE_DECAY", "-1", "a number of seconds from 0 on, such as `0.5`"),
        ("LOWTIDE_DECAY", "1e11", "a number of seconds from 0 on, such as `0.5`"),
        ("LOWTIDE_DECAY", "nan", "a number of seconds from 0 on, such as `0.5`"),
        ("LOWTIDE_TRIM_UNDERLYING", "0", "a number of seconds above 0, or `step`"),
        ("LOWTIDE_TRIM_BELOW", "often", "a number of seconds above 0, or `step`"),
        ("LOWTIDE_LIMIT", "much", "an amount of memory: bytes, or such as `40GiB`"),
        ("LOWTIDE_LEARN_MAX", "0", "a whole number from 1 to 2^64-1"),
        ("STABLE_STATISTIC_STEP", "0", "a whole number from 1 to 2^64-1"),
        ("START_STATISTIC_STEP", "-1", "a whole number from 0 to 2^64-1"),
        ("MAX_STATISTIC_STEP", "1e3", "a whole number from 1 to 2^64-1"),
        ("ENABLE_MEMORY_OPTIMIZATION", "maybe", "`1` or `true`, `0` or `false`"),
        ("LOWTIDE_RUNNER", "4294967296", "a whole number from 1 to 4294967295"),
    ] {
        let (_, errors) = read(&[(variable, value)]);
        assert_eq!(errors, [format!("`{variable}` cannot be `{value}`: it is {range}")]);
    }
}

#[test]
fn ranges_of_numbers_and_units_hold() {
    let share = Kind::Number { least: 0.0, most: 1.0 };
    let of = |kind: &Kind, text: &str| kind.parse(OsStr::new(text));
    assert_eq!(of(&share, "0.92"), Some(Value::Number(0.92)));
    assert_eq!((of(&share, "1.1"), of(&share, "nan"), of(&share, "-0.1")), (None, None, None));
    assert_eq!(share.to_string(), "a number from 0 to 1");
    let megabytes = Kind::Size { unit: Bytes::new(1 << 20), least: Bytes::new(1) };
    assert_eq!(of(&megabytes, "500"), Some(Value::Size(Bytes::new(500 << 20))));
    assert_eq!(of(&megabytes, "1GiB"), Some(Value::Size(Bytes::new(1 << 30))));
    assert_eq!((of(&megabytes, "0"), of(&megabytes, "99999999999999999999")), (None, None));
    assert_eq!((of(&Kind::Names, "./a"), of(&Kind::Names, "a,,b"), of(&Kind::Names, "")), (None, None, None));
    assert_eq!(of(&Kind::Names, "gcc, ld"), Some(Value::Text("gcc, ld".to_owned())));
    assert_eq!((of(&Kind::Text, "a\0b"), of(&Kind::Path, "a\0b"), of(&Kind::Path, "")), (None, None, None));
}

#[test]
fn an_empty_variable_says_nothing() {
    let (options, errors) = read(&[("LOWTIDE_PAGES", ""), ("START_STATISTIC_STEP", "")]);
    assert_eq!((options, errors), (Options::default(), vec![]));
}

#[test]
fn a_variable_that_another_library_reads_is_not_judged() {
    let (options, errors) = read(&[("MALLOC_TRIM_THRESHOLD_", "-1"), ("MALLOC_ARENA_MAX", "4")]);
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(options.get(ARENA_MAX), Some(4));
    let threshold = options.setting(TRIM_THRESHOLD);
    assert_eq!(*threshold, Setting { value: None, origin: Origin::Variable("MALLOC_TRIM_THRESHOLD_") });
}

#[test]
fn who_sets_a_variable_of_an_older_system_gets_its_defaults_for_the_others() {
    let of = |variables: &[(&str, &str)]| {
        let (options, errors) = read(variables);
        assert_eq!(errors, Vec::<String>::new());
        let numbers = [LEARN_START, LEARN_STABLE, LEARN_MAX].map(|key| options.get(key));
        (options.get(LEARN), numbers, options.get(RELEARN))
    };
    assert_eq!(of(&[]), (true, [1, 0, 20], true));
    assert_eq!(of(&[("START_STATISTIC_STEP", "7")]), (true, [7, 10, 100], false));
    assert_eq!(of(&[("STABLE_STATISTIC_STEP", "3")]), (true, [100, 3, 100], false));
    assert_eq!(of(&[("ENABLE_MEMORY_OPTIMIZATION", "0")]), (false, [100, 10, 100], false));
    assert_eq!(of(&[("MAX_STATISTIC_STEP", "9"), ("LOWTIDE_RELEARN", "1")]), (true, [100, 10, 9], true));
    assert_eq!(of(&[("LOWTIDE_LEARN_START", "5")]), (true, [5, 0, 20], true), "its own names leave its own defaults");
}

#[test]
fn the_own_variable_goes_before_the_former_and_that_before_an_older_systems() {
    let both = [("LOWTIDE_BELOW", "jemalloc"), ("LOWTIDE_UNDERLYING", "mimalloc")];
    assert_eq!(read(&both).0.get(UNDERLYING), "mimalloc");
    assert_eq!(read(&both[..1]).0.setting(UNDERLYING).origin, Origin::Variable("LOWTIDE_BELOW"));
    assert!(read(&[("LOWTIDE_LEARN", "1"), ("ENABLE_MEMORY_OPTIMIZATION", "0")]).0.get(LEARN));
}

#[test]
fn only_the_scopes_that_are_asked_for_are_read() {
    let (options, errors) = Options::from_variables(&[Scope::Device], |_| Some("x".into()));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(options, Options::default());
}

#[test]
fn what_flags_and_files_say_is_handed_on() {
    let mut options = Options::default();
    options.set(DECAY.entry(), Value::Seconds(Duration::from_millis(1500)), Origin::File { line: 2 });
    options.set(LEARN.entry(), Value::Switch(false), Origin::Flag);
    assert_eq!(options.read_variables(&Scope::ALL, |name| (name == "LOWTIDE_PAGES").then(|| "2M".into())), []);
    let handed: Vec<_> = options.handed_on().map(|(entry, text)| (entry.variable, text)).collect();
    assert_eq!(handed, [("LOWTIDE_DECAY", "1.5".into()), ("LOWTIDE_LEARN", "0".into())]);
}

/// The files below `folder` with one of the endings.
fn sources(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path, endings));
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
    found
}

/// The variables of Lowtide that `text` names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("LOWTIDE_").map(|(start, _)| {
        let rest = &text[start..];
        &rest[..rest.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(rest.len())]
    })
}

/// Whether a text that is nothing but a variable stands in `code`.
fn is_typed(code: &str) -> bool {
    named(code).any(|name| code.contains(&format!("\"{name}\"")))
}

#[test]
fn variables_are_typed_in_the_table_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let former = TABLE.iter().flat_map(|entry| entry.former.iter().map(|former| former.variable));
    let known: HashSet<&str> = TABLE.iter().map(|entry| entry.variable).chain(former).collect();
    let mut files = 0;
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        for path in sources(&folder.unwrap().path().join("src"), &["rs"]) {
            let elsewhere = path.to_string_lossy();
            if elsewhere.contains("core/src/options") || elsewhere.contains("crates/testing/") {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            assert!(!is_typed(code), "{} types a variable", path.display());
            assert_eq!(named(code).find(|name| !known.contains(name)), None, "{}", path.display());
        }
    }
    // What Python runs before a program cannot import the package, and types a few.
    for path in sources(&root.join("python/lowtide"), &["py"]) {
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let unknown = named(&text).find(|name| !known.contains(name));
        assert_eq!(unknown, None, "{}", path.display());
        let may = path.ends_with("_inject/sitecustomize.py");
        assert!(may || !is_typed(&text), "{} types a variable", path.display());
    }
    assert!(files > 100, "{files} files");
}

#[test]
fn deep_recs_switch_turns_the_arena_off_unless_somebody_asks_for_it() {
    let origin = |variables: &[(&str, &str)]| {
        let (options, errors) = read(variables);
        assert!(errors.is_empty(), "{errors:?}");
        (options.get(ARENA), options.setting(ARENA).origin.clone())
    };
    let off = ("ENABLE_MEMORY_OPTIMIZATION", "0");
    assert_eq!(origin(&[off]), (ArenaUse::Never, Origin::Variable("ENABLE_MEMORY_OPTIMIZATION")));
    assert_eq!(origin(&[("ENABLE_MEMORY_OPTIMIZATION", "1")]).0, ArenaUse::Auto);
    assert_eq!(origin(&[off, ("LOWTIDE_ARENA", "always")]).0, ArenaUse::Always);
}
