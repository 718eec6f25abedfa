//! [`Trace`] to trace CSV: the columns that some event fills, then those without a meaning of their own.

use std::io::{BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::{Action, Event, StreamId, TextIndex, Trace};

use crate::Error;

/// Writes `trace` as trace CSV; reading it gives the same trace again.
///
/// Optional columns are written where some event has them. The bytes and the address of a block stand in its `alloc`
/// row only.
pub fn write_trace(trace: &Trace, out: impl Write) -> Result<(), Error> {
    write(trace, out).map_err(Error::writing)
}

/// As [`write_trace`], compressed: sites that are long and come again take hardly any room.
pub fn write_trace_gzip(trace: &Trace, out: impl Write) -> Result<(), Error> {
    let mut packed = GzEncoder::new(BufWriter::new(out), Compression::default());
    write(trace, &mut packed).and_then(|()| packed.finish()?.flush()).map_err(Error::writing)
}

type OptionalColumn = (&'static str, fn(&Trace, &Event) -> Option<String>);

const OPTIONAL: [OptionalColumn; 6] = [
    ("time_ns", |_, event| event.time_ns.map(|time| time.to_string())),
    ("device", |_, event| event.device.map(|device| device.to_string())),
    ("thread", |_, event| event.thread.map(|thread| thread.to_string())),
    ("category", |trace, event| owned_text(trace, event.category)),
    ("site", |trace, event| owned_text(trace, event.site)),
    ("address", |trace, event| address(trace, event.action).map(|address| address.to_string())),
];

fn owned_text(trace: &Trace, text: Option<TextIndex>) -> Option<String> {
    text.map(|text| trace.text(text).to_owned())
}

fn address(trace: &Trace, action: Action) -> Option<u64> {
    match action {
        Action::Alloc { block } => trace.block(block).address,
        Action::Reserve { range } | Action::Release { range } => trace.range(range).address,
        _ => None,
    }
}

fn write(trace: &Trace, out: impl Write) -> std::io::Result<()> {
    let filled = |event: &Event| {
        let Event { action, time_ns, device, thread, category, site, .. } = event;
        let has_address = address(trace, *action).is_some();
        [time_ns.is_some(), device.is_some(), thread.is_some(), category.is_some(), site.is_some(), has_address]
    };
    let mut is_filled = [false; OPTIONAL.len()];
    for event in &trace.events {
        for (so_far, here) in is_filled.iter_mut().zip(filled(event)) {
            *so_far |= here;
        }
    }
    let optional: Vec<OptionalColumn> =
        OPTIONAL.into_iter().zip(is_filled).filter_map(|(column, is_filled)| is_filled.then_some(column)).collect();

    let mut table = csv::Writer::from_writer(BufWriter::new(out));
    let header = ["event", "id", "bytes", "stream"].into_iter();
    let header =
        header.chain(optional.iter().map(|&(name, _)| name)).chain(trace.extra.iter().map(|extra| &*extra.name));
    table.write_record(header)?;
    for (row, event) in trace.events.iter().enumerate() {
        let Columns { event: kind, id, bytes } = columns(trace, event.action);
        table.write_field(kind)?;
        table.write_field(id)?;
        table.write_field(bytes.map_or_else(String::new, |bytes| bytes.to_string()))?;
        table.write_field(stream(event))?;
        for (_, value) in &optional {
            table.write_field(value(trace, event).unwrap_or_default())?;
        }
        for extra in &trace.extra {
            table.write_field(trace.text(extra.values[row]))?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

struct Columns {
    event: &'static str,
    id: String,
    bytes: Option<u64>,
}

fn columns(trace: &Trace, action: Action) -> Columns {
    let name = |block| trace.text(trace.block(block).name).to_owned();
    let (event, id, bytes) = match action {
        Action::Alloc { block } => ("alloc", name(block), Some(trace.block(block).bytes.get())),
        Action::Free { block } => ("free", name(block), None),
        Action::Done { block } => ("done", name(block), None),
        Action::Record { block } => ("record", name(block), None),
        Action::Step { step } => ("step", step.to_string(), None),
        Action::Signal { mark } => ("event", trace.text(mark).to_owned(), None),
        Action::Wait { mark } => ("wait", trace.text(mark).to_owned(), None),
        Action::Reserve { range } => ("reserve", String::new(), Some(trace.range(range).bytes.get())),
        Action::Release { range } => ("release", String::new(), Some(trace.range(range).bytes.get())),
        Action::OutOfMemory { bytes } => ("oom", String::new(), Some(bytes.get())),
    };
    Columns { event, id, bytes }
}

/// Empty for the first stream where the row is about a block or step rather than about a stream.
fn stream(event: &Event) -> String {
    let about_a_stream = !matches!(event.action, Action::Free { .. } | Action::Done { .. } | Action::Step { .. });
    if about_a_stream || event.stream != StreamId::default() { event.stream.0.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use lowtide_core::BlockIndex;

    use super::*;
    use crate::Input;

    fn read(text: &str) -> Result<Trace, Error> {
        match Input::read(text.as_bytes())? {
            Input::Trace(trace) => Ok(trace),
            other => panic!("{other:?}"),
        }
    }

    fn written(trace: &Trace) -> String {
        let mut out = Vec::new();
        write_trace(trace, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_row_is_read_and_written_again() {
        let text = "event,id,bytes,stream,time_ns,device,site,op\n\
                    alloc,a,8,0,1,0,\"f.py:1, x\",conv\n\
                    record,a,,3,2,,,\n\
                    event,mark,,3,,,,\n\
                    wait,mark,,0,,,,\n\
                    oom,,99,0,,,,\n\
                    free,a,,,5,,,relu\n\
                    alloc,a,16,1,6,,,\n\
                    done,a,,,7,,,\n\
                    step,1,,,,,,\n";
        let trace = read(text).unwrap();
        assert_eq!(trace.blocks.len(), 2, "a name that is used again is a new block");
        assert!(trace.has_done_rows());
        assert_eq!(written(&trace), text);
    }

    #[test]
    fn addresses_stand_in_the_rows_that_begin_or_end_memory() {
        let text = "event,id,bytes,stream,address\n\
                    reserve,,2097152,0,140183905239040\n\
                    alloc,a,512,0,140183905239040\n\
                    reserve,,64,0,\n\
                    alloc,b,8,0,\n\
                    free,a,,,\n\
                    release,,1048576,0,140183906287616\n";
        let trace = read(text).unwrap();
        assert_eq!(trace.block(BlockIndex(0)).address, Some(140_183_905_239_040));
        assert_eq!(trace.ranges.len(), 3);
        assert_eq!(written(&trace), text);
        let hex = "event,id,bytes,address\nalloc,a,8,0x10\nfree,a,8,16\n";
        assert_eq!(written(&read(hex).unwrap()), "event,id,bytes,stream,address\nalloc,a,8,0,16\nfree,a,,,\n");
    }

    #[test]
    fn columns_may_be_few_and_in_any_order() {
        let trace = read("bytes,Event,id\n8,alloc,x\n8,free,x\n0,step,1\n").unwrap();
        assert_eq!(written(&trace), "event,id,bytes,stream\nalloc,x,8,0\nfree,x,,\nstep,1,,\n");
    }

    #[test]
    fn rows_that_make_no_sense_are_refused_where_they_stand() {
        for (rows, message) in [
            ("done,a,,", "`done` of `a`, which is not allocated"),
            ("record,a,,1", "`record` of `a`, which is not allocated"),
            ("alloc,a,1,\ndone,a,,", "`done` of `a`, which was not freed"),
            ("alloc,a,1,\nfree,a,2,", "`free` has 2 bytes, which is not what its block has"),
            ("step,1,,\nstep,1,,", "step 1 does not come after step 1"),
            ("step,0,,", "there is no step 0; steps count from 1"),
            ("alloc,a,,", "`bytes` has no value"),
            ("alloc,,1,", "`id` has no value"),
            ("alloc,a,-1,", "`bytes` is -1, which is not between 0 and 2^64-1"),
            ("alloc,a,1,x", "`stream` is `x`, which is not a whole number"),
            ("reserve,a,1,", "`reserve` has the id `a`, which is not its own"),
            ("release,,,", "`bytes` has no value"),
        ] {
            let error = read(&format!("event,id,bytes,stream\n{rows}\n")).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!(error.row, Some(1 + rows.lines().count() as u64), "{rows}");
        }
    }
}
