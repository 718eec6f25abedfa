//! `lowtide plan`: what it reads, answers and prints.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::support::{Folder, SMALL, hard};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

const TRACE: &str = "event,id,bytes,stream\nalloc,w,64,0\nstep,1,,0\nalloc,x,32,0\nfree,x,,0\nalloc,y,32,0\nfree,y,,0\n\
                     step,2,,0\n";

#[test]
fn json_is_one_flat_object_with_the_promised_fields() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    let ended = folder.run(&["plan", "in.csv", "--format", "json"]);
    assert_eq!((ended.code, ended.data.lines().count()), (Some(0), 1));
    let json = ended.json();
    for key in [
        "version",
        "buffers",
        "peak",
        "lower_bound",
        "ratio",
        "proved",
        "fits",
        "naive",
        "seconds",
        "stopped",
        "solver",
        "work",
        "threads",
        "seed",
        "capacity",
    ] {
        assert!(keys(&json).contains(&key), "{key}");
    }
    assert!(json.as_object().unwrap().values().all(|value| !value.is_object() && !value.is_array()));
    for (key, value) in [
        ("version", json!(1)),
        ("buffers", json!(3)),
        ("peak", json!(150)),
        ("lower_bound", json!(150)),
        ("ratio", json!(1.0)),
        ("proved", json!(true)),
        ("fits", json!(true)),
        ("naive", json!(250)),
        ("stopped", json!("proved")),
        ("capacity", Value::Null),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
}

#[test]
fn files_stdin_and_gzip_give_the_same_plan() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    folder.write("in.csv.gz", &gzip(SMALL));
    let expected = folder.run(&["plan", "in.csv", "--format", "csv"]);
    assert!(expected.data.starts_with("id,lower,upper,size,offset\na,0,4,100,"), "{}", expected.data);
    for (arguments, input) in [
        (&["plan", "in.csv.gz", "--format", "csv"][..], &b""[..]),
        (&["plan", "-", "--format", "csv"], SMALL.as_bytes()),
        (&["plan", "--format", "csv"], SMALL.as_bytes()),
        (&["plan", "--format", "csv"], &gzip(SMALL)),
    ] {
        let ended = folder.run_with(arguments, input);
        assert_eq!((ended.code, &ended.data), (Some(0), &expected.data), "{arguments:?}: {}", ended.talk);
    }
}

#[test]
fn a_trace_is_planned_whole_or_by_the_step() {
    let folder = Folder::with(&[("trace.csv", TRACE), ("in.csv", SMALL)]);
    let whole = folder.run(&["plan", "trace.csv", "--json"]).json();
    assert_eq!((&whole["buffers"], &whole["peak"]), (&json!(3), &json!(96)));
    let first = folder.run(&["plan", "trace.csv", "--json", "--step", "1"]).json();
    assert_eq!((&first["buffers"], &first["peak"]), (&json!(1), &json!(64)));
    let third = folder.run(&["plan", "trace.csv", "--step", "3"]);
    assert_eq!(third.code, Some(2));
    assert!(third.talk.contains("error: trace.csv: the trace has no step 3; it closes steps 1 to 2"), "{}", third.talk);
    let lifetimes = folder.run(&["plan", "in.csv", "--step", "1"]);
    assert_eq!(lifetimes.code, Some(2));
    assert!(lifetimes.talk.contains("hint: leave out `--step`"), "{}", lifetimes.talk);
}

#[test]
fn a_capacity_is_answered_with_yes() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    let ended = folder.run(&["plan", "in.csv", "--capacity", "150", "--json"]);
    assert_eq!((ended.code, &ended.json()["fits"], &ended.json()["capacity"]), (Some(0), &json!(true), &json!(150)));
    assert!(folder.run(&["plan", "in.csv", "--capacity", "1KiB"]).data.starts_with("fits in 1.0 KiB · peak 150 B"));
}

#[test]
fn a_capacity_is_answered_with_no_and_whom_to_blame() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    let ended = folder.run(&["plan", "in.csv", "--capacity", "149", "--json", "-o", "plan.csv"]);
    assert_eq!((ended.code, &ended.json()["fits"]), (Some(1), &json!(false)));
    assert_eq!(ended.json()["blame"].as_array().unwrap().len(), 2);
    assert_eq!(ended.json()["blame_irreducible"], json!(true));
    assert!(ended.talk.contains("plan.csv was not written"), "{}", ended.talk);
    let text = folder.run(&["plan", "in.csv", "--capacity", "149"]);
    assert!(
        text.data.starts_with("does not fit: needs at least 150 B, capacity is 149 B (1 B over)\n"),
        "{}",
        text.data
    );
    assert!(text.data.contains("none of them can be left out"), "{}", text.data);
    let csv = folder.run(&["plan", "in.csv", "--capacity", "149", "--format", "csv"]);
    assert_eq!((csv.code, &*csv.data), (Some(1), ""));
    assert_eq!(folder.list(), ["in.csv"]);
}

#[test]
fn a_capacity_that_is_not_decided_in_time_is_neither() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(400, 80));
    let bound = folder.run(&["plan", "hard.csv", "--json", "--work", "1"]).json()["lower_bound"].to_string();
    let arguments = ["plan", "hard.csv", "--capacity", &bound, "--work", "1"];
    let json = folder.run(&[&arguments[..], &["--json", "-o", "plan.json"]].concat());
    assert_eq!((json.code, &json.json()["fits"]), (Some(1), &Value::Null));
    assert_eq!(json.json()["stopped"], json!("work"));
    assert_eq!(folder.list(), ["hard.csv"]);
    let text = folder.run(&arguments);
    assert_eq!(text.code, Some(1));
    assert!(text.data.starts_with("not found in time: ") && text.data.contains("this is not a no"), "{}", text.data);
    assert!(text.talk.contains("--time-limit"), "{}", text.talk);
}

#[test]
fn pins_over_each_other_have_no_plan() {
    let folder = Folder::with(&[("in.csv", "id,lower,upper,size,offset\na,0,4,8,0\nb,0,4,8,4\n")]);
    let ended = folder.run(&["plan", "in.csv", "--json"]);
    assert_eq!((ended.code, &ended.json()["peak"]), (Some(1), &Value::Null));
    assert_eq!(ended.json()["blame"], json!(["a", "b"]));
    assert!(folder.run(&["plan", "in.csv"]).data.starts_with("no plan: "));
}

#[test]
fn work_and_seed_decide_the_plan_and_threads_do_not() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(300, 60));
    let planned = |threads: &str, seed: &str| {
        let ended = folder.run(&[
            "plan",
            "hard.csv",
            "--work",
            "300000",
            "--seed",
            seed,
            "--threads",
            threads,
            "--format",
            "csv",
        ]);
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        ended.data
    };
    assert_eq!(planned("1", "5"), planned("2", "5"));
    assert_eq!(planned("2", "5"), planned("2", "5"));
}

#[test]
fn an_alignment_holds_for_every_offset() {
    let folder = Folder::with(&[("in.csv", SMALL), ("pinned.csv", "id,lower,upper,size,offset\na,0,4,8,4\n")]);
    let ended = folder.run(&["plan", "in.csv", "--align", "64", "--format", "csv"]);
    let offsets: Vec<u64> =
        ended.data.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    assert!(offsets.len() == 3 && offsets.iter().all(|offset| offset.is_multiple_of(64)), "{offsets:?}");
    let pinned = folder.run(&["plan", "pinned.csv", "--align", "64"]);
    assert_eq!(pinned.code, Some(2));
    assert!(pinned.talk.starts_with("error: pinned.csv:2: buffer `a` is pinned at "), "{}", pinned.talk);
    assert_eq!(folder.run(&["plan", "in.csv", "--align", "0"]).code, Some(2));
}

#[test]
fn several_pools_are_shown_with_what_spilled() {
    let problem = json!({"kind": "problem", "version": 1,
        "buffers": [{"id": "a", "lower": 0, "upper": 4, "size": 64}, {"id": "b", "lower": 0, "upper": 4, "size": 64}],
        "pools": [{"name": "fast", "capacity": 100, "spill": "slow"}, {"name": "slow"}]});
    let folder = Folder::with(&[("in.json", &problem.to_string())]);
    let ended = folder.run(&["plan", "in.json", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert_eq!(ended.json()["spilled"].as_array().unwrap().len(), 1);
    assert_eq!(ended.json()["pools"][0]["height"], json!(64));
    let text = folder.run(&["plan", "in.json"]);
    assert!(
        text.data.contains("pool `fast`: 64 B of 100 B\n") && text.data.contains("1 buffer spilled"),
        "{}",
        text.data
    );
    let capacity = folder.run(&["plan", "in.json", "--capacity", "1"]);
    assert_eq!(capacity.code, Some(2));
    assert!(capacity.talk.contains("hint: give each pool its `capacity`"), "{}", capacity.talk);
}

#[test]
fn every_technique_can_be_left_out() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(200, 40));
    let all = ["greedy", "repair", "exact", "decompose", "memory"];
    for without in all {
        let ended = folder.run(&["plan", "hard.csv", "--without", without, "--work", "100000", "--json"]);
        assert_eq!(ended.code, Some(0), "{without}: {}", ended.talk);
    }
    let none = all.map(|name| ["--without", name]).concat();
    let ended = folder.run(&[&["plan", "hard.csv", "--json"][..], &none].concat());
    assert_eq!((ended.code, &ended.json()["solver"]), (Some(0), &json!("online")));
    assert_eq!(folder.run(&["plan", "hard.csv", "--without", "luck"]).code, Some(2));
}

#[test]
fn bad_usage_is_one_error_with_a_hint() {
    let folder = Folder::with(&[("in.csv", SMALL), ("plan.json", r#"{"kind":"plan","version":1,"buffers":[]}"#)]);
    for arguments in [
        &["plan", "no-such-file.csv"][..],
        &["plan", "."],
        &["plan", "plan.json"],
        &["plan", "in.csv", "--time-limit", "-1"],
        &["plan", "in.csv", "--capacity", "much"],
        &["plan", "in.csv", "--threads", "0"],
        &["plan", "in.csv", "--json", "--format", "csv"],
        &["plan", "in.csv", "--no-such-option"],
        &["play", "in.csv"],
        &["check", "in.csv"],
        &["check", "-", "-"],
        &["bench", "plan"],
    ] {
        let ended = folder.run(arguments);
        assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{arguments:?}: {}", ended.talk);
        let lines: Vec<&str> = ended.talk.lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("error: "), "{arguments:?}: {}", ended.talk);
        assert!(lines[1].starts_with("hint: "), "{arguments:?}: {}", ended.talk);
    }
}

#[test]
fn colours_are_for_those_who_want_them() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    assert!(!folder.run(&["plan", "in.csv"]).data.contains('\u{1b}'));
    assert!(folder.run(&["plan", "in.csv", "--color", "always"]).data.contains('\u{1b}'));
    assert!(!folder.run(&["plan", "in.csv", "--color", "always", "--json"]).data.contains('\u{1b}'));
}
