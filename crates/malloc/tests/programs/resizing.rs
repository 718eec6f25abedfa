//! What `realloc` costs, against the C library in the same run.

use std::process::Output;

use crate::sandbox::{Sandbox, assert_well};

const WAYS: [&str; 8] =
    ["by half", "doubling", "by 1 MiB", "in turn", "up to 1 MiB", "having to move", "in small parts", "and shrinking"];

/// Other programs run on the same processors: the least of up to this many runs counts.
const RUNS: usize = 5;

#[test]
fn blocks_grow_and_shrink_in_no_more_time_than_the_c_librarys() {
    let Some(sandbox) = Sandbox::new() else { return };
    let program = sandbox.build("resizing", "resizing", &[]);
    let microseconds = |output: &Output| {
        assert_well(output);
        String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().unwrap()
    };
    for way in WAYS {
        let (mut alone, mut under) = (u64::MAX, u64::MAX);
        for _ in 0..RUNS {
            alone = alone.min(microseconds(&sandbox.program_at(&program).arg(way).output_alone()));
            under = under.min(microseconds(&sandbox.program_at(&program).arg(way).output()));
            if under <= alone {
                break;
            }
        }
        assert!(under <= alone * 3 / 2, "{way}: {under} µs, and {alone} µs without the library");
    }
}
