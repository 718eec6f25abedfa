//! What tests look at in a snapshot that was read.

use std::collections::{BTreeMap, BTreeSet};

use lowtide_core::{Action, BlockIndex, Trace};
use lowtide_formats::{Error, Input, Note, Snapshot, write_trace};

use super::{Item, Style};

pub fn read(bytes: &[u8]) -> Result<Snapshot, Error> {
    match Input::read(bytes)? {
        Input::Snapshot(snapshot) => Ok(snapshot),
        other => panic!("{} was read", other.what()),
    }
}

pub fn read_item(item: &Item) -> Snapshot {
    let written = [Style::Python(2), Style::Python(4), Style::Python(5), Style::Native];
    let [first, others @ ..] = written.map(|style| read(&super::pickle(item, style)).expect("it is a snapshot"));
    assert!(others.iter().all(|other| *other == first), "every writer writes the same");
    assert_comes_back(&first.trace);
    first
}

pub fn assert_comes_back(trace: &Trace) {
    let mut out = Vec::new();
    write_trace(trace, &mut out).expect("memory takes all");
    match Input::read(out.as_slice()) {
        Ok(Input::Trace(again)) => assert!(again == *trace, "the trace changed on its way through a file"),
        other => panic!("{other:?}"),
    }
}

/// Bytes at the end and at the highest: of blocks until the program lets go of them, until the device is done with
/// them, and of reserved memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub live: u64,
    pub peak_live: u64,
    pub active: u64,
    pub peak_active: u64,
    pub reserved: u64,
    pub peak_reserved: u64,
}

/// The most bytes of blocks at once as readers of traces count them: until the device is done with them where some row
/// says that, and otherwise until the program lets go of them.
pub fn peak(trace: &Trace) -> u64 {
    let totals = totals(trace);
    if trace.has_done_rows() { totals.peak_active } else { totals.peak_live }
}

pub fn totals(trace: &Trace) -> Totals {
    let mut totals = Totals::default();
    let bytes = |block: BlockIndex| trace.block(block).bytes.get();
    for event in &trace.events {
        match event.action {
            Action::Alloc { block } => {
                totals.live += bytes(block);
                totals.active += bytes(block);
            }
            Action::Free { block } => totals.live -= bytes(block),
            Action::Done { block } => totals.active -= bytes(block),
            Action::Reserve { range } => totals.reserved += trace.range(range).bytes.get(),
            Action::Release { range } => totals.reserved -= trace.range(range).bytes.get(),
            _ => {}
        }
        totals.peak_live = totals.peak_live.max(totals.live);
        totals.peak_active = totals.peak_active.max(totals.active);
        totals.peak_reserved = totals.peak_reserved.max(totals.reserved);
    }
    totals
}

pub fn rows(trace: &Trace) -> BTreeMap<&'static str, usize> {
    let mut rows = BTreeMap::new();
    for event in &trace.events {
        let kind = match event.action {
            Action::Alloc { .. } => "alloc",
            Action::Free { .. } => "free",
            Action::Done { .. } => "done",
            Action::Step { .. } => "step",
            Action::Reserve { .. } => "reserve",
            Action::Release { .. } => "release",
            Action::OutOfMemory { .. } => "oom",
            _ => "other",
        };
        *rows.entry(kind).or_default() += 1;
    }
    rows
}

pub fn categories(trace: &Trace) -> BTreeMap<&str, usize> {
    let mut categories = BTreeMap::new();
    for event in trace.events.iter().filter(|event| matches!(event.action, Action::Alloc { .. })) {
        *categories.entry(event.category.map_or("", |category| trace.text(category))).or_default() += 1;
    }
    categories
}

pub fn sites(trace: &Trace) -> BTreeSet<&str> {
    trace.events.iter().filter_map(|event| event.site).map(|site| trace.text(site)).collect()
}

pub fn shown(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}
