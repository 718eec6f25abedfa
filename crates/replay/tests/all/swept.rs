//! Settings that are tried.

use std::ops::ControlFlow;

use lowtide_core::Trace;
use lowtide_replay::{ReplayError, ReplayOptions, Sweep, TorchOptions, sweep};

use crate::support::{MIB, limited, trace};

fn tried(run: &Trace, options: &ReplayOptions) -> Sweep {
    sweep(run, &TorchOptions::default(), options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Two blocks that are freed and leave no room for one as large as both.
fn scattered() -> Trace {
    trace("alloc,a,31457280,0 alloc,b,31457280,0 free,a,,0 free,b,,0 alloc,c,62914560,0 step,1,,0")
}

#[test]
fn the_best_setting_reserves_least_and_is_the_simplest_of_its_equals() {
    let swept = tried(&scattered(), &ReplayOptions::default());
    assert_eq!(
        (swept.base().options.clone(), swept.base().replay.peak_reserved.get()),
        (TorchOptions::default(), 120 * MIB)
    );
    assert!(swept.best().options.expandable_segments());
    assert!(swept.best().replay.peak_reserved.get() < 70 * MIB, "{:?}", swept.best());
    assert!(swept.settings.len() > 60 && !swept.is_stopped);
    let plain = tried(&trace("alloc,a,2097152,0 step,1,,0"), &ReplayOptions::default());
    let least = plain.settings.iter().map(|setting| setting.replay.peak_reserved).min().unwrap();
    assert_eq!(plain.best().replay.peak_reserved, least);
}

#[test]
fn a_setting_that_fits_is_better_than_one_that_does_not() {
    let run = trace("alloc,a,31457280,0 free,a,,0 alloc,c,12582912,0 alloc,d,41943040,0 step,1,,0");
    let swept = tried(&run, &limited(60 * MIB));
    assert!(swept.base().replay.out_of_memory.is_some());
    assert!(swept.best().replay.out_of_memory.is_none(), "{:?}", swept.best());
    assert!(swept.settings.iter().any(|setting| setting.options.garbage_collection_threshold().is_some()));
}

#[test]
fn a_sweep_that_is_stopped_has_the_best_so_far() {
    let mut looks = 0;
    let mut watch = |_: lowtide_replay::SweepProgress<'_>| {
        looks += 1;
        if looks > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let swept = sweep(&scattered(), &TorchOptions::default(), &ReplayOptions::default(), &mut watch).unwrap();
    assert!(swept.is_stopped);
    assert_eq!(swept.settings.len(), 3);
    let at_once =
        sweep(&scattered(), &TorchOptions::default(), &ReplayOptions::default(), &mut |_| ControlFlow::Break(()));
    assert_eq!(at_once, Err(ReplayError::Stopped));
}
