//! `lowtide run` on the host: what gets into a program, where it runs, and what is told of it. A small library stands for
//! the one that serves memory: it writes a summary when a process ends, and shows what it was told.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use lowtide_testing::skip;
use serde_json::Value;
use tempfile::TempDir;

use super::support::{BINARY, Ended, Folder, lowtide};

/// Writes `FOLDER/PID.json` at exit, and at the exit without farewell of a shell, with the steps that were marked.
const STAND_IN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int steps;
void lowtide_step(void) { steps++; }
__attribute__((destructor)) static void summary(void) {
    const char *folder = getenv("LOWTIDE_SUMMARY"), *below = getenv("LOWTIDE_UNDERLYING"), *bad = getenv("STAND_IN_BAD");
    char path[4096];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%d.json", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file) return;
    if (bad) { fputs("{", file); fclose(file); return; }
    fprintf(file, "{\"version\":1,\"pid\":%d,\"command\":\"stand-in\",\"seconds\":1.5,\"steps\":%d,\"steps_by\":\"marks\","
        "\"planned_from_step\":4,\"faults\":{\"total\":99,\"per_step_before_plan\":1000.0,\"per_step_after_plan\":0.0},"
        "\"peak_rss_bytes\":%d,\"large\":{\"allocations\":10,\"hits\":5,\"misses\":0,\"peak_live_bytes\":1048576},"
        "\"huge_page_bytes\":1048576,\"arena_resident_bytes\":2097152,\"below\":\"%s\",\"stepped_aside\":null,"
        "\"warnings\":[]}", (int)getpid(), steps + 40, getenv("STAND_IN_LARGE") ? 8388608 : 4194304, below);
    fclose(file);
}
void _exit(int code) { summary(); syscall(SYS_exit_group, code); __builtin_unreachable(); }
"#;

/// The stand-in, made once for all tests.
fn stand_in() -> PathBuf {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stand.c"), STAND_IN).unwrap();
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "libstand.so", "stand.c"])
            .current_dir(folder.path())
            .status();
        assert!(made.unwrap().success());
        folder
    });
    folder.path().join("libstand.so")
}

fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    run_in(&Folder::new(), arguments, variables)
}

/// Runs the command without any Python, and with the stand-in.
fn run_in(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = lowtide(arguments);
    command.current_dir(folder.path()).env("LOWTIDE_LIBRARY", stand_in()).env("LOWTIDE_PYTHON", "/no/python");
    for name in ["LD_PRELOAD", "MALLOC_CONF", "PYTHONPATH"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), data: text(output.stdout), talk: text(output.stderr) }
}

fn run(arguments: &[&str]) -> Ended {
    run_with(arguments, &[])
}

#[test]
fn the_host_is_served_where_nothing_is_named_and_the_end_is_told() {
    let ended = run(&["run", "--", "sh", "-c", "echo $LD_PRELOAD $LOWTIDE_RUN $LOWTIDE_UNDERLYING; exit 5"]);
    assert_eq!(ended.code, Some(5), "{}", ended.talk);
    assert_eq!(ended.data, format!("{} host glibc\n", stand_in().display()));
    for words in [
        "lowtide: stand-in, process ",
        "40 steps marked by the program, planned from step 4 · 1.5 s",
        "faults       1,000 a step before the plan, 0 after",
        "peak         4.0 MiB resident · large blocks 1.0 MiB at most",
        "plan         100.0% of 5 large allocations hit",
        "huge pages   50.0% of 2.0 MiB",
    ] {
        assert!(ended.talk.contains(words), "{words}: {}", ended.talk);
    }
    // One that failed would be refused.
    assert!(!ended.talk.contains("next:"), "{}", ended.talk);
    let next = "next: `lowtide run --compare --pages base -- true` runs it with and without";
    assert!(run(&["run", "--pages", "base", "--", "true"]).talk.contains(next));
    assert!(run(&["run", "--quiet", "--", "true"]).talk.is_empty());
}

#[test]
fn flags_reach_the_program() {
    let names = "LOWTIDE_PAGES LOWTIDE_PREFAULT LOWTIDE_DECAY LOWTIDE_LEARN LOWTIDE_TRIM_UNDERLYING MALLOC_ARENA_MAX \
                 MALLOC_TRIM_THRESHOLD_";
    let script = format!("for n in {names}; do eval echo $n=\\$$n; done");
    let flags =
        "--pages base --prefault --decay 2.5 --no-learn --trim-below step --arena-max 2 --trim-threshold 128KiB";
    let flags: Vec<&str> = flags.split(' ').collect();
    let ended = run(&[&["run"], &flags[..], &["--", "sh", "-c", &script]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let expected = "LOWTIDE_PAGES=base LOWTIDE_PREFAULT=1 LOWTIDE_DECAY=2.5 LOWTIDE_LEARN=0 LOWTIDE_TRIM_UNDERLYING=step \
                    MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072";
    assert_eq!(ended.data.split_whitespace().collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn a_library_that_was_preloaded_stays_behind() {
    let other = Folder::new();
    let copy = other.at("libother.so");
    fs::copy(stand_in(), &copy).unwrap();
    let before = copy.to_str().unwrap();
    let ended = run_with(&["run", "--", "sh", "-c", "echo $LD_PRELOAD"], &[("LD_PRELOAD", before)]);
    assert_eq!(ended.data, format!("{}:{before}\n", stand_in().display()));
}

#[test]
fn the_underlying_allocator_is_found_by_path_and_has_its_settings() {
    let folder = Folder::new();
    let below = folder.at("libjemalloc.so.2");
    fs::copy(stand_in(), &below).unwrap();
    let below = below.to_str().unwrap();
    let script = "echo $LD_PRELOAD $LOWTIDE_UNDERLYING $MALLOC_CONF";
    let ended = run(&["run", "--below", below, "--", "sh", "-c", script]);
    let expected = format!("{}:{below} jemalloc dirty_decay_ms:-1,muzzy_decay_ms:-1\n", stand_in().display());
    assert_eq!(ended.data, expected, "{}", ended.talk);
    assert!(!ended.talk.contains("warning"), "{}", ended.talk);
    let conf = "background_thread:true,metadata_thp:auto,dirty_decay_ms:20000,muzzy_decay_ms:20000";
    let ended = run(&["run", "--underlying", below, "--malloc-conf", conf, "--", "sh", "-c", "echo $MALLOC_CONF"]);
    assert_eq!(ended.data, format!("{conf}\n"));
    assert!(ended.talk.starts_with("warning: with dirty_decay_ms:20000"), "{}", ended.talk);
}

#[test]
fn the_largest_process_has_the_block_and_the_others_a_line() {
    let ended = run(&["run", "--", "sh", "-c", "sh -c 'exit 0'; STAND_IN_LARGE=1 sh -c 'exit 0'; exit 0"]);
    assert!(ended.talk.contains("peak         8.0 MiB"), "{}", ended.talk);
    assert!(ended.talk.contains("  and 2 other processes, with at most 4.0 MiB\n"), "{}", ended.talk);
}

#[test]
fn a_process_that_left_no_summary_is_told() {
    let ended = run(&["run", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ended.code, Some(137));
    assert!(ended.talk.contains("left no summary: it was killed by signal 9"), "{}", ended.talk);
    let ended = run(&["run", "--", "env", "-u", "LD_PRELOAD", "true"]);
    assert!(
        ended.talk.contains("left no summary: it cannot be preloaded into, or has no permission"),
        "{}",
        ended.talk
    );
    let ended = run_with(&["run", "--", "sh", "-c", "exit 0"], &[("STAND_IN_BAD", "1")]);
    assert!(ended.talk.contains("1 summary cannot be read"), "{}", ended.talk);
}

#[test]
fn all_summaries_are_written_for_machines() {
    let folder = Folder::new();
    let ended = run_in(&folder, &["run", "-o", "run.json", "--", "sh", "-c", "sh -c 'exit 0'; exit 3"], &[]);
    assert_eq!(ended.code, Some(3));
    assert!(ended.talk.ends_with("wrote run.json\n"), "{}", ended.talk);
    let report: Value = serde_json::from_str(&folder.read("run.json")).unwrap();
    assert_eq!((&report["version"], &report["exit_code"]), (&Value::from(1), &Value::from(3)));
    assert_eq!(report["processes"].as_array().unwrap().len(), 2);
    assert_eq!(report["processes"][0]["steps"], 40);
    assert!(report["minor_faults"].as_u64().unwrap() > 0 && report["compare"].is_null());
}

#[test]
fn a_comparison_runs_it_without_and_with() {
    let folder = Folder::new();
    let script = "echo ${LD_PRELOAD:-none}; head -c 3000000 /dev/zero | sort | wc -c";
    let ended = run_in(&folder, &["run", "--compare", "-o", "c.json", "--", "sh", "-c", script], &[]);
    assert_eq!(ended.data, format!("none\n3000001\n{}\n3000001\n", stand_in().display()), "{}", ended.talk);
    for words in ["without", "  ratio", "wall", "CPU, system", "minor faults", "peak RSS", "next: `lowtide watch"] {
        assert!(ended.talk.contains(words), "{words}: {}", ended.talk);
    }
    let report: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    assert!(report["compare"]["without"]["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    let failing = run(&["run", "--compare", "--", "sh", "-c", "exit 9"]);
    assert_eq!(failing.code, Some(9));
    assert!(failing.talk.contains("not compared: without Lowtide it ended with code 9"), "{}", failing.talk);
}

#[test]
fn in_a_comparison_of_several_rounds_each_side_goes_first_in_turn() {
    let folder = Folder::new();
    let arguments = ["run", "--compare", "--rounds", "2", "-o", "c.json", "--", "sh", "-c", "echo ${LD_PRELOAD:+with}"];
    let ended = run_in(&folder, &arguments, &[]);
    assert_eq!(ended.data, "\nwith\nwith\n\n", "{}", ended.talk);
    assert!(ended.talk.contains("over 2 rounds"), "{}", ended.talk);
    let report: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    assert_eq!(report["compare"]["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(run(&["run", "--rounds", "2", "--", "true"]).code, Some(2));
}

#[test]
fn a_comparison_that_ends_early_keeps_what_it_has() {
    let folder = Folder::new();
    let quiet = ["run", "--compare", "--quiet", "-o", "c.json", "--", "sh", "-c", "exit 9"];
    let ended = run_in(&folder, &quiet, &[]);
    assert_eq!((ended.code, &*ended.talk), (Some(9), ""));
    let report: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    assert_eq!((&report["exit_code"], &report["compare"]), (&Value::from(9), &Value::Null));
    assert_eq!(report["stopped"], "not compared: without Lowtide it ended with code 9");
    // The fourth run is the second without Lowtide.
    let script = "echo >> runs; test $(wc -l < runs) -lt 4";
    let ended = run_in(&folder, &["run", "--compare", "--rounds", "3", "-o", "c.json", "--", "sh", "-c", script], &[]);
    let stopped = "stopped after 1 round of 3: without Lowtide it ended with code 1";
    assert_eq!(ended.code, Some(1), "{}", ended.talk);
    assert!(ended.talk.contains("minor faults") && ended.talk.contains(stopped), "{}", ended.talk);
    let report: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    assert_eq!((&report["exit_code"], &report["stopped"]), (&Value::from(1), &Value::from(stopped)));
    assert_eq!(report["compare"]["rounds"].as_array().unwrap().len(), 1);
    assert!(!report["processes"].as_array().unwrap().is_empty());
}

#[test]
fn each_run_has_a_folder_of_its_own_for_summaries_and_leaves_none() {
    let (folder, temporary) = (Folder::new(), Folder::new());
    let arguments = ["run", "--compare", "--rounds", "2", "--", "sh", "-c", "echo ${LOWTIDE_SUMMARY:-none}"];
    let ended = run_in(&folder, &arguments, &[("TMPDIR", temporary.path().to_str().unwrap())]);
    let lines: Vec<&str> = ended.data.lines().collect();
    let ["none", first, second, "none"] = lines[..] else { panic!("{lines:?}: {}", ended.talk) };
    assert!(first != second && first.starts_with(temporary.path().to_str().unwrap()), "{lines:?}");
    assert_eq!(temporary.list(), Vec::<String>::new());
}

#[test]
fn a_program_that_becomes_another_user_leaves_its_summary() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return skip("a program becomes another user only for root, and with `setpriv`");
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let library = folder.at("libstand.so");
    fs::copy(stand_in(), &library).unwrap();
    let arguments = ["run", "--", "setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "id -u; exit 0"];
    let ended = run_with(&arguments, &[("LOWTIDE_LIBRARY", library.to_str().unwrap()), ("TMPDIR", "/tmp")]);
    assert_eq!((ended.code, &*ended.data), (Some(0), "65534\n"), "{}", ended.talk);
    assert!(ended.talk.starts_with("lowtide: stand-in") && !ended.talk.contains("no summary"), "{}", ended.talk);
}

#[test]
fn what_cannot_be_written_in_the_end_does_not_hide_how_the_program_ended() {
    for (code, expected) in [("9", 9), ("0", 2)] {
        let folder = Folder::new();
        fs::create_dir(folder.at("gone")).unwrap();
        let script = format!("rmdir gone; exit {code}");
        let ended = run_in(&folder, &["run", "-o", "gone/x.json", "--", "sh", "-c", &script], &[]);
        assert_eq!(ended.code, Some(expected), "{}", ended.talk);
        assert!(ended.talk.contains("\nerror: gone/x.json: ") && ended.talk.contains("\nhint: "), "{}", ended.talk);
    }
}

#[test]
fn a_signal_to_lowtide_alone_reaches_the_program() {
    for (verb, signal) in [("run", "INT"), ("run", "QUIT"), ("run", "USR1"), ("watch", "INT"), ("watch", "USR1")] {
        let (folder, temporary) = (Folder::new(), Folder::new());
        let script =
            format!("trap 'echo heard; exit 4' {signal}; echo ready; for n in $(seq 200); do sleep 0.05; done");
        let mut child = Command::new(BINARY)
            // Whoever runs the tests may have them ignore some, and a shell traps nothing that it was to ignore.
            .args([verb, "-o", "x.json", "--", "env", "--default-signal", "sh", "-c", &script])
            .current_dir(folder.path())
            .env("TMPDIR", temporary.path())
            .env("LOWTIDE_LIBRARY", stand_in())
            .env("LOWTIDE_PYTHON", "/no/python")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut data = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        data.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{verb} {signal}");
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        data.read_to_string(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*line), (Some(4), "ready\nheard\n"), "{verb} {signal}: {talk}");
        let report: Value = serde_json::from_str(&folder.read("x.json")).unwrap();
        assert_eq!(report["exit_code"], 4, "{verb} {signal}");
        assert_eq!(temporary.list(), Vec::<String>::new(), "{verb} {signal}");
    }
}

#[test]
fn a_program_runs_on_the_nodes_that_are_named() {
    let script = "grep -c 'bind:0' /proc/self/numa_maps; grep Cpus_allowed_list /proc/self/status";
    let ended = run(&["run", "--cpu-node", "0", "--mem-node", "0", "--", "sh", "-c", script]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert_ne!(ended.data.lines().next(), Some("0"), "{}", ended.data);
    let ended = run(&["run", "--interleave", "all", "--", "sh", "-c", "grep -c interleave /proc/self/numa_maps"]);
    assert_ne!(ended.data, "0\n", "{}", ended.talk);
    let ended = run(&["run", "--cpu-node", "99", "--", "true"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.talk.contains("there is no node 99") && ended.talk.contains("this machine has node"),
        "{}",
        ended.talk
    );
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    for (arguments, words) in [
        (&["run", "--below", "hoard", "--", "echo", "ran"][..], "is no allocator that Lowtide knows"),
        (&["run", "--below", "/no/libjemalloc.so", "--", "echo", "ran"], "is not there"),
        (&["run", "--device", "--prefault", "--", "echo", "ran"], "`--prefault` is for the host's memory"),
        (&["run", "--decay", "-1", "--", "echo", "ran"], "a number of seconds from 0 on"),
        (&["run", "--limit", "1GiB", "--", "echo", "ran"], "`--limit` is for the memory of CUDA devices"),
        (&["run", "--decay", "1e11", "--", "echo", "ran"], "a number of seconds from 0 on"),
        (&["run", "--trim-below", "often", "--", "echo", "ran"], "or `step`"),
        (&["run", "--pages", "4K", "--", "echo", "ran"], "transparent"),
        (&["run", "-o", "no/x.json", "--", "echo", "ran"], "folder of the output"),
        (&["run", "--mem-node", "0", "--interleave", "0", "--", "echo", "ran"], "--interleave"),
        (&["run", "--pagse", "2M", "--", "true"], "--pagse is neither an option nor a program"),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{arguments:?}: {}", ended.talk);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{words}: {}", ended.talk);
    }
    let ended = run_with(&["run", "--", "echo", "ran"], &[("LOWTIDE_LIBRARY", "/no/such.so")]);
    assert_eq!((ended.code, &*ended.data), (Some(2), ""));
    assert!(ended.talk.contains("LOWTIDE_LIBRARY is /no/such.so, which is not there"), "{}", ended.talk);
}

#[test]
fn a_program_that_cannot_be_served_runs_without_and_that_is_said() {
    let folder = Folder::new();
    let source = "#include <stdlib.h>\nint main(void) { return getenv(\"LD_PRELOAD\") ? 3 : 4; }\n";
    folder.write("program.c", source.as_bytes());
    let mut tried = 0;
    for (flag, reason) in [("-fsanitize=address", "a sanitizer"), ("-static", "statically"), ("-O1", "")] {
        let built =
            Command::new("cc").args(["-w", "-o", "program", "program.c", flag]).current_dir(folder.path()).status();
        if !built.is_ok_and(|status| status.success()) {
            skip(&format!("this machine's compiler has no `{flag}`"));
            continue;
        }
        tried += 1;
        let ended = run_in(&folder, &["run", "--", "./program"], &[]);
        // A static program ignores what it hands on to those that it starts.
        let is_harmed = reason == "a sanitizer";
        assert_eq!(ended.code, Some(if is_harmed { 4 } else { 3 }), "{flag}: {}", ended.talk);
        assert_eq!(ended.talk.contains("it runs without Lowtide"), !reason.is_empty(), "{flag}: {}", ended.talk);
        assert!(ended.talk.contains(reason), "{flag}: {}", ended.talk);
        let strict = run_in(&folder, &["run", "--strict", "--", "./program"], &[]);
        assert_eq!(strict.code == Some(2), !reason.is_empty(), "{flag}: {}", strict.talk);
    }
    assert!(tried > 0);
}
