//! Options on their way: from flags, variables and `lowtide.toml` into a program, and into what `lowtide config` shows.

use std::fs;
use std::path::Path;

use lowtide_core::options::{Entry, Kind, Scope, TABLE};
use serde_json::Value;

use super::support::{Ended, Folder, lowtide};

fn run_in(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = lowtide(arguments);
    command.current_dir(folder.path());
    let older = TABLE.iter().flat_map(|entry| entry.older.iter().filter_map(|older| older.variable));
    let former = TABLE.iter().flat_map(|entry| entry.former.iter().map(|former| former.variable));
    for name in TABLE.iter().map(|entry| entry.variable).chain(older).chain(former).chain(["LD_PRELOAD"]) {
        command.env_remove(name);
    }
    // Any file will do: what matters is what a program finds in its environment.
    folder.write("empty.so", b"");
    command.env("LOWTIDE_LIBRARY", "empty.so").env("LOWTIDE_PYTHON", "/no/python");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), data: text(output.stdout), talk: text(output.stderr) }
}

fn config(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    let ended = run_in(folder, &[&["config", "--json"], arguments].concat(), variables);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    serde_json::from_str(&ended.data).unwrap()
}

/// The value and the origin that `lowtide config` shows for an option.
fn shown(report: &Value, name: &str) -> (String, String) {
    let options = report["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["name"] == name).unwrap_or_else(|| panic!("{name}"));
    (option["value"].as_str().unwrap_or("-").to_owned(), option["origin"].as_str().unwrap().to_owned())
}

/// A value of an option that is not its default: as a flag has it, as the file has it, and as the variable has it.
fn example(entry: &Entry) -> (Option<&'static str>, &'static str, &'static str) {
    match entry.kind {
        Kind::Switch if entry.default == Some("1") => (None, "false", "0"),
        Kind::Switch => (None, "true", "1"),
        Kind::Count { .. } => (Some("7"), "7", "7"),
        Kind::Number { .. } | Kind::Seconds => (Some("0.5"), "0.5", "0.5"),
        Kind::Size { .. } => (Some("128KiB"), "'128KiB'", "131072"),
        Kind::SecondsOrStep => (Some("step"), "'step'", "step"),
        Kind::Choice(_) if entry.name == "arena" => (Some("never"), "'never'", "never"),
        Kind::Choice(_) => (Some("base"), "'base'", "base"),
        Kind::Text | Kind::Names | Kind::Path => (Some("glibc"), "'glibc'", "glibc"),
    }
}

#[test]
fn every_option_reaches_the_program_by_flag_and_by_file() {
    for entry in TABLE.iter().filter(|entry| entry.scope.is_of_run()) {
        let (flag_value, file_value, expected) = example(entry);
        let script = format!("printf %s \"${}\"", entry.variable);
        let part = if entry.scope == Scope::Device { "--device" } else { "--host" };
        let flag = format!("--{}", entry.flag());
        let flags: Vec<&str> = [flag.as_str()].into_iter().chain(flag_value).collect();
        let folder = Folder::new();
        if entry.scope == Scope::Device {
            // A device needs a Python with the package; what it would be given is in force all the same.
            assert_eq!(shown(&config(&folder, &flags, &[]), entry.name), (expected.to_owned(), "flag".to_owned()));
            continue;
        }
        let tail = ["--", "sh", "-c", &script];
        let ended = run_in(&folder, &[&["run", "--quiet", part], &flags[..], &tail].concat(), &[]);
        assert_eq!((ended.code, ended.data.as_str()), (Some(0), expected), "{flag}: {}", ended.talk);
        folder.write("lowtide.toml", format!("{} = {file_value}\n", entry.key()).as_bytes());
        let ended = run_in(&folder, &[&["run", part], &tail[..]].concat(), &[]);
        assert_eq!((ended.code, ended.data.as_str()), (Some(0), expected), "{}: {}", entry.key(), ended.talk);
        assert!(ended.talk.starts_with("options from lowtide.toml\n"), "{}", ended.talk);
        let by_file = shown(&config(&folder, &[], &[]), entry.name);
        assert_eq!(by_file, (expected.to_owned(), "file".to_owned()), "{}", entry.name);
    }
}

#[test]
fn flags_go_before_variables_and_those_before_the_file() {
    let folder = Folder::new();
    let decay = |arguments: &[&str], variables: &[(&str, &str)]| shown(&config(&folder, arguments, variables), "decay");
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(decay(&[], &[]), pair("10", "default"));
    folder.write("lowtide.toml", b"decay = 1\n");
    assert_eq!(decay(&[], &[]), pair("1", "file"));
    assert_eq!(decay(&[], &[("LOWTIDE_DECAY", "")]), pair("1", "file"));
    assert_eq!(decay(&[], &[("LOWTIDE_DECAY", "2")]), pair("2", "variable"));
    assert_eq!(decay(&["--decay", "3"], &[("LOWTIDE_DECAY", "2")]), pair("3", "flag"));
    folder.write("other.toml", b"decay = 4\n");
    assert_eq!(decay(&["--config", "other.toml"], &[]), pair("4", "file"));
    let script = ["--", "sh", "-c", "printf %s $LOWTIDE_DECAY"];
    let variable = [("LOWTIDE_DECAY", "2")];
    assert_eq!(run_in(&folder, &[&["run", "--quiet"], &script[..]].concat(), &variable).data, "2");
    assert_eq!(run_in(&folder, &[&["run", "--quiet", "--decay", "3"], &script[..]].concat(), &variable).data, "3");
}

#[test]
fn config_says_where_each_value_came_from() {
    let folder = Folder::new();
    folder.write("lowtide.toml", b"\npages = '2M'\n");
    let variables = [("START_STATISTIC_STEP", "7"), ("MALLOC_TRIM_THRESHOLD_", "-1"), ("LOWTIDE_BELOW", "glibc")];
    let ended = run_in(&folder, &["config", "--limit", "40GiB", "--no-relearn"], &variables);
    assert_eq!((ended.code, &*ended.talk), (Some(0), ""));
    let lines: Vec<String> =
        ended.data.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "pages 2M lowtide.toml:2",
        "decay 10 s default",
        "learn on default of DeepRec",
        "learn-start 7 variable START_STATISTIC_STEP",
        "learn-stable 10 default of DeepRec",
        "relearn off flag",
        "underlying glibc variable LOWTIDE_BELOW",
        "trim-threshold -1 variable MALLOC_TRIM_THRESHOLD_",
        "arena-max - default",
        "limit 40.0 GiB flag",
        "library empty.so variable LOWTIDE_LIBRARY",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line}:\n{}", ended.data);
    }
    assert!(!ended.data.contains("runner"), "{}", ended.data);
    let report = config(&folder, &[], &variables);
    assert_eq!((&report["version"], &report["file"]), (&1.into(), &"lowtide.toml".into()));
    assert_eq!(shown(&report, "trim-threshold"), ("-1".to_owned(), "variable".to_owned()));
}

#[test]
fn a_value_out_of_range_is_refused_before_anything_runs() {
    let folder = Folder::new();
    folder.write("bad.toml", b"decay = 1\npagse = '2M'\n");
    folder.write("range.toml", b"decay = -1\n");
    for (flags, variables, words) in [
        (&["--decay", "soon"][..], &[][..], "'--decay <SECONDS>'"),
        (&[], &[("LOWTIDE_PAGES", "4K")], "`LOWTIDE_PAGES` cannot be `4K`: it is `base`, `transparent`, `2M` or `1G`"),
        (&[], &[("MAX_STATISTIC_STEP", "0")], "`MAX_STATISTIC_STEP` cannot be `0`: it is a whole number from 1 to"),
        (&["--config", "bad.toml"], &[], "bad.toml:2: there is no option `pagse`\nhint: write `pages`"),
        (&["--config", "range.toml"], &[], "range.toml:1: `decay` cannot be `-1`: it is a number of seconds from 0 on"),
        (&["--config", "none.toml"], &[], "none.toml: cannot open"),
        (&["--config", "."], &[], "cannot open"),
    ] {
        for (verb, tail) in [("config", &[][..]), ("run", &["--", "echo", "ran"])] {
            let ended = run_in(&folder, &[&[verb], flags, tail].concat(), variables);
            assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{verb}: {}", ended.talk);
            assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{words}: {}", ended.talk);
        }
    }
}

#[test]
fn the_reference_page_is_the_tables() {
    let page = run_in(&Folder::new(), &["config", "--reference"], &[]).data;
    for entry in TABLE {
        assert_eq!(
            page.contains(&format!("`{}`", entry.variable)),
            entry.scope != Scope::Internal,
            "{}",
            entry.variable
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let is_current = fs::read_to_string(path).unwrap() == page;
    assert!(is_current, "make it anew: cargo run -- config --reference > docs/options.md");
}

#[test]
fn the_help_of_run_has_the_command_first_and_headings_by_subject() {
    let help = run_in(&Folder::new(), &["run", "--help"], &[]).data;
    let at = |heading: &str| help.find(&format!("\n{heading}:\n")).unwrap_or_else(|| panic!("{heading}:\n{help}"));
    let headings =
        ["Arguments", "Options", "Host memory", "Learning", "Underlying allocator", "CUDA devices", "NUMA", "Examples"];
    let places = headings.map(at);
    assert!(places.is_sorted(), "{help}");
    assert!(help[places[0]..places[1]].contains("<COMMAND>..."), "{help}");
}
