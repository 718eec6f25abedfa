//! Memory goes back to the system when that is asked for.

use crate::stage::Stage;

#[test]
fn malloc_trim_lowers_what_is_resident() {
    let Some(stage) = Stage::new() else { return };
    stage.program("trim").summary();
    stage.program("trim").env("LOWTIDE_PAGES", "base").summary();
}

#[test]
fn lowtide_trim_says_how_much_it_gave_back() {
    let Some(stage) = Stage::new() else { return };
    stage.program("trim").arg("ours").summary();
}
