//! The sources that the checks are run over.

#![expect(clippy::unnecessary_wraps, reason = "not every machine has every source")]

use std::sync::Arc;

use super::named_streams::NamedStreams;
use lowtide_core::Bytes;
use lowtide_memory::cuda::{CudaDevice, CudaPinned};
use lowtide_memory::{Error, Host, HostOptions, Pages, ScratchFile, Simulated, SimulatedOptions, Source};
use lowtide_testing::skip;

const MIB: u64 = 1 << 20;

/// A source, and the device behind it whose clock a test can move.
pub struct Backing {
    pub source: Arc<dyn Source>,
    pub device: Option<Arc<Simulated>>,
    /// How many programs are played on it for each hundred: fewer where the system takes its time.
    pub percent: u32,
}

impl Backing {
    fn of(source: impl Source + 'static) -> Option<Self> {
        Some(Self { source: Arc::new(source), device: None, percent: 100 })
    }

    fn percent(self, percent: u32) -> Self {
        Self { percent, ..self }
    }
}

fn pages(pages: Pages) -> Option<Backing> {
    Backing::of(Host::new(&HostOptions { pages, ..HostOptions::default() }))
}

pub fn host_base_pages() -> Option<Backing> {
    pages(Pages::Base)
}

pub fn host_transparent_pages() -> Option<Backing> {
    pages(Pages::Transparent).map(|backing| backing.percent(12))
}

pub fn scratch_file() -> Option<Backing> {
    let file = ScratchFile::new(&std::env::temp_dir(), Bytes::new(MIB)).unwrap();
    Backing::of(file).map(|backing| backing.percent(6))
}

/// How a simulated device works.
pub type MakeOptions = fn() -> SimulatedOptions;

/// What is queued on a simulated device is done at once.
pub fn instant() -> SimulatedOptions {
    SimulatedOptions { lag_ns: 0, ..SimulatedOptions::default() }
}

/// What is queued on a simulated device takes a microsecond.
pub fn options() -> SimulatedOptions {
    SimulatedOptions { lag_ns: 1000, ..SimulatedOptions::default() }
}

fn device(options: SimulatedOptions) -> Option<Backing> {
    let percent = if options.contents { 100 } else { 800 };
    let device = Arc::new(Simulated::new(options).unwrap());
    Some(Backing { source: device.clone(), device: Some(device), percent })
}

pub fn simulated() -> Option<Backing> {
    device(options())
}

pub fn simulated_with_contents() -> Option<Backing> {
    device(SimulatedOptions { contents: true, ..options() })
}

pub fn simulated_with_a_capacity() -> Option<Backing> {
    device(SimulatedOptions { contents: true, capacity: Some(Bytes::new(128 * MIB)), ..options() })
}

pub fn simulated_with_large_grains() -> Option<Backing> {
    device(SimulatedOptions { granularity: Bytes::new(32 * MIB), capacity: Some(Bytes::new(1024 * MIB)), ..options() })
}

pub fn cuda_device() -> Option<Backing> {
    there(CudaDevice::new(0, None, &[]))
}

pub fn cuda_pinned() -> Option<Backing> {
    there(CudaPinned::new(0, &HostOptions::default()))
}

/// A source of a device; without a driver there is none, and the test is skipped. Anything else that is wrong fails it.
fn there<S: Source + 'static>(source: Result<S, Error>) -> Option<Backing> {
    match source {
        Ok(source) => Backing::of(NamedStreams(source)).map(|backing| backing.percent(6)),
        Err(Error::NoDriver { .. }) => {
            skip("there is no CUDA driver");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
