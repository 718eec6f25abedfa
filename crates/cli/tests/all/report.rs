//! `lowtide report`: the view, the page, the numbers, and two runs side by side.

use std::path::Path;

use serde_json::{Value, json};

use super::support::{Folder, SMALL};

/// Blocks with sites and categories over two steps; the second step holds one more.
const TRACE: &str = "\
event,id,bytes,stream,category,site
alloc,w,1000,0,parameter,net.py:1 build
alloc,a,400,0,activation,net.py:7 forward; train.py:3 main
free,a,,,,
step,1,,,,
alloc,a,400,0,activation,net.py:7 forward; train.py:3 main
alloc,b,300,0,gradient,net.py:9 backward
free,b,,,,
free,a,,,,
step,2,,,,
";

fn snapshots() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/snapshots")
}

#[test]
fn the_view_shows_curve_strip_and_groups_in_eighty_columns() {
    let folder = Folder::with(&[("t.csv", TRACE)]);
    for (extra, is_ascii) in [(vec![], false), (vec!["--ascii"], true)] {
        let ended = folder.run(&[&["report", "t.csv"], &*extra].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        let lines: Vec<&str> = ended.data.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", ended.data);
        assert_eq!(lines.iter().all(|line| line.is_ascii()), is_ascii, "{}", ended.data);
        for words in [
            "peak at event 5, step 2",
            "memory at the peak, planned: 1.7 KiB",
            "A      1000 B   58.8%          1  parameter",
        ] {
            assert!(ended.data.contains(words), "{words}: {}", ended.data);
        }
        assert!(ended.talk.contains("next: `lowtide report t.csv -o report.html`"), "{}", ended.talk);
    }
    assert_eq!(folder.list(), ["t.csv"]);
}

#[test]
fn buffers_are_put_together_as_asked() {
    let folder = Folder::with(&[("t.csv", TRACE)]);
    for (by, keys) in [
        ("category", ["parameter", "activation", "gradient"].as_slice()),
        ("module", &["net"]),
        ("line", &["net.py:1 build", "net.py:7 forward", "net.py:9 backward"]),
        ("size", &["512 B to 1.0 KiB", "256 B to 512 B"]),
    ] {
        let json = folder.run(&["report", "t.csv", "--by", by, "--json"]).json();
        let found: Vec<&str> =
            json["alive"].as_array().unwrap().iter().map(|group| group["key"].as_str().unwrap()).collect();
        assert_eq!(found, keys, "{by}");
        let bytes: u64 = json["alive"].as_array().unwrap().iter().map(|group| group["bytes"].as_u64().unwrap()).sum();
        assert_eq!(json["live_peak"], json!(bytes));
    }
}

#[test]
fn a_page_is_read_back_by_every_verb() {
    let folder = Folder::with(&[("t.csv", TRACE), ("l.csv", SMALL)]);
    for (input, peak) in [("t.csv", 1700), ("l.csv", 150)] {
        let ended = folder.run(&["report", input, "-o", "r.html"]);
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        assert!(ended.talk.contains("wrote r.html; next: open it in a browser, or `lowtide explain r.html`"));
        assert_eq!(folder.run(&["plan", "r.html", "--json"]).json()["peak"], json!(peak));
        assert_eq!(folder.run(&["report", "r.html", "--json"]).json()["live_peak"], json!(peak));
        let (own, again) = (folder.run(&["explain", input]), folder.run(&["explain", "r.html"]));
        assert_eq!(own.data, again.data, "{}", again.talk);
    }
    let text = folder.read("r.html");
    assert!(text.starts_with("<!doctype html>") && text.trim_end().ends_with("</html>"));
    folder.write("cut.html", &text.as_bytes()[..text.len() / 2]);
    folder.write("other.html", b"<!doctype html><html><p>hello</html>");
    for (name, words) in [("cut.html", "the report ends too early"), ("other.html", "not a report of Lowtide")] {
        let ended = folder.run(&["plan", name]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.talk.contains(words), "{}", ended.talk);
    }
}

#[test]
fn two_runs_are_compared_and_a_rise_is_a_no() {
    let more = TRACE.replace("alloc,b,300", "alloc,b,900");
    let folder = Folder::with(&[("a.csv", TRACE), ("b.csv", &more)]);
    let ended = folder.run(&["report", "a.csv", "b.csv"]);
    assert_eq!(ended.code, Some(0), "nothing was forbidden: {}", ended.talk);
    assert!(ended.data.starts_with("a.csv → b.csv\npeak 1.7 KiB → 2.2 KiB · +600 B (+35.3%)\n"), "{}", ended.data);
    assert!(ended.data.contains("300 B       900 B       +600 B (+200.0%)  gradient"), "{}", ended.data);
    let plain = folder.run(&["report", "a.csv", "b.csv", "--ascii"]).data;
    assert!(plain.is_ascii() && plain.lines().all(|line| line.len() <= 80), "{plain}");
    for (tolerance, code) in [("2%", 1), ("40%", 0), ("599B", 1), ("1KiB", 0), ("0%", 1)] {
        let ended = folder.run(&["report", "a.csv", "b.csv", "--fail-over", tolerance]);
        assert_eq!(ended.code, Some(code), "{tolerance}: {}", ended.data);
        let verdict = if code == 1 { "the peak rose by more than" } else { "the peak did not rise by more than" };
        assert!(ended.data.contains(verdict), "{}", ended.data);
    }
    assert_eq!(folder.run(&["report", "b.csv", "a.csv", "--fail-over", "0%"]).code, Some(0), "a fall is no rise");
    let json = folder.run(&["report", "a.csv", "b.csv", "--fail-over", "2%", "--json"]).json();
    assert_eq!((&json["change"], &json["too_much"]), (&json!(600), &json!(true)));
    assert_eq!(folder.run(&["report", "a.csv", "b.csv", "-o", "two.html"]).code, Some(0));
    let again = folder.run(&["report", "two.html", "--json"]).json();
    assert_eq!(again["change"], json!(600), "the page of a comparison is a comparison");
    let ended = folder.run(&["plan", "two.html"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.contains("this report compares 2 runs"), "{}", ended.talk);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let folder = Folder::with(&[("t.csv", TRACE), ("l.csv", SMALL)]);
    for (arguments, words) in [
        (["report", "t.csv", "--fail-over", "2%"].as_slice(), "compares two runs"),
        (&["report", "t.csv", "l.csv", "--fail-over", "-2%"], "negative"),
        (&["report", "t.csv", "l.csv", "--fail-over", "2"], "write a unit"),
        (&["report", "t.csv", "--step", "1", "-o", "x.csv"], "a trace is written whole"),
        (&["report", "t.csv", "-o", "r.txt"], "none of .html, .csv, .csv.gz and .json"),
        (&["report", "t.csv", "l.csv", "-o", "both.csv"], "two runs are not one trace"),
        (&["report", "l.csv", "-o", "t2.csv"], "this is lifetimes, not a recorded run"),
        (&["report", "t.csv", "-o", "t.csv"], "this is also the input"),
        (&["report", "t.csv", "--step", "9"], "no step 9"),
        (&["report"], "<stdin>: the file is empty"),
        (&["report", "-", "-"], "cannot both come from stdin"),
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.talk);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{arguments:?}: {}", ended.talk);
    }
    assert_eq!(folder.list(), ["l.csv", "t.csv"]);
}

#[test]
fn pytorch_counted_the_same_in_every_snapshot() {
    let folder = Folder::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(snapshots()).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".pickle.gz")) else { continue };
        let Ok(counted) = std::fs::read_to_string(snapshots().join(format!("{name}.json"))) else { continue };
        let counted: Value = serde_json::from_str(&counted).unwrap();
        let ended = folder.run(&["report", path.to_str().unwrap(), "--json"]);
        assert_eq!(ended.code, Some(0), "{name}: {}", ended.talk);
        let json = ended.json();
        // Without a history only the end is known.
        let when = if name == "state_only" { "current" } else { "peak" };
        assert_eq!(json["live_peak"], counted[format!("requested_bytes.all.{when}")], "{name}");
        assert_eq!(json["reserved_peak"], counted[format!("reserved_bytes.all.{when}")], "{name}");
        assert!(json["peak"].as_u64() <= json["reserved_peak"].as_u64(), "{name}");
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} snapshots were compared");
}

#[test]
fn a_snapshot_becomes_a_trace_that_says_the_same() {
    let folder = Folder::new();
    let snapshot = snapshots().join("two_streams.pickle.gz");
    let snapshot = snapshot.to_str().unwrap();
    let ended = folder.run(&["report", snapshot, "-o", "trace.csv"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(folder.read("trace.csv").starts_with("event,id,bytes,stream,time_ns,device,"));
    assert_eq!(folder.run(&["report", snapshot, "-o", "trace.csv.gz"]).code, Some(0));
    for arguments in [["plan", "--json"], ["explain", "--json"]] {
        let [of_trace, of_packed, of_snapshot] = ["trace.csv", "trace.csv.gz", snapshot].map(|input| {
            let mut json = folder.run(&[arguments[0], input, arguments[1]]).json();
            json["seconds"] = Value::Null;
            json
        });
        assert_eq!(of_trace, of_snapshot);
        assert_eq!(of_packed, of_snapshot);
    }
    let snapshot = folder.run(&["report", snapshot, "--json"]).json();
    assert_eq!(snapshot["layouts"][0]["origin"], json!("as recorded"));
}

/// A run on two devices that hold `first` and `second` bytes at the same time.
fn two_devices(first: u64, second: u64) -> String {
    format!("event,id,bytes,stream,device\nalloc,a,{first},0,0\nalloc,b,{second},0,1\nfree,a,,,0\nfree,b,,,1\n")
}

#[test]
fn of_several_devices_the_fullest_is_compared_and_explained() {
    let folder = Folder::with(&[("even.csv", &two_devices(2000, 2000)), ("odd.csv", &two_devices(500, 3500))]);
    let ended = folder.run(&["report", "even.csv", "odd.csv", "--fail-over", "2%"]);
    assert_eq!(ended.code, Some(1), "together they hold the same, the second alone holds more: {}", ended.data);
    let json = folder.run(&["explain", "odd.csv", "--json"]).json();
    assert_eq!((&json["pool"], &json["live"]), (&json!("device 1"), &json!(3500)));
    let json = folder.run(&["report", "odd.csv", "--json"]).json();
    assert_eq!((&json["pool"], &json["live_peak"], &json["peak"]), (&json!("device 1"), &json!(3500), &json!(4000)));
    assert!(folder.run(&["explain", "odd.csv"]).data.contains("in device 1, the fullest of several pools"));
}

#[test]
fn what_may_share_memory_is_counted_once_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/relations.json");
    let (folder, input) = (Folder::new(), root.to_str().unwrap());
    let report = folder.run(&["report", input, "--json"]).json();
    let explained = folder.run(&["explain", input, "--json"]).json();
    assert_eq!((&report["live_peak"], &report["peak_event"]), (&explained["live"], &explained["event"]));
    assert!(report["live_peak"].as_u64() <= report["peak"].as_u64());
}

#[test]
fn a_page_that_was_made_for_other_terms_is_planned_anew() {
    let folder = Folder::with(&[("l.csv", SMALL)]);
    assert_eq!(folder.run(&["report", "l.csv", "-o", "r.html"]).code, Some(0));
    let planned = |input: &str| folder.run(&["explain", input, "--align", "512", "--json"]).json()["planned"].clone();
    assert_eq!(planned("r.html"), planned("l.csv"));
    assert_eq!(planned("r.html"), json!(562));
}

#[test]
fn times_that_a_page_cannot_tell_apart_are_counted_from_the_first() {
    let base = 1_700_000_000_000_000_000_i64;
    let rows: Vec<String> = (0..3).map(|n| format!("b{n},{},{},100\n", base + n, base + n + 2)).collect();
    let folder = Folder::with(&[("epoch.csv", &format!("id,lower,upper,size\n{}", rows.concat()))]);
    let ended = folder.run(&["report", "epoch.csv", "-o", "r.html"]);
    assert!(ended.talk.starts_with("note: epoch.csv: times are counted from 1700000000000000000 on"), "{}", ended.talk);
    assert!(folder.read("r.html").contains("Note: times are counted from 1700000000000000000 on"));
    let json = folder.run(&["report", "r.html", "--json"]).json();
    assert_eq!((&json["live_peak"], &json["peak_event"]), (&json!(200), &json!(1)));
}
