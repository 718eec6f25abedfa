//! `lowtide bench host`: what is measured, what is said of those who are missing, and mistakes. It needs a Python, but no
//! PyTorch; without a Python the tests that run one are skipped.

use std::process::Command;

use lowtide_testing::skip;

use super::support::{Ended, Folder, lowtide};

fn bench(folder: &Folder, arguments: &[&str]) -> Ended {
    bench_with(folder, "/no/such.so", arguments)
}

fn bench_with(folder: &Folder, library: &str, arguments: &[&str]) -> Ended {
    let mut command = lowtide(&[&["bench", "host"], arguments].concat());
    command.current_dir(folder.path()).env("LOWTIDE_LIBRARY", library).env_remove("LOWTIDE_PYTHON");
    let output = command.env_remove("VIRTUAL_ENV").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), data: text(output.stdout), talk: text(output.stderr) }
}

fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        skip("there is no `python3`");
    }
    has
}

const QUICK: [&str; 7] = ["--small", "--runs", "2", "--steps", "1", "--warm-up", "0"];

#[test]
fn a_program_without_large_blocks_is_measured() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let ended = bench(&folder, &[&QUICK[..], &["--allocators", "glibc", "--json", "-o", "host.json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let report = ended.json();
    let row = &report["rows"][0];
    assert_eq!(
        (&report["version"], &row["workload"], &row["allocator"]),
        (&1.into(), &"small".into(), &"glibc".into())
    );
    assert_eq!((&row["runs"], &report["failed"]), (&2.into(), &serde_json::json!([])));
    assert!(row["cpu_ms"]["median"].as_f64().unwrap() > 0.0 && row["peak_rss_bytes"]["low"].as_f64().unwrap() > 1e6);
    assert_eq!(folder.read("host.json"), ended.data);
}

#[test]
fn who_is_missing_is_named_with_what_to_do() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let ended = bench(&folder, &[&QUICK[..], &["--allocators", "glibc,lowtide"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.starts_with("MISSING lowtide: LOWTIDE_LIBRARY is /no/such.so"), "{}", ended.talk);
    assert!(ended.data.starts_with("small\n") && ended.data.contains("MISSING lowtide"), "{}", ended.data);
    let nobody = bench(&folder, &[&QUICK[..], &["--allocators", "lowtide"]].concat());
    assert_eq!(nobody.code, Some(2), "{}", nobody.talk);
}

#[test]
fn what_may_not_be_wanted_is_told_once_and_kept() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    // What is no library is not loaded, which is the system's to say.
    for library in ["liblowtide_malloc.so", "liblowtide_serving.so"] {
        folder.write(library, b"");
    }
    let arguments = ["--allocators", "lowtide,lowtide-no-learn", "--malloc-conf", "narenas:1", "--json"];
    let ended = bench_with(&folder, "liblowtide_malloc.so", &[&QUICK[..], &arguments].concat());
    let warning = "`malloc-conf` is for jemalloc, and the underlying allocator is glibc";
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert_eq!(ended.talk.matches(&format!("warning: {warning}\n")).count(), 1, "{}", ended.talk);
    assert_eq!(ended.json()["warnings"], serde_json::json!([warning]));
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new();
    for (arguments, words) in [
        (&["--python", "/no/python"][..], "cannot run /no/python"),
        (&["--python", "false"], "false is no Python"),
        (&["--workloads", "bert"], "dlrm_var"),
        (&["--runs", "0"], "whole number from 1"),
        (&["-o", "no/x.json"], "folder of the output"),
    ] {
        let ended = bench(&folder, arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.talk);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{words}: {}", ended.talk);
    }
}

#[test]
fn rounds_go_on_until_the_ratio_is_known() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    for library in ["liblowtide_malloc.so", "liblowtide_serving.so"] {
        folder.write(library, b"");
    }
    let measure = |percent: &str| {
        let arguments = ["--allocators", "glibc,lowtide", "--json", "--within", percent];
        let ended = bench_with(&folder, "liblowtide_malloc.so", &[&QUICK[..], &arguments].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        ended.json()
    };
    let report = measure("60");
    let ratio = &report["ratios"][0];
    assert_eq!((&ratio["allocator"], &ratio["is_best"]), (&"glibc".into(), &true.into()), "{ratio}");
    let number = |name: &str| ratio["cpu"][name].as_f64().unwrap();
    assert!(number("low") <= number("mean") && number("mean") <= number("high"), "{ratio}");
    assert!(number("high") - number("low") <= 2.0 * 0.6 * number("mean"), "{ratio}");
    assert_eq!(ratio["cpu"]["rounds"], report["runs"]);
    assert!(bench(&folder, &["--within", "0"]).talk.contains("a number of percent"));
}
