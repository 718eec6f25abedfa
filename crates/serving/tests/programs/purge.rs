//! Memory goes back to the system when that is asked for.

use std::fs;
use std::process::Command;

use crate::preload::library;
use crate::sandbox::{Sandbox, assert_well};

#[test]
fn malloc_trim_lowers_what_is_resident() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("trim").summary();
    sandbox.program("trim").env("LOWTIDE_PAGES", "base").summary();
}

#[test]
fn lowtide_trim_says_how_much_it_gave_back() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("trim").arg("ours").summary();
}

#[test]
fn load_that_drops_while_a_plan_is_served_is_given_back() {
    let Some(sandbox) = Sandbox::new() else { return };
    for pages in ["transparent", "base"] {
        let summary = sandbox.program("dropping").env("LOWTIDE_PAGES", pages).summary();
        assert!(summary["planned_from_step"].as_u64().is_some(), "{summary}");
    }
}

#[test]
fn a_control_group_that_is_full_gets_free_memory_back() {
    let Some(sandbox) = Sandbox::new() else { return };
    let group = sandbox.path("group");
    fs::create_dir_all(&group).unwrap();
    let files = [("memory.current", 1 << 28), ("memory.max", 1_u64 << 30)];
    for (name, bytes) in files {
        fs::write(group.join(name), format!("{bytes}\n")).unwrap();
    }
    fs::write(group.join("memory.high"), "max\n").unwrap();
    fs::write(group.join("memory.stat"), "inactive_file 4096\nactive_file 0\n").unwrap();
    let program = sandbox.build("squeezed", "squeezed", &[]);
    let in_its_place = |command: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--mount", "--cgroup", "sh", "-c"]);
        shell.arg(format!("mount --bind \"$0\" /sys/fs/cgroup && {command}"));
        shell.arg(&group).arg(library()).arg(&program).output()
    };
    if !in_its_place("true").is_ok_and(|output| output.status.success()) {
        return lowtide_testing::skip("this user may not put a folder in the place of its control group");
    }
    assert_well(&in_its_place("LOWTIDE_ARENA=always LD_PRELOAD=\"$1\" exec \"$2\" \"$0/memory.current\"").unwrap());
}
