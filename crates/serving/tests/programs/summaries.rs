//! Which processes leave a summary, and what is said where they cannot.

use std::fs;
use std::path::Path;

use crate::preload::summaries;
use crate::sandbox::{Sandbox, assert_well};

/// How many summaries a program leaves behind that this process starts, where `runner` wants them.
#[expect(clippy::unwrap_used, reason = "a test may end here")]
fn left(sandbox: &Sandbox, program: &Path, runner: Option<u32>) -> usize {
    let folder = sandbox.path("left");
    fs::create_dir_all(&folder).unwrap();
    let mut run = sandbox.program_at(program).env("LOWTIDE_SUMMARY", folder.to_str().unwrap());
    if let Some(runner) = runner {
        run = run.env("LOWTIDE_RUNNER", &runner.to_string());
    }
    assert_well(&run.output());
    let left = summaries(&folder).len();
    fs::remove_dir_all(folder).unwrap();
    left
}

#[test]
fn without_large_blocks_only_what_the_runner_itself_started_leaves_a_summary() {
    let Some(sandbox) = Sandbox::new() else { return };
    let (own, other) = (std::process::id(), std::os::unix::process::parent_id());
    let (small, large) = (Path::new("/bin/true"), sandbox.build("alive", "alive", &[]));
    assert_eq!([None, Some(own), Some(other)].map(|runner| left(&sandbox, small, runner)), [1, 1, 0]);
    assert_eq!([None, Some(own), Some(other)].map(|runner| left(&sandbox, &large, runner)), [1, 1, 1]);
}

#[test]
fn a_folder_that_is_gone_is_not_worth_a_word_and_one_that_is_none_is() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("alive", "alive", &[]);
    let gone = sandbox.path("gone");
    assert_well(&sandbox.program_at(&program).env("LOWTIDE_SUMMARY", &gone.to_string_lossy()).output());
    let output = sandbox.program_at(&program).env("LOWTIDE_SUMMARY", &program.to_string_lossy()).output();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.starts_with("lowtide: no summary in "), "{words}");
}
