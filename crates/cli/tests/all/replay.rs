//! `lowtide replay`: what allocators would do with a recorded run.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::{Ended, Folder, SMALL, interrupted, lowtide};

/// Weights, and three steps in which two blocks go and one as large as both comes.
fn steps() -> String {
    let mut rows = vec!["event,id,bytes,stream".to_owned(), "alloc,w,20971520,0".to_owned()];
    for step in 1..=3 {
        rows.push(format!("alloc,a{step},31457280,0\nalloc,b{step},31457280,0\nfree,a{step},,\nfree,b{step},,"));
        rows.push(format!("alloc,c{step},62914560,0\nfree,c{step},,\nstep,{step},,"));
    }
    rows.join("\n") + "\n"
}

fn folder() -> Folder {
    Folder::with(&[("t.csv", &steps()), ("l.csv", SMALL)])
}

fn replayed(arguments: &[&str]) -> Ended {
    folder().run(&[&["replay", "t.csv"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    let ended = replayed(&[arguments, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    ended.json()
}

const MIB: u64 = 1 << 20;

#[test]
fn one_allocator_is_one_flat_object() {
    let json = json(&["--strategy", "caching"]);
    assert_eq!((&json["strategy"], &json["alloc_conf"]), (&json!("caching"), &json!("")));
    assert_eq!((&json["peak_requested"], &json["bound"]), (&json!(80 * MIB), &json!(80 * MIB)));
    assert_eq!(json["peak_reserved"], json!(140 * MIB));
    let wasted = json["fragmentation"].as_f64().unwrap();
    assert!((wasted - (1.0 - 80.0 / 140.0)).abs() < 1e-9, "{wasted}");
    assert_eq!(json["driver_calls_per_step"], json!([8, 0, 0]));
    assert_eq!((&json["driver_calls"], &json["driver_ns"]), (&json!(8), &json!(4 * 33_000)));
    assert_eq!(json["reserved_per_step"], json!([140 * MIB, 140 * MIB, 140 * MIB]));
    assert_eq!(
        (&json["driver_calls_after_warmup"], &json["peak_reserved_after_warmup"]),
        (&json!(0), &json!(140 * MIB))
    );
    assert_eq!((&json["out_of_memory"], &json["operations"], &json["steps"]), (&Value::Null, &json!(19), &json!(3)));
    assert!(json["ns_per_op"].as_f64().unwrap() >= 0.0);
    assert!(json.get("devices").is_none(), "there is but one");
}

#[test]
fn all_is_an_array_of_four() {
    let json = json(&[]);
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|one| one["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["arena", "planned", "caching", "expandable"]);
    for one in json.as_array().unwrap() {
        assert_eq!((&one["peak_requested"], &one["steps"]), (&json!(80 * MIB), &json!(3)), "{one}");
        assert_eq!(one["driver_calls_per_step"].as_array().unwrap().len(), 3, "{one}");
        assert!(one["peak_reserved"].as_u64().unwrap() >= 80 * MIB, "{one}");
    }
    let reserved = |place: usize| json[place]["peak_reserved"].as_u64().unwrap();
    assert!(reserved(0) <= reserved(2), "the arena moves pages where PyTorch takes new ones");
    assert!(json[1]["plan_hits"].is_u64() && json[0]["plan_hits"].is_null());
}

#[test]
fn text_has_a_headline_a_table_a_verdict_and_what_to_type() {
    for ascii in [false, true] {
        let ended = replayed(if ascii { &["--ascii"] } else { &[] });
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        let lines: Vec<&str> = ended.data.lines().collect();
        assert!(lines[0].starts_with("80.0 MiB alive at once"), "{}", ended.data);
        assert!(ended.data.contains("PyTorch's default 140.0 MiB\n"), "{}", ended.data);
        for start in ["3 steps", "allocator", "arena", "planned", "caching", "expandable"] {
            assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {}", ended.data);
        }
        assert!(lines.last().unwrap().starts_with("Best: "), "{}", ended.data);
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{}", ended.data);
        assert!(!ascii || ended.data.is_ascii(), "{}", ended.data);
        assert!(ended.talk.ends_with("next: `lowtide replay t.csv --sweep` finds PyTorch's best setting for it\n"));
    }
    let found = replayed(&["--strategy", "planned", "--unmarked"]);
    assert_eq!(found.talk, "next: `lowtide replay t.csv --unmarked` compares it with others\n");
    let calls = |start: &str| {
        let ended = replayed(&["--strategy", "arena", "--start", start, "--json"]);
        ended.json()["driver_calls"].as_u64().unwrap()
    };
    assert!(calls("fast") < calls("tight"), "{} and {}", calls("fast"), calls("tight"));
    let fast = replayed(&["--strategy", "arena", "--start", "fast"]);
    assert_eq!(fast.talk, "next: `lowtide replay t.csv --start fast` compares it with others\n");
    let one = replayed(&["--strategy", "caching", "--repeat", "2", "--page", "4MiB"]);
    assert!(one.data.starts_with("caching reserves 144.0 MiB for 80.0 MiB · 44.4% wasted\n6 steps"), "{}", one.data);
    let next = "next: `lowtide replay t.csv --page 4MiB --repeat 2` compares it with others\n";
    assert_eq!(one.talk, next);
}

#[test]
fn what_fits_is_a_yes_also_where_segments_have_to_go() {
    let ended = replayed(&["--strategy", "caching", "--device-memory", "80MiB", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let json = ended.json();
    assert_eq!((&json["out_of_memory"], &json["peak_reserved"]), (&Value::Null, &json!(80 * MIB)));
    assert!(json["waits"].as_u64().unwrap() > 0, "PyTorch waits before it gives segments back: {json}");
}

#[test]
fn too_little_memory_is_told_with_row_and_block() {
    let arguments = ["--device-memory", "70MiB"];
    let ended = replayed(&[&["--strategy", "caching", "--json"], &arguments[..]].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.talk);
    let refused = &ended.json()["out_of_memory"];
    assert_eq!((&refused["row"], &refused["event"], &refused["block"]), (&json!(4), &json!(2), &json!("b1")));
    assert_eq!((&refused["bytes"], &refused["step"], &refused["round"]), (&json!(30 * MIB), &json!(1), &json!(1)));
    assert!(refused["message"].as_str().unwrap().contains("no room for 30.0 MiB"), "{refused}");
    let text = replayed(&arguments);
    assert_eq!(text.code, Some(1));
    assert!(text.data.starts_with("no allocator fits in 70.0 MiB · 80.0 MiB alive at once\n"), "{}", text.data);
    assert!(text.data.contains("caching has no room for `b1` (30.0 MiB): row 4, step 1\n"), "{}", text.data);
    assert!(text.data.contains("no allocator serves this run; at least 80.0 MiB are needed"), "{}", text.data);
    assert!(text.talk.contains("next: `lowtide explain t.csv` says what would lower the peak"), "{}", text.talk);
}

#[test]
fn settings_change_what_pytorch_would_do() {
    let reserved = |arguments: &[&str]| json(arguments)["peak_reserved"].as_u64().unwrap();
    let line = "large_segment_size_mb:64";
    let changed = reserved(&["--strategy", "expandable", "--alloc-conf", line]);
    assert_ne!(changed, reserved(&["--strategy", "expandable"]));
    let ended = replayed(&["--strategy", "caching", "--alloc-conf", "max_split_size_mb:5"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.contains("max_split_size_mb") && ended.talk.contains("hint: "), "{}", ended.talk);
}

#[test]
fn a_sweep_prints_the_line_to_use_and_what_it_saves() {
    let ended = replayed(&["--sweep"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.data.starts_with("best setting reserves "), "{}", ended.data);
    assert!(ended.data.contains(" less than PyTorch's default"), "{}", ended.data);
    let line = ended.data.lines().last().unwrap();
    assert!(line.starts_with("PYTORCH_ALLOC_CONF=") && line.contains("expandable_segments:True"), "{}", ended.data);
    let quoted = line.replacen('=', "='", 1);
    assert_eq!(ended.talk, format!("next: `export {quoted}'` before the program starts\n"));
    let json = json(&["--sweep"]);
    assert_eq!(format!("PYTORCH_ALLOC_CONF={}", json["alloc_conf"].as_str().unwrap()), line);
    let (base, best) = (json["base_peak_reserved"].as_u64().unwrap(), json["peak_reserved"].as_u64().unwrap());
    assert_eq!((base, json["saves"].as_u64().unwrap()), (140 * MIB, base - best));
    assert_eq!(json["settings"].as_array().unwrap().len() as u64, json["tried"].as_u64().unwrap());
    assert!(json["arena_peak_reserved"].is_u64() && json["interrupted"] == json!(false), "{json}");
    let small = Folder::with(&[("t.csv", "event,id,bytes,stream\nalloc,a,512,0\nstep,1,,\n")]);
    let nothing = small.run(&["replay", "t.csv", "--sweep"]);
    assert!(nothing.data.contains("no setting reserves less than PyTorch's default"), "{}", nothing.data);
}

#[test]
fn numbers_are_written_to_a_file() {
    let folder = folder();
    let ended = folder.run(&["replay", "t.csv", "--strategy", "caching", "-o", "out.json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.starts_with("wrote out.json; next: "), "{}", ended.talk);
    let written: Value = serde_json::from_str(&folder.read("out.json")).unwrap();
    assert_eq!(written["strategy"], json!("caching"));
    folder.run(&["replay", "t.csv", "-o", "all.json"]);
    assert_eq!(serde_json::from_str::<Value>(&folder.read("all.json")).unwrap().as_array().unwrap().len(), 4);
    for (output, words) in
        [("out.csv", "the output is not .json"), ("no/x.json", "the folder of the output is not there")]
    {
        let ended = folder.run(&["replay", "t.csv", "-o", output]);
        assert_eq!(ended.code, Some(2), "{}", ended.data);
        assert!(ended.talk.contains(words), "{}", ended.talk);
    }
}

#[test]
fn what_is_no_recorded_run_is_refused_by_name() {
    let folder = folder();
    folder.write("p.json", br#"{"kind":"problem","version":1,"buffers":[{"id":"a","lower":0,"upper":1,"size":1}]}"#);
    folder.run(&["report", "t.csv", "-o", "r.html"]);
    folder.run(&["plan", "l.csv", "-o", "plan.json"]);
    for (input, what) in
        [("l.csv", "lifetimes"), ("p.json", "a problem"), ("r.html", "a report"), ("plan.json", "a plan")]
    {
        let ended = folder.run(&["replay", input, "--json"]);
        assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{input}");
        assert!(
            ended.talk.starts_with(&format!("error: {input}: this is {what}, not a recorded run")),
            "{}",
            ended.talk
        );
        assert!(ended.talk.contains("hint: give a trace or a PyTorch snapshot"), "{}", ended.talk);
    }
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let folder = Folder::with(&[("t.csv", &steps()), ("none.csv", "event,id,bytes,stream\nalloc,a,5,0\n")]);
    let cases: [(&[&str], &str); 6] = [
        (&["replay", "t.csv", "--page", "3MiB"], "a page of 3145728 is no power of two from 4.0 KiB to 1.0 TiB"),
        (&["replay", "t.csv", "--repeat", "0"], "write a whole number from 1 on"),
        (&["replay", "none.csv", "--repeat", "2"], "the run closes no step, so there is nothing to repeat"),
        (&["replay", "t.csv", "--device-memory", "-5"], "it must not be negative"),
        (&["replay", "t.csv", "--strategy", "best"], "possible values"),
        (&["replay", "t.csv", "--strategy", "arena", "--sweep"], "cannot be used with"),
    ];
    for (arguments, words) in cases {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.data);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{words}: {}", ended.talk);
    }
}

#[test]
fn odd_runs_are_played_all_the_same() {
    let most = u64::MAX;
    let traces = [
        ("event,id,bytes,stream\n".to_owned(), Some(0)),
        ("event,id,bytes,stream\nstep,1,,\nstep,2,,\n".to_owned(), Some(0)),
        ("event,id,bytes,stream\nalloc,a,0,0\nrecord,a,,1\nfree,a,,\nstep,1,,\n".to_owned(), Some(0)),
        (format!("event,id,bytes,stream\nalloc,a,{most},0\nalloc,b,{most},7\nstep,1,,\n"), Some(1)),
        (format!("event,id,bytes,stream,time_ns\nalloc,a,5,0,{most}\nfree,a,,0,0\ndone,a,,0,{most}\n"), Some(0)),
    ];
    for (trace, code) in traces {
        let folder = Folder::with(&[("t.csv", &trace)]);
        for arguments in [&["replay", "t.csv"][..], &["replay", "t.csv", "--json"], &["replay", "t.csv", "--sweep"]] {
            let ended = folder.run(arguments);
            assert_eq!(ended.code, code, "{trace}: {} {}", ended.data, ended.talk);
            assert!(!ended.talk.contains("internal error") && !ended.data.contains("NaN"), "{}", ended.talk);
        }
    }
}

#[test]
fn stdin_gzip_and_snapshots_are_read() {
    let piped = Folder::new().run_with(&["replay", "--strategy", "caching", "--json"], steps().as_bytes());
    assert_eq!(piped.json()["peak_reserved"], json!(140 * MIB));
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let snapshot = examples.join("resnet18.pickle.gz");
    let ended = Folder::new().run(&["replay", snapshot.to_str().unwrap(), "--device-memory", "1GiB", "--json"]);
    assert_eq!(ended.code, Some(1));
    let first = &ended.json()[0]["out_of_memory"];
    assert!(first["row"].is_null() && first["event"].is_u64(), "an event of a snapshot has no row: {first}");
}

#[test]
fn a_sweep_that_is_interrupted_has_the_best_so_far() {
    let folder = Folder::new();
    let mut rows = vec!["event,id,bytes,stream".to_owned()];
    for id in 0..10_000_u64 {
        rows.push(format!("alloc,{id},{},0", 512 + (id * 7919) % 4_000_000));
        if id >= 50 {
            rows.push(format!("free,{},,", id - 50));
        }
    }
    rows.push("step,1,,\n".to_owned());
    folder.write("long.csv", rows.join("\n").as_bytes());
    let output = interrupted(&folder, &["replay", "long.csv", "--sweep", "--json", "--repeat", "40"]);
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{talk}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["interrupted"], json!(true), "{talk}");
    assert!(json["tried"].as_u64().unwrap() >= 1 && json["peak_reserved"].is_u64(), "{json}");
    assert_eq!(talk, "interrupted: this is the best setting so far\n");
}

/// What an H200 reserved in the recorded runs: natively, and with expandable segments where that was measured.
const FIGURES: [(&str, u64, Option<u64>); 7] = [
    ("llama_fixed", 22_145_925_120, Some(22_368_223_232)),
    ("llama_varlen", 28_720_496_640, Some(25_641_877_504)),
    ("mixtral_moe", 13_365_149_696, Some(10_661_920_768)),
    ("resnet50", 14_682_161_152, Some(11_886_657_536)),
    ("maskrcnn", 61_685_628_928, Some(34_884_026_368)),
    ("llama_generate", 5_221_908_480, None),
    ("offload", 26_384_269_312, None),
];

#[test]
fn recorded_runs_reserve_what_was_measured() {
    let Some(folder) = lowtide_testing::data("gpu-traces") else { return };
    for (name, native, expandable) in FIGURES {
        let file = folder.join(format!("{name}.csv.gz"));
        let figures = [("caching", Some(native), 0.02), ("expandable", expandable, 0.03)];
        for (strategy, figure, tolerance) in figures {
            let Some(figure) = figure else { continue };
            let output = lowtide(&["replay", "--json", "--strategy", strategy]).arg(&file).output().unwrap();
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            let off = json["peak_reserved"].as_f64().unwrap() / figure as f64 - 1.0;
            assert!(off.abs() <= tolerance, "{name} on {strategy}: {:+.2}%", 100.0 * off);
        }
    }
}
