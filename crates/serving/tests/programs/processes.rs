//! Processes: forks, children, limits, libraries that are opened late, and ends of every kind.

use std::time::{Duration, Instant};

use crate::preload::summaries;
use crate::sandbox::{Sandbox, assert_well};

#[test]
fn two_hundred_children_of_a_busy_process_allocate_and_exit() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("forks").output());
}

#[test]
fn children_go_on_without_the_library() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("children").summary();
}

#[test]
fn a_library_that_is_opened_late_trades_blocks() {
    let Some(sandbox) = Sandbox::new() else { return };
    let plugin = sandbox.build("plugin", "plugin.so", &["-shared", "-fPIC"]);
    sandbox.program("late").arg(plugin).summary();
}

#[test]
fn a_library_allocates_as_it_is_opened_while_another_thread_works() {
    let Some(sandbox) = Sandbox::new() else { return };
    let plugin = sandbox.build("slow", "slow.so", &["-shared", "-fPIC"]);
    let program = sandbox.build("loading", "loading", &[]);
    for way in ["trim", "trim again", "steps"] {
        let output = sandbox.program_at(&program).arg(&plugin).arg(way).output();
        assert!(output.status.success() && output.stderr.is_empty(), "{way}: {output:?}");
    }
}

#[test]
fn a_cancelled_thread_ends_at_its_own_next_point() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("cancelled").summary();
}

#[test]
fn a_limit_of_addresses_that_comes_later_is_lived_with() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("lowered", "lowered", &[]);
    for way in ["setrlimit", "prlimit", "child"] {
        sandbox.program_at(&program).arg(way).summary();
    }
}

#[test]
fn a_limit_of_addresses_is_lived_with() {
    let Some(sandbox) = Sandbox::new() else { return };
    let output = sandbox.program("limited").output_limited("ulimit -v 300000");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    assert!(words.lines().count() <= 1 && words.lines().all(|line| line.starts_with("lowtide: ")), "{words}");
    assert!(!words.contains("panicked"), "{words}");
}

#[test]
fn the_service_keeps_no_process_alive() {
    let Some(sandbox) = Sandbox::new() else { return };
    let start = Instant::now();
    assert_well(&sandbox.program("alive").output());
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_process_whose_threads_have_ended_has_none_when_it_forks() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("lonely").output());
}

#[test]
fn forks_do_not_wait_for_a_service_that_has_ended() {
    let Some(sandbox) = Sandbox::new() else { return };
    let output = sandbox.program("aside").output();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    assert!(words.lines().count() == 1 && words.starts_with("lowtide: steps aside"), "{words}");
}

#[test]
fn a_child_of_a_signal_handler_goes_on_whoever_had_the_lock() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("handled").env("LOWTIDE_PAGES", "base").output());
}

#[test]
fn another_thread_than_the_first_may_end_the_process() {
    let Some(sandbox) = Sandbox::new() else { return };
    for _ in 0..5 {
        let folder = sandbox.path("left");
        std::fs::create_dir_all(&folder).unwrap();
        let run = sandbox.program("leaver").env("LOWTIDE_SUMMARY", folder.to_str().unwrap());
        assert_eq!(run.output().status.code(), Some(7));
    }
    assert_eq!(std::fs::read_dir(sandbox.path("left")).unwrap().count(), 5);
}

/// How many summaries there are after the program has left in this way, with the status that it was to leave with.
#[expect(clippy::unwrap_used, reason = "a test may end here")]
fn summaries_after(sandbox: &Sandbox, way: &str) -> usize {
    let folder = sandbox.path(way);
    std::fs::create_dir_all(&folder).unwrap();
    let run = sandbox.program("leaving").arg(way).env("LOWTIDE_SUMMARY", folder.to_str().unwrap());
    let output = run.output();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(7), &[][..]), "{way}");
    let summaries = summaries(&folder);
    assert!(
        summaries.iter().all(|summary| summary["large"]["allocations"].as_u64() > Some(10)),
        "{way}: {summaries:?}"
    );
    summaries.len()
}

#[test]
fn a_process_that_runs_no_exit_functions_leaves_a_summary() {
    let Some(sandbox) = Sandbox::new() else { return };
    for way in ["_exit", "_Exit", "quick_exit", "small"] {
        assert_eq!(summaries_after(&sandbox, way), 1, "{way}");
    }
}

#[test]
fn a_forked_child_leaves_a_summary_and_one_with_its_parents_memory_none() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_eq!(summaries_after(&sandbox, "fork"), 2);
    assert_eq!(summaries_after(&sandbox, "vfork"), 1);
}

#[test]
fn a_signal_handler_ends_the_process_whatever_it_interrupts() {
    let Some(sandbox) = Sandbox::new() else { return };
    let folder = sandbox.path("interrupted");
    std::fs::create_dir_all(&folder).unwrap();
    let program = sandbox.build("leaving", "leaving", &[]);
    for _ in 0..50 {
        let run = sandbox.program_at(&program).arg("signal").env("LOWTIDE_SUMMARY", folder.to_str().unwrap());
        assert_eq!(run.output().status.code(), Some(7));
    }
    assert_eq!(summaries(&folder).len(), 50);
}

#[test]
fn a_signal_handler_ends_the_process_whatever_other_threads_wait_for() {
    let Some(sandbox) = Sandbox::new() else { return };
    let folder = sandbox.path("among others");
    std::fs::create_dir_all(&folder).unwrap();
    let program = sandbox.build("leaving", "leaving", &[]);
    for _ in 0..30 {
        // One lock for all threads, and nobody gets around it.
        let run = sandbox.program_at(&program).arg("others").env("MALLOC_ARENA_MAX", "1");
        let run = run.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
        let output = run.env("LOWTIDE_SUMMARY", folder.to_str().unwrap()).output();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
    }
    assert_eq!(summaries(&folder).len(), 30);
}
