//! What the summary says about steps, and about settings that make no sense.

use crate::sandbox::Sandbox;

#[test]
fn steps_that_the_program_closes_are_counted() {
    let Some(sandbox) = Sandbox::new() else { return };
    let summary = sandbox.program("steps").arg("closed").summary();
    assert_eq!(summary["steps_by"], "marks", "{summary}");
    assert_eq!(summary["steps"], 30, "{summary}");
    assert_eq!(summary["command"], "steps");
    assert_eq!(summary["marks"][0]["name"], "steps begin");
    assert!(summary["large"]["allocations"].as_u64() >= Some(580), "{summary}");
    assert!(summary["arena_resident_bytes"].as_u64() > Some(0), "{summary}");
}

#[test]
fn without_learning_no_step_is_found() {
    let Some(sandbox) = Sandbox::new() else { return };
    let summary = sandbox.program("steps").env("LOWTIDE_LEARN", "0").summary();
    assert_eq!((&summary["steps_by"], &summary["steps"]), (&"none".into(), &0.into()), "{summary}");
}

#[test]
fn a_setting_that_makes_no_sense_is_said_in_the_summary() {
    let Some(sandbox) = Sandbox::new() else { return };
    let run = sandbox.program("steps").env("LOWTIDE_PAGES", "4M").env("LOWTIDE_DECAY", "soon");
    let summary = run.env("LOWTIDE_TRIM_BELOW", "0").env("START_STATISTIC_STEP", "x").summary();
    assert_eq!(summary["warnings"].as_array().map(Vec::len), Some(4), "{summary}");
}
