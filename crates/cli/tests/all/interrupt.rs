//! Ctrl-C on a solve takes the best plan so far.

use std::process::Output;

use serde_json::Value;

use super::support::{Folder, hard, interrupted};

/// Interrupts a solve that would take a minute.
fn interrupted_plan(folder: &Folder, arguments: &[&str]) -> Output {
    folder.write("hard.csv", &hard(20_000, 4_000));
    interrupted(folder, &[&["plan", "hard.csv", "--time-limit", "60", "--json"], arguments].concat())
}

#[test]
fn the_best_plan_so_far_is_printed_and_written() {
    let folder = Folder::new();
    let output = interrupted_plan(&folder, &["-o", "plan.csv"]);
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
    let output = interrupted_plan(&folder, &["--capacity", &bound]);
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
    let files = ["bench", "plan", "a.csv", "b.csv", "c.csv"];
    let output = interrupted(&folder, &[&files[..], &["--time-limit", "60", "--json", "--rival", rival]].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["interrupted"]), (Some(1), &Value::Bool(true)), "{json}");
    assert_eq!(json["not_planned"], serde_json::json!(["b.csv", "c.csv"]));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("interrupted: a.csv was cut short; not planned: 2 (b.csv, c.csv)"), "{talk}");
    assert!(!folder.at("ran").exists(), "rivals are not run on what was cut short");
}
