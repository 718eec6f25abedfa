//! The sources that the checks are run over.

#![expect(unsafe_code, reason = "reads and writes memory that a source committed")]

use lowtide_core::Bytes;
use lowtide_memory::cuda::{CudaDevice, CudaPinned};
use lowtide_memory::{Host, HostOptions, Pages, Placement, ScratchFile, Simulated, SimulatedOptions, Source};
use lowtide_testing::skip;

use crate::suite::Subject;

fn put(source: &dyn Source, address: u64, bytes: &[u8]) -> bool {
    if source.describe().host_visible {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the check has committed the addresses, and the source says that the processor may write there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        return true;
    }
    false
}

fn take(address: u64, count: usize) -> Vec<u8> {
    let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the check has committed the addresses and written to them before.
    unsafe { std::slice::from_raw_parts(start, count).to_vec() }
}

macro_rules! subject {
    ($($source:ty),*) => {
        $(impl Subject for $source {
            fn put(&self, address: u64, bytes: &[u8]) -> bool {
                put(self, address, bytes)
            }

            fn take(&self, address: u64, count: usize) -> Vec<u8> {
                take(address, count)
            }
        })*
    };
}

subject!(Host, Granted, ScratchFile, Simulated, CudaPinned);

impl Subject for CudaDevice {
    fn put(&self, address: u64, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.write(address, bytes).map(|()| true).unwrap()
    }

    fn take(&self, address: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.read(address, &mut bytes).unwrap();
        bytes
    }
}

pub fn host(options: &HostOptions) -> Box<dyn Subject> {
    Box::new(Host::new(options))
}

pub fn pages(pages: Pages) -> Box<dyn Subject> {
    host(&HostOptions { pages, ..HostOptions::default() })
}

/// Explicit huge pages; a skip where the system grants others, at once or when its pool runs out in the middle.
pub fn huge_pages(pages: Pages) -> Option<Box<dyn Subject>> {
    let granted = Granted { pages, source: Host::new(&HostOptions { pages, ..HostOptions::default() }) };
    granted.is_whole().then(|| Box::new(granted) as Box<dyn Subject>)
}

/// A source that skips where it did not get what was asked.
#[derive(Debug)]
struct Granted {
    pages: Pages,
    source: Host,
}

impl Granted {
    fn is_whole(&self) -> bool {
        self.source.describe().fallbacks.is_empty()
    }
}

impl Source for Granted {
    lowtide_memory::forward_to_source!(describe, reserve, release, commit, decommit, alias, relocate, calls, now);
    lowtide_memory::forward_to_source!(mark, passed, hold, wait, forget, drain);
}

impl Drop for Granted {
    fn drop(&mut self) {
        if !self.is_whole() {
            skip(&format!("the system has not enough {}", self.pages));
        }
    }
}

pub fn placement(placement: Placement) -> Box<dyn Subject> {
    host(&HostOptions { placement, ..HostOptions::default() })
}

pub fn scratch_file() -> Box<dyn Subject> {
    Box::new(ScratchFile::new(&std::env::temp_dir(), Bytes::new(64 << 10)).unwrap())
}

pub fn simulated(contents: bool) -> Box<dyn Subject> {
    Box::new(Simulated::new(SimulatedOptions { contents, ..SimulatedOptions::default() }).unwrap())
}

pub fn cuda_device() -> Option<Box<dyn Subject>> {
    there(CudaDevice::new(0, None, &[]))
}

pub fn cuda_pinned() -> Option<Box<dyn Subject>> {
    there(CudaPinned::new(0, &HostOptions::default()))
}

/// A source of a device; without a driver there is none, and the test is skipped. Anything else that is wrong fails it.
fn there<S: Subject + 'static>(source: Result<S, lowtide_memory::Error>) -> Option<Box<dyn Subject>> {
    match source {
        Ok(source) => Some(Box::new(source)),
        Err(lowtide_memory::Error::NoDriver { .. }) => {
            skip("there is no CUDA driver");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
