//! What `realloc` costs, against the C library in the same run: a copy where none is needed touches every page again.

use std::process::Output;

use crate::sandbox::{Sandbox, assert_well};

const WAYS: [&str; 8] =
    ["by half", "doubling", "by 1 MiB", "in turn", "up to 1 MiB", "having to move", "in small parts", "and shrinking"];

#[test]
fn blocks_grow_and_shrink_with_no_more_page_faults_than_the_c_librarys() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("resizing", "resizing", &[]);
    let faults = |output: &Output| {
        assert_well(output);
        String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().unwrap()
    };
    for way in WAYS {
        let alone = faults(&sandbox.program_at(&program).arg(way).output_alone());
        let under = faults(&sandbox.program_at(&program).arg(way).output());
        assert!(under <= alone, "{way}: {under} faults, and {alone} without the library");
    }
}
