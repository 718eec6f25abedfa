//! What programs could do before: promises of the C library and the system that hold under the library too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::preload::library;
use crate::sandbox::{Sandbox, assert_well, printed};

#[test]
fn a_program_with_one_thread_keeps_one_and_its_memory_decays() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("single", "single", &[]);
    assert_well(&sandbox.program_at(&program).output());
    assert_well(&sandbox.program_at(&program).arg("decays").env("LOWTIDE_DECAY", "0.5").output());
}

#[test]
fn what_is_done_to_the_pages_of_a_block_ends_with_it() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("altered", "altered", &[]);
    for learns in ["1", "0"] {
        sandbox.program_at(&program).env("LOWTIDE_LEARN", learns).summary();
    }
}

#[test]
fn a_program_that_locks_its_memory_locks_what_is_alive() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("locked", "locked", &[]);
    for when in ["first", "later"] {
        let output = sandbox.program_at(&program).arg(when).output();
        if output.status.code() == Some(77) {
            return lowtide_testing::skip("this user may not lock so much memory");
        }
        assert_well(&output);
    }
}

#[test]
fn odd_questions_get_the_answers_of_the_c_library() {
    let Some(sandbox) = Sandbox::new() else { return };
    for source in ["alike", "overcommitted"] {
        let program = sandbox.build(source, source, &[]);
        let alone = printed(&sandbox.program_at(&program).output_alone());
        assert_eq!(printed(&sandbox.program_at(&program).output()), alone, "{source}");
    }
}

#[test]
fn memory_that_is_not_needed_for_no_time_goes_back_at_once() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("at_once", "at_once", &[]);
    assert_well(&sandbox.program_at(&program).env("LOWTIDE_DECAY", "0").output());
}

#[test]
fn blocks_that_are_touched_a_little_take_little() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("sparse", "sparse", &[]);
    for (size, touched) in [("2097152", "1"), ("1048576", "65536"), ("34000", "1"), ("130000", "5000"), ("600000", "1")]
    {
        let mebibytes = |output: &Output| printed(output).trim().parse::<u64>().unwrap_or(u64::MAX);
        let alone = mebibytes(&sandbox.program_at(&program).arg(size).arg(touched).output_alone());
        let run = sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(size).arg(touched);
        let under = mebibytes(&run.output());
        assert!(under <= alone + alone / 10 + 4, "{size} {touched}: {under} MiB and not {alone}");
    }
}

#[test]
fn only_what_faults_again_and_again_is_served_where_nobody_marks_steps() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("evidence", "evidence", &[]);
    for (way, is_served) in
        [("again", true), ("phases", true), ("grows", false), ("little", false), ("sparse", false), ("marks", true)]
    {
        let summary = sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(way).summary();
        let allocations = summary["large"]["allocations"].as_u64();
        assert_eq!(allocations.is_some_and(|count| count > 0), is_served, "{way}: {summary}");
    }
    for (name, value) in [("LOWTIDE_ARENA", "never"), ("ENABLE_MEMORY_OPTIMIZATION", "0"), ("LOWTIDE_NOT", "evidence")]
    {
        let run = sandbox.program_at(&program).env("LOWTIDE_ARENA", if name == "LOWTIDE_ARENA" { value } else { "" });
        let summary = run.env(name, value).arg("marks").summary();
        assert_eq!(summary["large"]["allocations"].as_u64().unwrap_or(0), 0, "{name}: {summary}");
    }
}

#[test]
fn what_threads_keep_for_themselves_is_whole_and_goes_back_when_they_end() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("cached", "cached", &[]);
    for arena in ["auto", "never"] {
        assert_well(&sandbox.program_at(&program).env("LOWTIDE_ARENA", arena).output());
    }
}

#[test]
fn a_program_that_forbids_itself_calls_is_not_killed_for_ours() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("sandboxed", "sandboxed", &[]);
    // Before the library that serves is opened, and after.
    for turns_over in [false, true] {
        let run = sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto");
        let run = if turns_over { run.env("TURNS_OVER", "1") } else { run };
        if printed(&run.output()).contains("not allowed") {
            return lowtide_testing::skip("this user may not filter system calls");
        }
    }
}

#[test]
fn threads_that_end_soon_take_no_more_than_without() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("crowd", "crowd", &[]);
    let numbers = |output: &Output| -> [u64; 2] {
        let words: Vec<u64> = printed(output).split_whitespace().map(|word| word.parse().unwrap()).collect();
        words.try_into().unwrap()
    };
    // How many threads there are at once depends on what else the machine does: the most without, and the least under the library.
    let of_three = |run: &dyn Fn() -> [u64; 2], choose: fn(u64, u64) -> u64| {
        let [first, second, third] = [run(), run(), run()];
        [0, 1].map(|which| choose(choose(first[which], second[which]), third[which]))
    };
    for (turns, rounds) in [("20", "100"), ("1000", "8")] {
        let alone = || numbers(&sandbox.program_at(&program).arg(turns).arg(rounds).output_alone());
        let run = || sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(turns).arg(rounds);
        let alone = of_three(&alone, u64::max);
        let under = of_three(&|| numbers(&run().output()), u64::min);
        // What a second library takes is beside that.
        assert!(under[0] < alone[0] + alone[0] / 4 + (6 << 10), "{turns}: {under:?} and not {alone:?}");
        assert!(under[1] < 3 * alone[1] + 10_000, "{turns}: {under:?} and not {alone:?}");
    }
}

#[test]
fn a_block_that_a_thread_keeps_is_not_freed_twice() {
    let Some(sandbox) = Sandbox::new() else { return };
    // Where a summary is wanted, threads keep blocks from the first on.
    let folder = sandbox.path("");
    for arguments in [&[][..], &["first"], &["last"]] {
        let mut program = sandbox.program("cached_twice").env("LOWTIDE_ARENA", "auto");
        for &argument in arguments {
            program = program.arg(argument);
        }
        let output = program.env("LOWTIDE_SUMMARY", &folder.to_string_lossy()).output();
        let words = String::from_utf8_lossy(&output.stderr);
        let is_refused = words.starts_with("lowtide: free(): double free");
        assert!(!output.status.success() && is_refused, "{arguments:?}, {}: {words}", output.status);
    }
}

#[test]
fn what_was_allocated_before_the_arena_goes_back_when_it_is_freed() {
    let Some(sandbox) = Sandbox::new() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return lowtide_testing::skip("glibc's blocks are looked at on x86-64 alone");
    }
    assert_well(&sandbox.program("leftovers").env("LOWTIDE_ARENA", "auto").output());
}

/// A control group of its own for a test, with so many bytes; gone with the test.
struct Group(PathBuf);

impl Group {
    /// None where this user may not make one.
    fn with_limit(bytes: u64) -> Option<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            lines.filter(|(controllers, _)| *controllers == name).map(|(_, path)| path.trim_start_matches('/')).next()
        };
        let first = path_of("memory").map(|path| Path::new("/sys/fs/cgroup/memory").join(path));
        let (around, limit) = match first.filter(|folder| folder.exists()) {
            Some(folder) => (folder, "memory.limit_in_bytes"),
            None => (Path::new("/sys/fs/cgroup").join(path_of("")?), "memory.max"),
        };
        let group = Self(around.join(format!("lowtide-test-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(limit), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn in_a_small_control_group_what_blocks_have_left_can_be_mapped() {
    let Some(sandbox) = Sandbox::new() else { return };
    let Some(group) = Group::with_limit(300 << 20) else {
        return lowtide_testing::skip("this user may not make a control group with a limit of memory");
    };
    let program = sandbox.build("mapping", "mapping", &[]);
    for (rounds, pages) in [("1", "transparent"), ("1", "base"), ("60", "transparent"), ("60", "base")] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("echo $$ > \"$0/cgroup.procs\" && LD_PRELOAD=\"$1\" exec \"$2\" \"$3\"");
        shell.arg(&group.0).arg(library()).arg(&program).arg(rounds);
        shell.env("LOWTIDE_ARENA", "always").env("LOWTIDE_PAGES", pages);
        let output = shell.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{rounds} rounds, {pages} pages: {}: {words}", output.status);
    }
}
