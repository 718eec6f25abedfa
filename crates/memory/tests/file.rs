//! Scratch files: their disk goes and comes back, and what cannot be is an error.

use lowtide_core::Bytes;
use lowtide_memory::{Error, ScratchFile, Source, Span};

const GRANULE: Bytes = Bytes::new(64 << 10);

#[test]
fn a_scratch_file_gives_its_disk_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = ScratchFile::new(folder.path(), GRANULE).unwrap();
    let empty = file.occupied().unwrap();
    let range = file.reserve(Bytes::new(64 << 20)).unwrap();
    file.commit(range).unwrap();
    if file.describe().fallbacks.is_empty() {
        assert!(file.occupied().unwrap() >= range.bytes);
        file.decommit(range).unwrap();
        assert!(file.occupied().unwrap() <= empty + GRANULE);
    }
}

#[test]
fn a_scratch_file_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = ScratchFile::new(folder.path(), GRANULE).unwrap();
    let range = file.reserve(GRANULE).unwrap();
    file.commit(range).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_or_a_granularity_that_is_none_is_an_error() {
    let error = ScratchFile::new("/nowhere/at/all".as_ref(), GRANULE).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    for granularity in [0, 100, 3 << 16] {
        assert!(ScratchFile::new(&std::env::temp_dir(), Bytes::new(granularity)).is_err());
    }
}

#[test]
fn a_disk_that_is_too_small_is_out_of_memory_and_stays_usable() {
    let file = ScratchFile::new(&std::env::temp_dir(), GRANULE).unwrap();
    if let Some(fallback) = file.describe().fallbacks.first() {
        return lowtide_testing::skip(&format!("a file here does not say what fits: {fallback}"));
    }
    let range = file.reserve(Bytes::new(1 << 45)).unwrap();
    assert_eq!(file.commit(range), Err(Error::OutOfMemory { asked: range.bytes }));
    let small = Span::new(range.start, GRANULE);
    file.commit(small).unwrap();
    assert_eq!(file.calls().committed, GRANULE);
}
