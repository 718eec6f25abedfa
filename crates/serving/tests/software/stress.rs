//! stress-ng's stressors of memory, which check what they read.

use lowtide_testing::{programs, thorough};

use crate::trial::Trial;

/// Stressors and their settings: two processes each, a few seconds.
const STRESSORS: [&[&str]; 6] = [
    &["--malloc", "2", "--malloc-bytes", "512K", "--malloc-max", "4096", "--malloc-touch"],
    &["--malloc", "2", "--malloc-bytes", "8M", "--malloc-max", "64", "--malloc-pthreads", "4"],
    &["--bigheap", "1", "--bigheap-growth", "256K"],
    &["--vm", "2", "--vm-bytes", "64M", "--mremap", "1", "--mremap-bytes", "32M"],
    &["--mmapfork", "1", "--fork", "1", "--vfork", "1"],
    &["--qsort", "1", "--hsearch", "1", "--zlib", "1", "--memcpy", "1"],
];

#[test]
fn what_the_stressors_write_they_read_back() {
    if !thorough() {
        return;
    }
    let Some([stress]) = programs(["stress-ng"], &[]) else { return };
    let trial = Trial::new();
    for stressors in STRESSORS {
        let arguments = [stressors, &["--verify", "--timeout", "3", "--oomable", "--metrics-brief"]].concat();
        trial.run(&stress, &arguments);
    }
    trial.assert_served("stress-ng");
}
