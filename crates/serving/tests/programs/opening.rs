//! When the library that serves is opened, and what holds before, meanwhile and after.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::preload::{library, summaries};
use crate::sandbox::{Sandbox, assert_well};

/// Under the library as it is where nobody wants a summary, and nobody wants the arena whatever the program does.
fn run(program: &Path, preload: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", preload).env_remove("LOWTIDE_ARENA").env_remove("LOWTIDE_SUMMARY");
    command
}

#[test]
fn a_program_that_asks_for_little_never_opens_it() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    assert_well(&run(&program, library()).arg("little").output().unwrap());
    assert_well(&run(&program, library()).arg("much").output().unwrap());
}

#[test]
fn it_is_open_at_once_where_the_arena_or_a_summary_is_wanted() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let folder = sandbox.path("summaries");
    fs::create_dir(&folder).unwrap();
    assert_well(&run(&program, library()).arg("at once").env("LOWTIDE_ARENA", "always").output().unwrap());
    assert_well(&run(&program, library()).arg("at once").env("LOWTIDE_SUMMARY", &folder).output().unwrap());
    let own = std::process::id().to_string();
    let mut wanted = run(&program, library());
    wanted.arg("at once").env("LOWTIDE_SUMMARY", &folder).env("LOWTIDE_RUNNER", own);
    assert_well(&wanted.output().unwrap());
    assert_eq!(summaries(&folder).len(), 2);
    let mut somebody_elses = run(&program, library());
    somebody_elses.arg("little").env("LOWTIDE_SUMMARY", &folder).env("LOWTIDE_RUNNER", "1");
    assert_well(&somebody_elses.output().unwrap());
    assert_eq!(summaries(&folder).len(), 2, "a process that did little leaves none");
}

#[test]
fn what_the_program_was_started_with_counts_though_it_overwrites_that() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let folder = sandbox.path("summaries");
    fs::create_dir(&folder).unwrap();
    let mut command = run(&program, library());
    command.arg("overwritten").env("LOWTIDE_SUMMARY", &folder).env("LOWTIDE_RUNNER", "1").env("LOWTIDE_NOT", "opened");
    assert_well(&command.output().unwrap());
    let [summary] = &summaries(&folder)[..] else { panic!("not one summary") };
    assert_eq!((&summary["command"], &summary["large"]["by"]), (&"opened".into(), &"off".into()), "{summary}");
}

#[test]
fn threads_trade_blocks_while_it_is_opened() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    for _ in 0..5 {
        assert_well(&run(&program, library()).arg("threads").output().unwrap());
    }
}

#[test]
fn children_of_a_process_that_is_opening_it_are_whole() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    for _ in 0..3 {
        assert_well(&run(&program, library()).arg("forks").output().unwrap());
    }
}

#[test]
fn a_fork_waits_for_a_library_that_is_being_opened() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let alone: PathBuf = sandbox.path("alone.so");
    fs::copy(library(), &alone).unwrap();
    sandbox.build("refuses", "liblowtide_serving.so", &["-shared", "-fPIC", "-DSLOW"]);
    assert_well(&run(&program, &alone).arg("meanwhile").output().unwrap());
}

#[test]
fn a_program_locks_its_own_around_forks_though_the_arena_came_later() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&run(&sandbox.build("handlers", "handlers", &[]), library()).output().unwrap());
}

#[test]
fn a_library_that_is_loaded_before_locks_its_own_around_forks_too() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.build("handlers", "liblock.so", &["-shared", "-fPIC", "-DLOCK"]);
    let folder = sandbox.path("");
    let search = format!("-L{}", folder.display());
    let path = format!("-Wl,-rpath,{}", folder.display());
    let program = sandbox.build("handlers", "linked", &["-DLINKED", &search, &path, "-llock"]);
    assert_well(&run(&program, library()).output().unwrap());
}

#[test]
fn a_block_that_grows_counts() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    assert_well(&run(&program, library()).arg("grown").output().unwrap());
}

#[test]
fn a_process_that_changes_its_root_is_served_by_what_was_there_before() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let output = run(&program, library()).arg("root").output().unwrap();
    if output.status.code() == Some(77) {
        return lowtide_testing::skip("this user may not change the root");
    }
    assert_well(&output);
}

#[test]
fn a_process_whose_memory_is_locked_does_without() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let output = run(&program, library()).arg("locked").output().unwrap();
    if output.status.code() == Some(77) {
        return lowtide_testing::skip("this user may not lock memory");
    }
    assert_well(&output);
}

#[test]
fn programs_run_where_it_is_missing_or_of_another_version() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("opened", "opened", &[]);
    let alone: PathBuf = sandbox.path("alone.so");
    fs::copy(library(), &alone).unwrap();
    assert_well(&run(&program, &alone).arg("missing").output().unwrap());
    let wanted = run(&program, &alone).arg("missing").env("LOWTIDE_ARENA", "always").output().unwrap();
    let words = String::from_utf8_lossy(&wanted.stderr);
    assert!(wanted.status.success() && words.starts_with("lowtide: ") && words.lines().count() == 1, "{words}");
    sandbox.build("refuses", "liblowtide_serving.so", &["-shared", "-fPIC"]);
    let refused = run(&program, &alone).arg("at once").env("LOWTIDE_ARENA", "always").output().unwrap();
    assert!(refused.status.success() && refused.stderr.starts_with(b"lowtide: "), "{refused:?}");
}
