//! Whatever the bytes, reading ends in a value or an error: random ones, and valid files with damage done to them.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::Trace;
use lowtide_formats::{Input, PlanFile, Run, USAGE_ELEMENT};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const VALID: [&[u8]; 10] = [
    b"id,lower,upper,size,alignment,hint,gaps,offset,class,note\n\
     a,0,9,64,16,3,2-4 5-6@0:8,32,persistent,x\n\
     \"b,1\",-5,9,64,,,-4--2,,,\"say \"\"x\"\"\"\n",
    b"buffer,start,end,size\r\n0,0,4,8\r\n1,2,6,8\r\n",
    b"event,id,bytes,stream,time_ns,device,thread,category,site,note,address\n\
     reserve,,64,0,,,,,,,4096\nalloc,a,8,0,1,0,7,activation,f.py:1,x,0x1000\nrecord,a,,1,2,,,,,,\nevent,m,,1,,,,,,,\n\
     wait,m,,0,,,,,,,\nfree,a,8,0,3,,,,,,\ndone,a,,,4,,,,,,\noom,,99,0,,,,,,,\nstep,1,,,,,,,,,\nrelease,,32,,,,,,,,\n",
    br#"{"kind": "problem", "version": 1,
"buffers": [{"id": "a", "lower": 0, "upper": 9, "size": 64, "alignment": 16, "offset": 0, "class": "persistent"},
{"id": 7, "lower": 2, "upper": 9, "size": 64, "pool": "fast",
"gaps": [{"lower": 4, "upper": 6, "window": {"lower": 0, "upper": 16}}]}],
"aliases": [["a"]], "may_share": [["a", 7]], "contiguous": [["a"]],
"pools": [{"name": "fast", "capacity": 1024, "spill": "slow"}, {"name": "slow"}]}"#,
    br#"{"kind": "plan", "version": 1, "peak": 128, "lower_bound": 128, "proved": true, "solver": "x",
"pools": [{"name": "main", "capacity": 1024, "height": 128}],
"buffers": [{"id": "a", "offset": 0, "size": 64}, {"id": "b", "pool": "main", "offset": 64}]}"#,
    b"id,pool,offset\na,main,0\nb,,64\n",
    include_bytes!("pickles/small.pickle"),
    include_bytes!("pickles/python_2_15.pickle"),
    include_bytes!("pickles/native_2_15.pickle"),
    // Its usage is not compressed, so that damage gets inside.
    include_bytes!("pages/small.html"),
];

/// Pieces that mean something to some reader.
const PIECES: [&[u8]; 30] = [
    b",",
    b"\n",
    b"\"",
    b"-",
    b"-1",
    b"18446744073709551616",
    b"9223372036854775807",
    b"\xef\xbb\xbf",
    b"{",
    b"[",
    b"null",
    b"1e400",
    b"@:",
    b"\r",
    b"\0",
    b"\x1f\xef\xbf\xbd",
    b"(",
    b"]",
    b"}",
    b"e",
    b"u",
    b"a",
    b"s",
    b"h\x05",
    b"\x94",
    b"\x86",
    b"N",
    b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x8c\x06blocks",
    b"cos\nsystem\n",
];

#[derive(Clone, Debug)]
enum Damage {
    Insert(Index, &'static [u8]),
    Overwrite(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        4 => (place(), select(&PIECES)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        2 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        2 => (place(), 1..20_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        2 => (place(), 1..60_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        1 => place().prop_map(Damage::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let span = |at: &Index, count: usize| {
        let start = at.index(length);
        start..(start + count).min(length)
    };
    match damage {
        Damage::Insert(at, piece) => {
            let at = at.index(length);
            bytes.splice(at..at, piece.iter().copied());
        }
        Damage::Overwrite(at, byte) => bytes[at.index(length)] = *byte,
        Damage::Remove(at, count) => drop(bytes.drain(span(at, *count))),
        Damage::Repeat(at, count) => bytes.extend_from_within(span(at, *count)),
        Damage::Cut(at) => bytes.truncate(at.index(length)),
    }
}

/// Reads as everything; errors must be fit to print, and what was read must be sound.
fn read_every_way(bytes: &[u8]) {
    let plan = PlanFile::read(bytes);
    match Input::read(bytes) {
        Ok(Input::Lifetimes(lifetimes)) => {
            assert_eq!(lifetimes.problem.check(), Ok(()));
            if let Ok(Ok(plan)) = plan.as_ref().map(|plan| plan.place(&lifetimes.problem)) {
                lifetimes.write_plan(&plan, std::io::sink()).expect("a sink takes all");
            }
        }
        Ok(Input::Problem(problem)) => assert_eq!(problem.check(), Ok(())),
        Ok(Input::Trace(trace)) => assert_comes_back(&trace),
        Ok(Input::Snapshot(snapshot)) => {
            assert_comes_back(&snapshot.trace);
            assert!(snapshot.notes.iter().all(|note| !note.to_string().contains('\n')));
        }
        Ok(Input::Report(runs)) => runs.iter().for_each(assert_carries_over),
        Ok(_) => {}
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n') && message.chars().count() < 500, "{message}");
            assert!(!error.hint().is_empty());
        }
    }
}

fn assert_comes_back(trace: &Trace) {
    let mut out = Vec::new();
    lowtide_formats::write_trace(trace, &mut out).expect("memory takes all");
    assert!(matches!(Input::read(out.as_slice()), Ok(Input::Trace(again)) if again == *trace));
}

/// What was read from a report can be written and read again.
fn assert_carries_over(run: &Run) {
    assert_eq!(run.usage.problem.check(), Ok(()));
    let mut out = Vec::new();
    lowtide_formats::write_usage(&run.name, &run.notes, &run.usage, &mut out).expect("memory takes all");
    let [open, close] = USAGE_ELEMENT;
    let page = format!("<html>{open}{}{close}</html>", STANDARD.encode(out));
    assert!(matches!(Input::read(page.as_bytes()), Ok(Input::Report(again)) if again == [run.clone()]));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        read_every_way(&bytes);
        read_every_way(&[b"\x1f\x8b", &*bytes].concat());
        read_every_way(&[b"{\"kind\":", &*bytes].concat());
        read_every_way(&[b"id,lower,upper,size\n", &*bytes].concat());
        read_every_way(&[b"\x80\x04", &*bytes].concat());
    }

    #[test]
    fn damaged_files_never_panic(file in select(&VALID), damages in vec(damage(), 1..6)) {
        let mut bytes = file.to_vec();
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        read_every_way(&bytes);
    }

    #[test]
    fn damaged_gzip_never_panics(file in select(&VALID), damages in vec(damage(), 1..4)) {
        let mut bytes = gzip(file);
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        read_every_way(&bytes);
    }
}

#[test]
fn the_files_that_are_damaged_are_valid_before() {
    for (place, file) in VALID.iter().enumerate() {
        let read = if place == 5 { PlanFile::read(*file).map(Input::Plan) } else { Input::read(gzip(file).as_slice()) };
        assert!(read.is_ok(), "{place}: {read:?}");
    }
}
