//! Another allocator below.

use std::path::PathBuf;
use std::process::Command;

use crate::stage::{Stage, assert_well};

fn wrapper(stage: &Stage) -> PathBuf {
    stage.build("wrapper", "wrapper.so", &["-shared", "-fPIC"])
}

#[test]
fn another_allocator_serves_what_is_not_large() {
    let Some(stage) = Stage::new() else { return };
    let wrapper = wrapper(&stage);
    for program in ["family", "realloc", "threads"] {
        let run = stage.program(program).followed_by(&wrapper).env("LOWTIDE_BELOW", "wrapper");
        assert_eq!(run.summary()["below"], "wrapper");
    }
}

#[test]
fn a_program_that_is_linked_with_another_allocator_keeps_it() {
    let Some(stage) = Stage::new() else { return };
    stage.build("wrapper", "libwrapper.so", &["-shared", "-fPIC"]);
    let folder = stage.path("");
    let search = format!("-L{}", folder.display());
    let path = format!("-Wl,-rpath,{}", folder.display());
    let program = stage.build("linked", "linked", &[&search, &path, "-lwrapper"]);
    for told in ["", "glibc"] {
        let run = stage.program_at(&program).env("LOWTIDE_BELOW", told);
        assert_eq!(run.summary()["below"], "the program's own");
    }
}

#[test]
fn deep_binding_is_dropped_and_the_callers_search_path_is_kept() {
    let Some(stage) = Stage::new() else { return };
    let wrapper = wrapper(&stage);
    stage.build("deep", "apart/libdeep.so", &["-shared", "-fPIC"]);
    let path = format!("-Wl,--enable-new-dtags,-rpath,{}", stage.path("apart").display());
    let opener = stage.build("opener", "opener", &[&path]);

    let alone = Command::new(&opener).env("LD_PRELOAD", &wrapper).output().unwrap();
    assert!(!alone.status.success(), "deep binding does no harm here, so nothing is tested");

    let opener = || stage.program_at(&opener);
    assert_well(&opener().followed_by(&wrapper).env("LOWTIDE_BELOW", "wrapper").output());
    assert_well(&opener().output());
}
