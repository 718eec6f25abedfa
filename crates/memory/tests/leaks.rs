//! A source that goes leaves the process as it was. One test alone: others would change what it counts.

#![allow(clippy::unwrap_used)]

use std::fs;

use lowtide_core::Bytes;
use lowtide_memory::{Host, HostOptions, Pages, ScratchFile, Simulated, SimulatedOptions, Source, Span};

fn mapped() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').next().unwrap().parse::<u64>().unwrap()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Leaves as much as possible behind.
fn make_a_mess(source: &dyn Source) {
    let granularity = source.describe().granularity.get();
    for _ in 0..8 {
        let range = source.reserve(Bytes::new(64 * granularity)).unwrap();
        let handle = Span::new(range.start, Bytes::new(2 * granularity));
        source.commit(handle).unwrap();
        source.commit(Span::new(handle.end(), Bytes::new(granularity))).unwrap();
        if source.describe().aliases {
            source.alias(handle, range.start + 32 * granularity).unwrap();
            source.decommit(handle).unwrap();
        }
        if source.describe().relocates {
            source.relocate(Span::new(handle.end(), Bytes::new(granularity)), range.start + 40 * granularity).unwrap();
        }
        source.mark(lowtide_core::StreamId(0)).unwrap();
    }
}

#[test]
fn a_source_that_goes_leaves_no_addresses_and_no_files() {
    let host = |pages, locked| HostOptions { pages, locked, ..HostOptions::default() };
    let sources: Vec<fn() -> Box<dyn Source>> = vec![
        || Box::new(Host::new(&HostOptions::default())),
        || Box::new(ScratchFile::new(&std::env::temp_dir(), Bytes::new(1 << 16)).unwrap()),
        || Box::new(Simulated::new(SimulatedOptions { contents: true, ..SimulatedOptions::default() }).unwrap()),
        || Box::new(Simulated::new(SimulatedOptions::default()).unwrap()),
    ];
    let of_pages = |pages, locked| -> Box<dyn Source> { Box::new(Host::new(&host(pages, locked))) };
    let round = || {
        for make in &sources {
            make_a_mess(make().as_ref());
        }
        for pages in [Pages::Base, Pages::Transparent, Pages::Huge2M, Pages::Huge1G] {
            make_a_mess(of_pages(pages, true).as_ref());
        }
    };
    round();
    let (before, files) = (mapped(), open_files());
    for _ in 0..5 {
        round();
    }
    assert_eq!(open_files(), files);
    // The allocator of the test itself may keep a little more; one leaked range of any source is larger.
    assert!(mapped() < before + 64, "{} pages were mapped and {} are now", before, mapped());
}
