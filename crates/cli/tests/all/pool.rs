//! `lowtide bench pool`: its tables, and what it skips.

use serde_json::{Value, json};

use super::support::{Folder, SMALL, lowtide};

/// Three steps that ask for the same.
const TRACE: &str = "event,id,bytes,stream\nalloc,w,4194304,0\n\
                     alloc,a,2097152,0\nfree,a,,\nstep,1,,\nalloc,b,2097152,0\nfree,b,,\nstep,2,,\n\
                     alloc,c,2097152,0\nfree,c,,\nstep,3,,\n";

#[test]
fn recorded_runs_have_a_row_with_what_is_to_be_reached() {
    let folder = Folder::with(&[("run.csv", TRACE), ("l.csv", SMALL)]);
    let ended = folder.run(&["bench", "pool", ".", "--only", "traces", "--only", "curve"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    for words in ["caching", "expandable", "arena", "planned", "at most", "1.0%", "no limit"] {
        assert!(ended.data.contains(words), "{words}: {}", ended.data);
    }
    assert!(ended.data.lines().filter(|line| line.starts_with("run ")).count() >= 3, "{}", ended.data);
    assert!(ended.talk.contains("skipped ./l.csv: this is lifetimes, not a recorded run"), "{}", ended.talk);
    let json = folder.run(&["bench", "pool", "run.csv", "--json", "--only", "traces"]).json();
    let row = &json["traces"][0];
    assert_eq!((&row["trace"], &row["repeating"], &row["streams"]), (&json!("run"), &json!(true), &json!(1)));
    assert_eq!(row["target"]["arena_calls"], json!(250));
    assert!(row["caching_waste"].as_f64().unwrap() > 0.0, "{row}");
    assert_eq!(json["latency"], json!([]));
}

#[test]
fn a_plan_is_held_against_none_with_the_time_to_make_it() {
    let folder = Folder::with(&[("run.csv", TRACE)]);
    let json = folder.run(&["bench", "pool", "run.csv", "--json", "--only", "plans"]).json();
    let rows = json["plans"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["marked"]).collect::<Vec<_>>(), [&json!(true), &json!(false)]);
    for row in rows {
        assert_eq!(row["met"], json!(true), "{row}");
        assert!(row["planned"]["milliseconds"].as_f64().unwrap() > 0.0, "{row}");
    }
    let text = folder.run(&["bench", "pool", "run.csv", "--only", "plans"]).data;
    assert!(text.contains("found") && text.contains("no worse"), "{text}");
}

#[test]
fn speed_is_measured_beside_malloc() {
    let json = Folder::new().run(&["bench", "pool", "--json", "--only", "latency"]).json();
    let rows = json["latency"].as_array().unwrap();
    let what = |row: &Value| (row["program"].as_str().unwrap().to_owned(), row["server"].as_str().unwrap().to_owned());
    let measured: Vec<(String, String)> = rows.iter().map(what).collect();
    let expected = ["steps", "one_size", "random_sizes", "random_sizes_later"]
        .into_iter()
        .flat_map(|program| ["planned", "arena", "malloc"].map(|server| (program.to_owned(), server.to_owned())));
    assert!(measured.iter().cloned().eq(expected), "{measured:?}");
    for row in rows {
        let (p50, p99) = (row["p50_ns"].as_u64().unwrap(), row["p99_ns"].as_u64().unwrap());
        let has_steps = row["program"] == "steps";
        let least = if has_steps { 1_000_000 } else { 50_000 };
        assert!(p50 <= p99 && p99 <= row["longest_ns"].as_u64().unwrap(), "{row}");
        assert!(row["pairs"].as_u64().unwrap() >= least, "{row}");
        assert_eq!(row["driver_calls"].is_u64(), !has_steps && row["server"] != "malloc", "{row}");
    }
    let targets = [&rows[0], &rows[3], &rows[7]].map(|row| row["target"]["p50_ns"].as_u64());
    assert_eq!(targets, [Some(150), Some(600), Some(1_000)]);
    assert!(rows[0]["hit_rate"].as_f64().unwrap() > 0.99, "{}", rows[0]);
}

#[test]
fn an_only_input_that_is_skipped_is_no_success() {
    let folder = Folder::with(&[("l.csv", SMALL)]);
    let ended = folder.run(&["bench", "pool", "l.csv", "--only", "traces"]);
    assert_eq!(ended.code, Some(2), "{}", ended.data);
    assert!(ended.talk.contains("error: no recorded run was given; 1 file skipped"), "{}", ended.talk);
}

#[test]
fn without_runs_the_parts_that_need_them_are_skipped_loudly() {
    let output = lowtide(&["bench", "pool", "--json", "--only", "traces"]).env_remove("LOWTIDE_DATA").output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{talk}");
    assert!(talk.contains("skipped recorded runs: LOWTIDE_DATA names no folder"), "{talk}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["skipped"][0]["name"], json!("recorded runs"));
}
