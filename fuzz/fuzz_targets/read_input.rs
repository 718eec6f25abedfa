//! Whatever the bytes, the readers return: no panic, no endless loop, no memory beyond their limits. What they
//! promise of their answers is checked on the way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_core::Trace;
use lowtide_formats::{Error, Input, PlanFile, Run, write_trace, write_usage};

fuzz_target!(|bytes: &[u8]| {
    match Input::read(bytes) {
        Ok(Input::Lifetimes(lifetimes)) => assert_eq!(lifetimes.problem.check(), Ok(())),
        Ok(Input::Problem(problem)) => assert_eq!(problem.check(), Ok(())),
        Ok(Input::Trace(trace)) => assert_comes_back(&trace),
        Ok(Input::Snapshot(snapshot)) => assert_comes_back(&snapshot.trace),
        Ok(Input::Report(runs)) => runs.iter().for_each(assert_can_be_written),
        Ok(_) => {}
        Err(error) => assert_printable(&error),
    }
    if let Err(error) = PlanFile::read(bytes) {
        assert_printable(&error);
    }
});

fn assert_comes_back(trace: &Trace) {
    let mut out = Vec::new();
    write_trace(trace, &mut out).expect("memory takes all");
    assert!(matches!(Input::read(out.as_slice()), Ok(Input::Trace(again)) if again == *trace));
}

fn assert_can_be_written(run: &Run) {
    assert_eq!(run.usage.problem.check(), Ok(()));
    write_usage(&run.name, &run.notes, &run.usage, std::io::sink()).expect("what was read can be written");
}

fn assert_printable(error: &Error) {
    let message = error.to_string();
    assert!(!message.contains('\n'), "a message of several lines: {message:?}");
    assert!(!error.hint().is_empty(), "no hint for {message:?}");
}
