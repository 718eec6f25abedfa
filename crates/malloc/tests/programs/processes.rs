//! Processes: forks, children, limits, libraries that are opened late, and ends of every kind.

use std::time::{Duration, Instant};

use crate::stage::{Stage, assert_well};

#[test]
fn two_hundred_children_of_a_busy_process_allocate_and_exit() {
    let Some(stage) = Stage::new() else { return };
    assert_well(&stage.program("forks").output());
}

#[test]
fn children_go_on_without_the_library() {
    let Some(stage) = Stage::new() else { return };
    stage.program("children").summary();
}

#[test]
fn a_library_that_is_opened_late_trades_blocks() {
    let Some(stage) = Stage::new() else { return };
    let plugin = stage.build("plugin", "plugin.so", &["-shared", "-fPIC"]);
    stage.program("late").arg(plugin).summary();
}

#[test]
fn a_limit_of_addresses_is_lived_with() {
    let Some(stage) = Stage::new() else { return };
    let output = stage.program("limited").output_limited("ulimit -v 300000");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    assert!(words.lines().count() <= 1 && words.lines().all(|line| line.starts_with("lowtide: ")), "{words}");
    assert!(!words.contains("panicked"), "{words}");
}

#[test]
fn the_service_keeps_no_process_alive() {
    let Some(stage) = Stage::new() else { return };
    let start = Instant::now();
    assert_well(&stage.program("alive").output());
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn another_thread_than_the_first_may_end_the_process() {
    let Some(stage) = Stage::new() else { return };
    for _ in 0..5 {
        let folder = stage.path("left");
        std::fs::create_dir_all(&folder).unwrap();
        let run = stage.program("leaver").env("LOWTIDE_SUMMARY", folder.to_str().unwrap());
        assert_eq!(run.output().status.code(), Some(7));
    }
    assert_eq!(std::fs::read_dir(stage.path("left")).unwrap().count(), 5);
}
