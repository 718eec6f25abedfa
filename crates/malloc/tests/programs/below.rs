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
