//! `lowtide plan`: what it reads, answers and prints.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_plan::{MOST_THREADS, Techniques};
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
    assert!(text.data.starts_with("not found with this much work: "), "{}", text.data);
    assert!(text.data.contains("this is not a no") && !text.data.contains("found by"), "{}", text.data);
    assert!(text.talk.contains("hint: more work may find it: `--work 10`"), "{}", text.talk);
    for (limit, longer) in [("0", "60"), ("0.5", "60")] {
        let text = folder.run(&["plan", "hard.csv", "--capacity", &bound, "--without", "exact", "--time-limit", limit]);
        assert!(text.data.starts_with("not found in time: "), "{}", text.data);
        assert!(text.talk.contains(&format!("hint: more time may find it: `--time-limit {longer}`")), "{}", text.talk);
    }
}

#[test]
fn where_nothing_is_left_to_try_more_time_is_not_suggested() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(400, 80));
    let bound = folder.run(&["plan", "hard.csv", "--json", "--work", "1"]).json()["lower_bound"].to_string();
    let without = Techniques::NAMES.map(|name| ["--without", name]).concat();
    let text = folder.run(&[&["plan", "hard.csv", "--capacity", &bound][..], &without].concat());
    assert_eq!(text.code, Some(1));
    let start = "not found: nothing is left to try; this is not a no: the best plan takes ";
    assert!(text.data.starts_with(start), "{}", text.data);
    assert!(!text.data.contains("found by"), "{}", text.data);
    assert!(text.talk.contains("the same without `--without`") && !text.talk.contains("--time-limit"), "{}", text.talk);
}

#[test]
fn a_culprit_that_is_alone_is_told_why() {
    let pinned = "id,lower,upper,size,offset\na,0,4,8,8\nb,0,4,4,\n";
    let folder = Folder::with(&[("in.csv", SMALL), ("pinned.csv", pinned)]);
    let large = folder.run(&["plan", "in.csv", "--capacity", "60"]).data;
    assert!(large.contains("` alone is larger than the capacity: 100 B of 60 B\n"), "{large}");
    assert!(!large.contains("together") && !large.contains("found by"), "{large}");
    let beyond = folder.run(&["plan", "pinned.csv", "--capacity", "15"]).data;
    assert!(beyond.contains("buffer `a` alone is pinned beyond the capacity: from byte 8 to 16, of 15\n"), "{beyond}");
}

#[test]
fn pinned_buffers_are_counted() {
    let pinned = "id,lower,upper,size,offset\na,0,4,8,8\nb,0,4,4,0\n";
    let folder = Folder::with(&[("in.csv", SMALL), ("two.csv", pinned), ("one.csv", &pinned.replace("4,0", "4,"))]);
    assert!(folder.run(&["plan", "two.csv"]).data.contains("\n2 of 2 buffers are pinned\n"));
    assert!(folder.run(&["plan", "one.csv"]).data.contains("\n1 of 2 buffers is pinned\n"));
    assert!(!folder.run(&["plan", "in.csv"]).data.contains("pinned"));
}

#[test]
fn a_capacity_that_is_met_is_a_headline_without_doubts() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(400, 80));
    let arguments = ["plan", "hard.csv", "--work", "1"];
    let free = folder.run(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!(free["proved"], json!(false), "{free}");
    let text = folder.run(&[&arguments[..], &["--capacity", &free["naive"].to_string()]].concat()).data;
    let headline = text.lines().next().unwrap();
    assert!(headline.starts_with("fits in ") && headline.contains("× the bound · without reuse"), "{text}");
    assert!(!headline.contains("stopped") && !headline.contains("not proved"), "{text}");
}

#[test]
fn the_next_command_keeps_the_options_that_were_given() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    let options = "--align 2 --capacity 1000 --time-limit 2.5 --work 99 --threads 2 --seed 3 --without exact";
    let arguments: Vec<&str> = ["plan", "in.csv"].into_iter().chain(options.split(' ')).collect();
    let ended = folder.run(&arguments);
    let next = format!("nothing was written; next: `lowtide plan in.csv {options} -o plan.csv`\n");
    assert_eq!((ended.code, ended.talk), (Some(0), next));
}

#[test]
fn threads_beyond_what_the_planner_uses_are_not_shown() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    assert_eq!(folder.run(&["plan", "in.csv", "--threads", "64", "--json"]).json()["threads"], json!(MOST_THREADS));
    let help = folder.run(&["plan", "--help"]).data.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(&format!("more than {MOST_THREADS} are not used")), "{help}");
}

#[test]
fn pins_over_each_other_have_no_plan() {
    let folder = Folder::with(&[("in.csv", "id,lower,upper,size,offset\na,0,4,8,0\nb,0,4,8,4\n")]);
    let ended = folder.run(&["plan", "in.csv", "--json"]);
    assert_eq!((ended.code, &ended.json()["peak"]), (Some(1), &Value::Null));
    assert_eq!(ended.json()["blame"], json!(["a", "b"]));
    let text = folder.run(&["plan", "in.csv"]);
    assert!(text.data.starts_with("no plan: ") && !text.data.contains("found by"), "{}", text.data);
    assert_eq!(text.talk, "nothing was written; next: move or drop one of the two pins\n");
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
    let fast = problem.to_string().replace(",\"spill\":\"slow\"", "");
    folder.write("small.json", fast.as_bytes());
    let no = folder.run(&["plan", "small.json"]);
    assert_eq!(no.code, Some(1), "{}", no.data);
    assert!(no.talk.contains("a larger `capacity` in the problem's `pools`"), "{}", no.talk);
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
