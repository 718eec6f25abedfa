//! Tries the CUDA sources on this machine: the promises that every source keeps, what each driver call costs, and what
//! an alias of device memory is worth. `cargo run --release -p lowtide-memory --example cuda_probe`

#![allow(clippy::unwrap_used)]
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

#[path = "../tests/conformance/subjects.rs"]
#[expect(dead_code, reason = "the other sources are the tests'")]
mod subjects;
#[path = "../tests/conformance/suite.rs"]
mod suite;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::cuda::{self, CudaDevice, CudaPinned};
use lowtide_memory::{HostOptions, Source, Span};

macro_rules! run_checks {
    ($subject:expr; $($check:ident)*) => {
        $(
            if let Some(subject) = $subject {
                suite::$check(subject.as_ref());
                println!("  {}", stringify!($check).replace('_', " "));
            }
        )*
    };
}

fn main() -> ExitCode {
    match probe() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn probe() -> Result<(), Box<dyn Error>> {
    println!("devices: {}", cuda::device_count()?);
    let device = CudaDevice::new(0, None, &[])?;
    println!("{:#?}\nfree: {}", device.describe(), device.free_memory()?);
    println!("device memory:");
    checks!(run_checks subjects::cuda_device(););
    println!("pinned memory:");
    checks!(run_checks subjects::cuda_pinned(););
    aliases(&device)?;
    device_costs(&device)?;
    exhaustion(&device)?;
    marks(&device)?;
    pinned_costs()?;
    println!("all done");
    Ok(())
}

/// Whether a second address shows the same bytes, and keeps them when the first one goes.
fn aliases(device: &CudaDevice) -> Result<(), Box<dyn Error>> {
    let granule = device.describe().granularity;
    let range = device.reserve(Bytes::new(4 * granule.get()))?;
    let (first, second) = (Span::new(range.start, granule), Span::new(range.start + 2 * granule.get(), granule));
    device.commit(first)?;
    device.alias(first, second.start)?;
    device.write(first.start, b"low")?;
    let mut seen = [0; 3];
    device.read(second.start, &mut seen)?;
    println!("an alias shows the same bytes: {}", &seen == b"low");
    device.decommit(second)?;
    device.read(first.start, &mut seen)?;
    println!("the first address lives on when the alias goes: {}", &seen == b"low");
    device.alias(first, second.start)?;
    device.decommit(first)?;
    device.read(second.start, &mut seen)?;
    println!("the alias lives on when the first address goes: {}", &seen == b"low");
    let free = device.free_memory()?;
    device.decommit(second)?;
    println!("given back with the last address: {}", device.free_memory()?.saturating_sub(free));
    device.release(range)?;
    Ok(())
}

fn device_costs(device: &CudaDevice) -> Result<(), Box<dyn Error>> {
    let count = 128_u32;
    for size in [2_u64 << 20, 20 << 20, 256 << 20] {
        let bytes = Bytes::new(size);
        let range = device.reserve(Bytes::new(size * 2 * u64::from(count)))?;
        let place = |index: u32| Span::new(range.start + u64::from(index) * size, bytes);
        let each = |call: &dyn Fn(u32) -> Result<(), lowtide_memory::Error>| -> Result<f64, lowtide_memory::Error> {
            let begun = Instant::now();
            (0..count).try_for_each(call)?;
            Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(count))
        };
        let commit = each(&|index| device.commit(place(index)))?;
        let alias = each(&|index| device.alias(place(index), place(count + index).start))?;
        let unmap = each(&|index| device.decommit(place(count + index)))?;
        let relocate = each(&|index| device.relocate(place(index), place(count + index).start))?;
        let decommit = each(&|index| device.decommit(place(count + index)))?;
        println!(
            "{bytes} handles, µs each: create {:.1}, map with access {alias:.1}, unmap {unmap:.1}, give back {:.1}, \
             relocate {relocate:.1}",
            commit - alias,
            decommit - unmap
        );
        device.release(range)?;
    }
    println!("{:?}", device.calls());
    Ok(())
}

/// Takes more than there is, and looks whether it all comes back.
fn exhaustion(device: &CudaDevice) -> Result<(), Box<dyn Error>> {
    let piece = Bytes::new(4 << 30);
    let range = device.reserve(Bytes::new(1 << 40))?;
    let (free, mut taken) = (device.free_memory()?, 0);
    let error = loop {
        match device.commit(Span::new(range.start + taken * piece.get(), piece)) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    device.release(range)?;
    println!("after {taken} × {piece}: {error}; free before {free}, after {}", device.free_memory()?);
    Ok(())
}

fn marks(device: &CudaDevice) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let rounds = 10_000;
    for _ in 0..rounds {
        let mark = device.mark(StreamId(0))?;
        device.hold(StreamId(0), mark)?;
        device.passed(mark);
        device.forget(mark);
    }
    println!("mark, hold, ask and forget: {:.2} µs", begun.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    Ok(())
}

fn pinned_costs() -> Result<(), Box<dyn Error>> {
    let pinned = CudaPinned::new(0, &HostOptions::default())?;
    println!("{}", pinned.describe().name);
    for bytes in [2_u64 << 20, 64 << 20, 1 << 30].map(Bytes::new) {
        let span = pinned.reserve(bytes)?;
        let begun = Instant::now();
        pinned.commit(span)?;
        let committed = begun.elapsed();
        pinned.decommit(span)?;
        println!("{bytes}: commit {committed:.1?}, decommit {:.1?}", begun.elapsed().saturating_sub(committed));
        pinned.release(span)?;
    }
    Ok(())
}
