//! Ctrl-C on a solve takes the best plan so far.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{BINARY, Folder, hard};

/// Runs a solve that would take a minute, and interrupts it as soon as it surely solves.
fn interrupted(folder: &Folder, arguments: &[&str]) -> Output {
    folder.write("hard.csv", &hard(20_000, 4_000));
    let start = Instant::now();
    let child = Command::new(BINARY)
        .args(["plan", "hard.csv", "--time-limit", "60", "--json"])
        .args(arguments)
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
    assert_ne!(json["stopped"], "proved");
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
}
