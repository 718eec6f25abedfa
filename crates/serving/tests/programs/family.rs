//! What `malloc`'s family promises.

use crate::sandbox::{Sandbox, assert_well};

#[test]
fn the_family_is_as_documented_on_both_sides_of_the_border() {
    let Some(sandbox) = Sandbox::new() else { return };
    let summary = sandbox.program("family").summary();
    assert!(summary["large"]["allocations"].as_u64() > Some(500), "{summary}");
}

#[test]
fn contents_survive_realloc_in_all_directions() {
    let Some(sandbox) = Sandbox::new() else { return };
    let summary = sandbox.program("realloc").summary();
    assert!(summary["large"]["allocations"].as_u64() > Some(1000), "{summary}");
}

#[test]
fn a_block_that_grows_on_keeps_its_contents_and_few_mappings() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("growth").output());
}

#[test]
fn a_block_that_moves_to_grow_is_never_there_twice() {
    let Some(sandbox) = Sandbox::new() else { return };
    for pages in ["transparent", "base"] {
        assert_well(&sandbox.program("moving").env("LOWTIDE_PAGES", pages).output());
    }
}

#[test]
fn who_asks_for_little_does_not_wait_for_zeros_of_others() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("beside").output());
}

#[test]
fn calloc_gives_zeros_and_touches_no_pages_it_need_not() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("zeros").summary();
    sandbox.program("zeros").env("LOWTIDE_PAGES", "base").summary();
}

#[test]
fn blocks_of_one_thread_are_freed_by_others() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("threads").summary();
}

#[test]
fn threads_with_stacks_of_64_kib_are_served() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.program("threads").arg("64").summary();
}

#[test]
fn a_block_that_is_freed_twice_ends_the_program() {
    let Some(sandbox) = Sandbox::new() else { return };
    let output = sandbox.program("twice").output();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(words.starts_with("lowtide: free(): double free") && words.lines().count() == 1, "{words}");
}

#[test]
fn small_aligned_blocks_are_kept_for_the_next_of_their_size_and_stay_whole() {
    let Some(sandbox) = Sandbox::new() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return lowtide_testing::skip("glibc's blocks are looked at on x86-64 alone");
    }
    assert_well(&sandbox.program("aligned").output());
    for freed in ["1", "200"] {
        let output = sandbox.program("aligned").arg(freed).output();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.starts_with("lowtide: free(): double free"), "{freed}: {words}");
    }
}

#[test]
fn a_block_that_a_signal_handler_frees_twice_ends_the_program() {
    let Some(sandbox) = Sandbox::new() else { return };
    let output = sandbox.program("deferred").output();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(words.starts_with("lowtide: free(): double free") && words.lines().count() == 1, "{words}");
}

#[test]
fn a_signal_handler_may_allocate_whatever_it_interrupts() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_well(&sandbox.program("signals").output());
}
