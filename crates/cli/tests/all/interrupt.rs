//! Ctrl-C on a solve takes the best plan so far.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{BINARY, Folder, hard};

/// Runs a solve that would take a minute, and interrupts it as soon as it surely solves.
fn interrupted(folder: &Folder, arguments: &[&str]) -> Output {
    folder.write("hard.csv", &hard(20_000, 4_000));
    interrupted_verb(folder, &[&["plan", "hard.csv"], arguments].concat())
}

fn interrupted_verb(folder: &Folder, arguments: &[&str]) -> Output {
    let start = Instant::now();
    let child = Command::new(BINARY)
        .args(arguments)
        .args(["--time-limit", "60", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    output
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn the_best_plan_so_far_is_printed_and_written() {
    let folder = Folder::new();
    let output = interrupted(&folder, &["-o", "plan.csv"]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["peak"].as_u64() > Some(0) && json["proved"] == false, "{json}");
    assert_eq!(json["stopped"], "time");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.starts_with("interrupted: this is the best plan so far\nwrote plan.csv"), "{talk}");
    assert_eq!(folder.run(&["check", "hard.csv", "plan.csv"]).code, Some(0));
}

#[test]
fn a_question_that_is_still_open_is_no_yes() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(20_000, 4_000));
    let bound = folder.run(&["plan", "hard.csv", "--json", "--time-limit", "0"]).json()["lower_bound"].to_string();
    let output = interrupted(&folder, &["--capacity", &bound]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["fits"], Value::Null);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "interrupted before there was an answer\n");
}

#[test]
fn a_benchmark_says_what_is_missing() {
    let folder = Folder::new();
    for name in ["a.csv", "b.csv", "c.csv"] {
        folder.write(name, &hard(20_000, 4_000));
    }
    let rival = "never=touch ran {input} {output}";
    let output = interrupted_verb(&folder, &["bench", "plan", "a.csv", "b.csv", "c.csv", "--rival", rival]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["interrupted"]), (Some(1), &Value::Bool(true)), "{json}");
    assert_eq!(json["not_planned"], serde_json::json!(["b.csv", "c.csv"]));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("interrupted: a.csv was cut short; not planned: 2 (b.csv, c.csv)"), "{talk}");
    assert!(!folder.at("ran").exists(), "rivals are not run on what was cut short");
}
