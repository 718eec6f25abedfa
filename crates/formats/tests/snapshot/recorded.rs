//! Memory snapshots of real runs, against what PyTorch's own counters said at the same moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use lowtide_core::{Action, Bytes, Trace};
use lowtide_formats::{Note, Snapshot};
use serde_json::Value;

use crate::pickle::reading::{Totals, assert_comes_back, categories, read, rows, shown, sites, totals};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The snapshots beside which lies what the allocator counted.
fn counted() -> Vec<(String, Snapshot, Value)> {
    let files = fs::read_dir(folder("snapshots")).expect("the folder is there");
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() >= 13, "{files:?}");
    let read_pair = |path: PathBuf| {
        let counters = serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("counters are JSON");
        let snapshot = read(&fs::read(path.with_extension("pickle.gz")).expect("it is there")).expect("it can be read");
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), snapshot, counters)
    };
    files.into_iter().map(read_pair).collect()
}

#[test]
fn real_snapshots_add_up_to_what_the_allocator_counted() {
    for (name, snapshot, counters) in counted() {
        let counter = |key: &str| counters[key].as_u64().expect("a number");
        let totals = totals(&snapshot.trace);
        assert_eq!(totals.active, counter("requested_bytes.all.current"), "{name}");
        assert_eq!(totals.reserved, counter("reserved_bytes.all.current"), "{name}");
        assert_eq!(totals.peak_reserved, counter("reserved_bytes.all.peak"), "{name}");
        if name == "state_only" {
            assert_eq!(snapshot.notes, [Note::NoHistory]);
        } else {
            assert_eq!(totals.peak_active, counter("requested_bytes.all.peak"), "{name}");
        }
        assert_comes_back(&snapshot.trace);
    }
}

#[test]
fn real_snapshots_raise_no_doubts() {
    for (name, snapshot, _) in counted() {
        let expected: &[&str] = match name.as_str() {
            "late" => &["the run had begun before the recording: 14 blocks (69.0 MiB) already there"],
            "ring" | "expandable_ring" => &[
                "the run had begun before the recording: 48 blocks (85.4 MiB) already there",
                "4 steps before the first recorded event left out",
            ],
            "state_only" => &["the snapshot has no history: the trace holds only what was there when it was taken"],
            _ => &[],
        };
        assert_eq!(shown(&snapshot.notes), expected, "{name}");
        let settings = if name.starts_with("expandable") { "expandable_segments:True" } else { "" };
        assert_eq!(snapshot.settings, settings, "{name}");
        assert!(snapshot.trace.events.iter().all(|event| event.device == Some(0)), "{name}");
    }
}

fn resnet18() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/resnet18.pickle.gz");
    fs::read(path).expect("it is bundled")
}

/// The numbers are those of an independent reading with Python's own `pickle`.
fn assert_is_resnet18(snapshot: &Snapshot) {
    let trace = &snapshot.trace;
    assert_eq!(shown(&snapshot.notes), [""; 0]);
    let expected = Totals {
        live: 194_807_776,
        peak_live: 1_274_638_455,
        active: 194_807_776,
        peak_active: 1_274_638_455,
        reserved: 2_847_932_416,
        peak_reserved: 2_847_932_416,
    };
    assert_eq!(totals(trace), expected);
    let expected = BTreeMap::from([("alloc", 1000), ("free", 811), ("done", 811), ("reserve", 54), ("step", 3)]);
    assert_eq!(rows(trace), expected);
    let streams: BTreeSet<u64> = trace.events.iter().map(|event| event.stream.0).collect();
    assert_eq!(streams.len(), 2);
}

#[test]
fn a_training_run_on_two_streams_is_read_to_the_byte() {
    assert_is_resnet18(&read(&resnet18()).expect("it can be read"));
}

#[test]
fn the_snapshot_of_the_data_set_is_the_bundled_one() {
    let Some(folder) = lowtide_testing::data("snapshots") else { return };
    let path = folder.join("resnet18_two_streams.pickle.gz");
    assert_is_resnet18(&read(&fs::read(path).expect("it is there")).expect("it can be read"));
}

#[test]
fn sites_begin_with_the_caller_of_the_allocator() {
    let snapshot = read(&resnet18()).expect("it can be read");
    let sites = sites(&snapshot.trace);
    assert!(sites.iter().all(|site| !site.contains("CapturedTraceback") && !site.contains("CachingAllocator::")));
    let ours = sites.iter().filter(|site| site.contains("snap.py:")).count();
    assert!(ours > 50, "{ours} of {}", sites.len());
    let categories = categories(&snapshot.trace);
    for category in ["parameter", "forward", "backward", "optimizer"] {
        assert!(categories.get(category).is_some_and(|&count| count > 10), "{categories:?}");
    }
}

#[test]
fn private_pools_and_lacks_of_memory_have_their_columns() {
    let [graph, lack] = ["graph", "out_of_memory"].map(|name| {
        read(&fs::read(folder("snapshots").join(format!("{name}.pickle.gz"))).expect("it is there"))
            .expect("it is read")
    });
    let pools: BTreeSet<&str> = graph.trace.extra[0].values.iter().map(|&value| graph.trace.text(value)).collect();
    assert_eq!((&*graph.trace.extra[0].name, pools), ("pool", BTreeSet::from(["", "1:0"])));
    let column = &lack.trace.extra[0];
    let row = lack.trace.events.iter().position(|event| matches!(event.action, Action::OutOfMemory { .. }));
    let row = row.expect("there is a lack of memory");
    assert_eq!(lack.trace.events[row].action, Action::OutOfMemory { bytes: Bytes::new(4 << 40) });
    assert_eq!((&*column.name, lack.trace.text(column.values[row])), ("device_free", "149534408704"));
}

#[test]
fn what_newer_versions_write_without_a_device_is_read() {
    for name in ["python_2_15.pickle", "native_2_15.pickle"] {
        let snapshot = read(&fs::read(folder("pickles").join(name)).expect("it is bundled")).expect("it can be read");
        assert_eq!((snapshot.notes, snapshot.trace), (vec![Note::NoHistory], Trace::default()), "{name}");
    }
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused() {
    let mut whole = Vec::new();
    let file = fs::File::open(folder("snapshots").join("state_only.pickle.gz")).expect("it is bundled");
    GzDecoder::new(file).read_to_end(&mut whole).expect("it is gzip");
    let small = fs::read(folder("pickles").join("small.pickle")).expect("it is bundled");
    for bytes in [whole, small] {
        assert!(read(&bytes).is_ok());
        for end in 1..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
