//! `lowtide bench malloc`: what is measured, what is said of those who are missing or fail, and mistakes.

use super::support::{BINARY, Ended, Folder, lowtide};

fn bench_with(folder: &Folder, library: &str, arguments: &[&str]) -> Ended {
    let mut command = lowtide(&[&["bench", "malloc"], arguments].concat());
    command.current_dir(folder.path()).env("LOWTIDE_LIBRARY", library).env("LOWTIDE_PYTHON", "/no/python");
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), data: text(output.stdout), talk: text(output.stderr) }
}

fn bench(folder: &Folder, arguments: &[&str]) -> Ended {
    bench_with(folder, "/no/such.so", arguments)
}

#[test]
fn a_row_is_measured() {
    let folder = Folder::new();
    let arguments = ["--rows", "1", "--turns", "200", "--runs", "1", "--allocators", "glibc", "--json", "-o", "m.json"];
    let ended = bench(&folder, &arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let report = ended.json();
    assert_eq!(
        (&report["version"], &report["runs"], &report["failed"]),
        (&1.into(), &1.into(), &serde_json::json!([]))
    );
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1));
    let row = &report["rows"][0];
    assert_eq!((&row["row"], &row["allocator"], &row["turns"]), (&1.into(), &"glibc".into(), &200.into()));
    assert_eq!((&row["smallest_bytes"], &row["largest_bytes"]), (&33_000.into(), &41_000.into()));
    let median = |name: &str| row[name]["median"].as_f64().unwrap();
    assert!(median("wall_ns") > 1.0 && median("cpu_ns") >= 0.0 && median("faults") >= 0.0, "{row}");
    assert!(median("peak_rss_bytes") > 1e6 && median("peak_rss_bytes") < 1e9, "{row}");
    assert_eq!(folder.read("m.json"), ended.data);
}

#[test]
fn rows_are_lines_in_their_order_and_who_is_missing_is_named_with_what_to_do() {
    let folder = Folder::new();
    let arguments = ["--rows", "4,1", "--turns", "100", "--runs", "2", "--allocators", "glibc,lowtide"];
    let ended = bench(&folder, &arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.starts_with("MISSING lowtide: LOWTIDE_LIBRARY is /no/such.so"), "{}", ended.talk);
    let lines: Vec<&str> = ended.data.lines().collect();
    assert_eq!((lines[0], lines[1].trim()), ("CPU ns a turn / peak MiB:", "glibc"), "{}", ended.data);
    assert!(lines[2].starts_with("1 thread, 33-41 KB, 20 blocks  "), "{}", ended.data);
    assert_eq!((lines[3], lines[4]), ("2 threads, 32 KiB-1 MiB, 100", "  blocks each, each block"));
    assert!(lines[5].starts_with("  freed by the other thread  "), "{}", ended.data);
    assert_eq!(lines[7], "wall ns / minor faults a turn:", "{}", ended.data);
    assert!(lines[14].starts_with("MISSING lowtide: "), "{}", ended.data);
    assert!(lines[15].starts_with("medians of 2 runs, "), "{}", ended.data);
    let nobody = bench(&folder, &["--allocators", "lowtide"]);
    assert_eq!(nobody.code, Some(2), "{}", nobody.talk);
}

#[test]
fn a_process_that_fails_is_a_no_and_is_not_started_again() {
    let folder = Folder::new();
    // The blocks of row 5 take more addresses than that.
    let script = format!("ulimit -v 150000; exec {BINARY} \"$@\"");
    let arguments = ["bench", "malloc", "--rows", "1,5", "--turns", "10", "--runs", "2", "--allocators", "glibc"];
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &script, "sh"]).args(arguments).current_dir(folder.path()).output().unwrap();
    let (data, talk) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{talk}");
    let failed = "FAILED 2 threads, 256 KiB-8 MiB, 40 blocks each on glibc: ";
    assert_eq!((talk.matches(failed).count(), data.matches(failed).count()), (1, 1), "{talk}{data}");
    assert!(data.contains("1 thread, 33-41 KB, 20 blocks  "), "{data}");
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new();
    for (arguments, words) in [
        (&["--rows", "8"][..], "write numbers of rows from 1 to 7"),
        (&["--rows", "1,x"], "write numbers of rows from 1 to 7"),
        (&["--rows", "-1"], "write numbers of rows from 1 to 7"),
        (&["--allocators", "hoard"], "jemalloc-default"),
        (&["--runs", "0"], "whole number from 1"),
        (&["--turns", "0"], "whole number from 1"),
        (&["-o", "no/x.json"], "folder of the output"),
    ] {
        let ended = bench(&folder, arguments);
        assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{arguments:?}: {}", ended.talk);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{words}: {}", ended.talk);
    }
}

#[test]
fn the_help_has_the_rows_and_not_how_they_are_run() {
    let folder = Folder::new();
    let help = bench(&folder, &["--help"]).data;
    assert!(help.contains("  6  8 threads, 32-256 KiB, 50 blocks each\n"), "{help}");
    assert!(help.contains("lowtide bench malloc --rows 1,3 --runs 1") && !help.contains("--run-row"), "{help}");
}
