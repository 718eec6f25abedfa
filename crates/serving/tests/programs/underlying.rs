//! Another underlying allocator.

use std::path::PathBuf;
use std::process::Command;

use crate::sandbox::{Sandbox, assert_well};

fn wrapper(sandbox: &Sandbox) -> PathBuf {
    sandbox.build("wrapper", "wrapper.so", &["-shared", "-fPIC"])
}

#[test]
fn another_allocator_serves_what_is_not_large() {
    let Some(sandbox) = Sandbox::new() else { return };
    let wrapper = wrapper(&sandbox);
    for program in ["family", "realloc", "threads"] {
        let run = sandbox.program(program).followed_by(&wrapper).env("LOWTIDE_BELOW", "wrapper");
        assert_eq!(run.summary()["below"], "wrapper");
    }
}

#[test]
fn the_underlying_allocators_locks_are_taken_after_the_arenas_in_a_fork() {
    let Some(sandbox) = Sandbox::new() else { return };
    let wrapper = sandbox.build("wrapper", "locks.so", &["-shared", "-fPIC", "-DLOCKS"]);
    for (name, value) in [("A", "B"), ("BEGINS_EARLY", "1")] {
        let run = sandbox.program("forks").followed_by(&wrapper).env("LOWTIDE_BELOW", "wrapper").env(name, value);
        assert_well(&run.output());
    }
    let installed = ["x86_64", "aarch64"].map(|machine| format!("/usr/lib/{machine}-linux-gnu/libjemalloc.so.2"));
    let Some(jemalloc) = installed.iter().map(PathBuf::from).find(|path| path.exists()) else {
        return lowtide_testing::skip("jemalloc is not installed");
    };
    assert_well(&sandbox.program("forks").followed_by(&jemalloc).env("LOWTIDE_BELOW", "jemalloc").output());
}

#[test]
fn a_program_that_is_linked_with_another_allocator_keeps_it() {
    let Some(sandbox) = Sandbox::new() else { return };
    sandbox.build("wrapper", "libwrapper.so", &["-shared", "-fPIC"]);
    let folder = sandbox.path("");
    let search = format!("-L{}", folder.display());
    let path = format!("-Wl,-rpath,{}", folder.display());
    let program = sandbox.build("linked", "linked", &[&search, &path, "-lwrapper"]);
    for told in ["", "glibc"] {
        let run = sandbox.program_at(&program).env("LOWTIDE_BELOW", told);
        assert_eq!(run.summary()["below"], "the program's own");
    }
}

#[test]
fn deep_binding_is_dropped_and_the_callers_search_path_is_kept() {
    let Some(sandbox) = Sandbox::new() else { return };
    let wrapper = wrapper(&sandbox);
    sandbox.build("deep", "apart/libdeep.so", &["-shared", "-fPIC"]);
    let path = format!("-Wl,--enable-new-dtags,-rpath,{}", sandbox.path("apart").display());
    let opener = sandbox.build("opener", "opener", &[&path]);

    let alone = Command::new(&opener).env("LD_PRELOAD", &wrapper).output().unwrap();
    assert!(!alone.status.success(), "deep binding does no harm here, so nothing is tested");

    let opener = || sandbox.program_at(&opener);
    assert_well(&opener().followed_by(&wrapper).env("LOWTIDE_BELOW", "wrapper").output());
    assert_well(&opener().output());
}
