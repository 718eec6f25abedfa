//! CUDA sources over a driver that is made up, so that every one of its calls can fail.

#![expect(unsafe_code, reason = "plays the driver")]

mod fake;

use lowtide_core::{Bytes, StreamId};

use crate::cuda::driver::OUT_OF_MEMORY;
use crate::cuda::{CudaDevice, CudaPinned};
use crate::{Error, HostOptions, Source, Span};

use fake::GRANULE;

const UNKNOWN: i32 = 999;

fn granules(count: u64) -> Bytes {
    Bytes::new(count * GRANULE as u64)
}

fn part(of: Span, first: u64, count: u64) -> Span {
    Span::new(of.start + granules(first).get(), granules(count))
}

fn device() -> CudaDevice {
    CudaDevice::with_driver(fake::reset(), 0, None, &[]).unwrap()
}

fn leaks() -> Vec<String> {
    fake::with(|fake| fake.leaks())
}

/// Uses every call of a source, and gives nothing back by itself at the end.
fn use_everything(source: &dyn Source) -> Result<(), Error> {
    let can = source.describe();
    let span = source.reserve(granules(16))?;
    source.commit(part(span, 0, 2))?;
    source.commit(part(span, 2, 1))?;
    if can.aliases {
        source.alias(part(span, 0, 2), part(span, 8, 2).start)?;
    }
    if can.relocates {
        source.relocate(part(span, 2, 1), part(span, 4, 1).start)?;
        source.decommit(part(span, 4, 1))?;
    }
    let mark = source.mark(StreamId(0))?;
    source.hold(StreamId(7), mark)?;
    source.passed(mark);
    source.wait(mark)?;
    source.forget(mark);
    source.mark(StreamId(0))?;
    source.decommit(part(span, 0, 2))?;
    let other = source.reserve(granules(1))?;
    source.commit(other)?;
    source.release(other)
}

fn every_failure_is_clean(run: impl Fn() -> Result<(), Error>) {
    for code in [OUT_OF_MEMORY, UNKNOWN] {
        for number in 1.. {
            fake::reset();
            fake::with(|fake| fake.fails = Some((number, code, false)));
            let result = run();
            let made = fake::with(|fake| fake.calls);
            assert_eq!(leaks(), Vec::<String>::new(), "after call {number} of {made} failed: {result:?}");
            assert!(!matches!(result, Err(Error::BadSpan { .. })), "call {number}: {result:?}");
            if made < number {
                assert_eq!(result, Ok(()));
                assert!(number > 30, "only {number} calls");
                break;
            }
        }
    }
}

#[test]
fn a_device_leaks_nothing_whichever_call_fails() {
    every_failure_is_clean(|| {
        let driver = fake_functions();
        let device = CudaDevice::with_driver(driver, 0, None, &[])?;
        use_everything(&device)?;
        device.free_memory().map(|_| ())
    });
}

#[test]
fn pinned_memory_leaks_nothing_whichever_call_fails() {
    every_failure_is_clean(|| {
        let driver = fake_functions();
        use_everything(&CudaPinned::with_driver(driver, 0, &HostOptions::default())?)
    });
}

#[test]
fn memory_that_cannot_be_pinned_does_not_stay() {
    let pinned = CudaPinned::with_driver(fake::reset(), 0, &HostOptions::default()).unwrap();
    let span = pinned.reserve(granules(4)).unwrap();
    let before = fake::with(|fake| fake.calls);
    pinned.commit(span).unwrap();
    let made = fake::with(|fake| fake.calls) - before;
    pinned.decommit(span).unwrap();
    for number in 1..made {
        fake::with(|fake| fake.fails = Some((fake.calls + number, OUT_OF_MEMORY, false)));
        assert!(pinned.commit(span).is_err());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (start, end) = (format!("{:x}-", span.start), span.end());
        let line = maps.lines().find(|line| line.starts_with(&start));
        assert!(line.is_none_or(|line| line.contains("---p")), "up to {end:x} after call {number}: {line:?}");
    }
    pinned.commit(span).unwrap();
    assert_eq!(pinned.calls().committed, span.bytes);
}

#[test]
fn a_driver_that_dies_is_an_error_and_no_panic() {
    for number in 1..120 {
        fake::reset();
        fake::with(|fake| fake.fails = Some((number, UNKNOWN, true)));
        let device = CudaDevice::with_driver(fake_functions(), 0, None, &[]);
        if let Ok(device) = device {
            assert!(use_everything(&device).is_err() || number > 60);
        }
        assert_eq!(fake::with(|fake| fake.wrong.clone()), Vec::<&str>::new(), "call {number}");
    }
}

/// The functions alone: what the thread's driver was told to do stays.
fn fake_functions() -> &'static crate::cuda::driver::Driver {
    &fake::FUNCTIONS
}

#[test]
fn memory_that_is_used_up_comes_back() {
    let device = device();
    let span = device.reserve(granules(128)).unwrap();
    device.commit(part(span, 0, 60)).unwrap();
    assert_eq!(device.commit(part(span, 60, 5)), Err(Error::OutOfMemory { asked: granules(5) }));
    device.decommit(part(span, 0, 60)).unwrap();
    device.commit(part(span, 60, 5)).unwrap();
    assert_eq!(device.calls().committed, granules(5));
    assert_eq!(device.free_memory(), Ok(granules(59)));
}

#[test]
fn an_alias_shows_the_same_bytes_and_outlives_the_first_address() {
    let device = device();
    let span = device.reserve(granules(4)).unwrap();
    let (first, second) = (part(span, 0, 1), part(span, 2, 1));
    device.commit(first).unwrap();
    device.alias(first, second.start).unwrap();
    device.write(first.start + 5, b"tide").unwrap();
    device.decommit(first).unwrap();
    let mut seen = [0; 4];
    device.read(second.start + 5, &mut seen).unwrap();
    assert_eq!(&seen, b"tide");
    assert!(matches!(device.read(first.start, &mut seen), Err(Error::BadSpan { .. })));
    assert!(matches!(device.write(second.end() - 2, b"tide"), Err(Error::BadSpan { .. })));
    device.decommit(second).unwrap();
    assert!(fake::with(|fake| fake.handles.is_empty()));
}

#[test]
fn a_move_that_fails_half_way_is_undone() {
    let device = device();
    let span = device.reserve(granules(4)).unwrap();
    let (from, to) = (part(span, 0, 1), part(span, 2, 1));
    device.commit(from).unwrap();
    let before = fake::with(|fake| fake.calls);
    device.relocate(from, to.start).unwrap();
    let made = fake::with(|fake| fake.calls) - before;
    device.relocate(to, from.start).unwrap();
    for number in 1..=made {
        fake::with(|fake| fake.fails = Some((fake.calls + number, UNKNOWN, false)));
        if device.relocate(from, to.start).is_err() {
            assert_eq!(fake::with(|fake| fake.mapped.keys().copied().collect::<Vec<_>>()), [from.start], "{number}");
        } else {
            device.relocate(to, from.start).unwrap();
        }
    }
    assert_eq!(device.calls().committed, granules(1));
}

#[test]
fn events_are_used_again() {
    let device = device();
    for _ in 0..100 {
        let mark = device.mark(StreamId(3)).unwrap();
        assert!(!device.passed(mark));
        device.wait(mark).unwrap();
        assert!(device.passed(mark));
        device.forget(mark);
        assert!(device.passed(mark));
    }
    assert_eq!(fake::with(|fake| fake.events_made), 1);
    assert_eq!(device.calls().waits, 100);
}

#[test]
fn a_thread_gets_its_own_context_back() {
    let device = device();
    fake::with(|fake| fake.stack = vec![5]);
    let span = device.reserve(granules(1)).unwrap();
    assert_eq!(fake::with(|fake| (fake.stack.clone(), fake.pushes)), (vec![5], 1));
    fake::with(|fake| fake.stack = vec![40]);
    device.commit(span).unwrap();
    assert_eq!(fake::with(|fake| (fake.stack.clone(), fake.pushes)), (vec![40], 1));
}

#[test]
fn a_call_leaves_the_threads_rule_for_captures_as_it_was() {
    let device = device();
    fake::with(|fake| fake.capture = 1);
    let span = device.reserve(granules(1)).unwrap();
    device.commit(span).unwrap();
    device.drain().unwrap();
    assert_eq!(fake::with(|fake| fake.capture), 1);
}

#[test]
fn a_stream_that_is_captured_is_not_marked() {
    let device = device();
    fake::with(|fake| fake.captured.insert(7));
    assert!(matches!(device.mark(StreamId(7)), Err(Error::Refused { .. })));
    let mark = device.mark(StreamId(8)).unwrap();
    device.forget(mark);
}

#[test]
fn peers_get_access_and_those_that_cannot_are_refused() {
    let driver = fake::reset();
    fake::with(|fake| fake.devices = 3);
    let device = CudaDevice::with_driver(driver, 0, None, &[0, 1]).unwrap();
    let span = device.reserve(granules(1)).unwrap();
    device.commit(span).unwrap();
    assert_eq!(fake::with(|fake| fake.mapped[&span.start].2), 2);
    let refused = CudaDevice::with_driver(driver, 0, None, &[2]).unwrap_err();
    assert!(refused.to_string().contains("device 2 cannot reach"), "{refused}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let driver = fake::reset();
    let refused = CudaDevice::with_driver(driver, 1, None, &[]).unwrap_err();
    assert!(refused.to_string().contains("no device 1"), "{refused}");
    fake::with(|fake| fake.devices = 0);
    assert!(matches!(CudaDevice::with_driver(driver, 0, None, &[]), Err(Error::NoDriver { .. })));
    fake::with(|fake| fake.fails = Some((fake.calls + 1, 100, false)));
    assert!(matches!(driver.start(), Err(Error::NoDriver { .. })));
}

#[test]
fn a_granularity_is_the_devices_own_or_larger() {
    let driver = fake::reset();
    let make = |granularity| CudaDevice::with_driver(driver, 0, Some(Bytes::new(granularity)), &[]);
    assert_eq!(make(4 * GRANULE as u64).unwrap().describe().granularity, granules(4));
    for wrong in [GRANULE as u64 / 2, 3 * GRANULE as u64, 0] {
        assert!(matches!(make(wrong), Err(Error::Refused { .. })), "{wrong}");
    }
}

#[test]
fn what_the_driver_says_is_in_the_error() {
    let device = device();
    fake::with(|fake| fake.fails = Some((fake.calls + 1, UNKNOWN, true)));
    let error = device.reserve(granules(1)).unwrap_err();
    assert!(error.to_string().contains("a made-up reason (error 999)"), "{error}");
}
