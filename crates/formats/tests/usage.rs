//! Usage files and reports: numbers at both ends of their types come back, and small files that stand for much more than
//! they hold are refused.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::random::Random;
use lowtide_core::{
    Buffer, Bytes, Clock, Label, Layout, Lifetime, Origin, Placement, Plan, PoolIndex, Problem, StepEnd, StepIndex,
    StreamId, Usage,
};
use lowtide_formats::{Error, ErrorKind, Input, Run, USAGE_ELEMENT, limits, write_usage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A page with these usage files.
fn page(files: &[Vec<u8>]) -> String {
    let [open, close] = USAGE_ELEMENT;
    let mut page = "<!doctype html>\n<html>".to_owned();
    for file in files {
        write!(page, "{open}{}{close}", STANDARD.encode(file)).expect("text takes all");
    }
    page + "</html>\n"
}

fn read(files: &[Vec<u8>]) -> Result<Vec<Run>, Error> {
    match Input::read(page(files).as_bytes())? {
        Input::Report(runs) => Ok(runs),
        other => panic!("{} was read", other.what()),
    }
}

fn written(run: &Run) -> Vec<u8> {
    let mut out = Vec::new();
    write_usage(&run.name, &run.notes, &run.usage, &mut out).expect("memory takes all");
    out
}

/// A usage file of this header and these columns.
fn packed(header: &str, columns: &[&[u8]]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(b"lowtide usage 1\n").expect("memory takes all");
    out.write_all(&(header.len() as u32).to_le_bytes()).expect("memory takes all");
    for part in [&[header.as_bytes()], columns].concat() {
        out.write_all(part).expect("memory takes all");
    }
    out.finish().expect("memory takes all")
}

/// One buffer of 8 bytes, with what is said of it beside that; nothing but digits and signs in the columns.
fn one_buffer(more: &str, columns: &[(&str, &[u8])]) -> Result<Vec<Run>, Error> {
    let usual: [(&str, &[u8]); 3] = [("lower", &[0]), ("length", &[2]), ("size", &[8])];
    let columns: Vec<(&str, &[u8])> = usual.into_iter().chain(columns.iter().copied()).collect();
    let names: Vec<String> = columns.iter().map(|(name, bytes)| format!("[\"{name}\",{}]", bytes.len())).collect();
    let header = format!(
        r#"{{"kind":"usage","version":1,"name":"x","buffers":1,"pools":[{{"name":"main"}}]{more},"columns":[{}]}}"#,
        names.join(",")
    );
    let bytes: Vec<&[u8]> = columns.iter().map(|(_, bytes)| *bytes).collect();
    read(&[packed(&header, &bytes)])
}

fn refusal(more: &str, columns: &[(&str, &[u8])]) -> String {
    one_buffer(more, columns).expect_err("it is refused").to_string()
}

/// Numbers near both ends and in between.
fn far() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), select(&[i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX][..])]
}

fn large() -> impl Strategy<Value = u64> {
    prop_oneof![far().prop_map(|number| number as u64), (0..1000_u64).prop_map(|number| number << 20)]
}

fn run() -> impl Strategy<Value = Run> {
    let buffer = (far(), far(), 0..1_u64 << 58, large(), proptest::option::of(any::<u32>()));
    let scale = select(&[1, 8, 512][..]);
    let times = (vec(large(), 0..6), vec(far(), 0..4), vec((far(), large()), 0..4));
    (vec(buffer, 0..8), scale, times, far(), large()).prop_map(|(buffers, scale, times, first, stream)| {
        let (mut readings, mut steps, mut reserved) = times;
        readings.sort_unstable();
        steps.sort_unstable();
        reserved.sort_by_key(|held| held.0);
        let mut usage = Usage::of(Problem::new(Vec::new()));
        let mut plan = Plan { placements: Vec::new(), heights: Vec::new(), lower_bound: Bytes::ZERO, proved: false };
        let mut height = 0;
        for (place, (a, b, size, offset, freed)) in buffers.into_iter().enumerate() {
            let life = Lifetime { lower: a.min(b), upper: a.max(b) };
            let size = size / scale * scale;
            let offset = offset.min(u64::MAX - size);
            usage.problem.buffers.push(Buffer::new(place.to_string(), life, Bytes::new(size)));
            let freed = freed.and_then(|after| life.lower.checked_add(i64::from(after)));
            let freed = freed.filter(|&freed| freed < life.upper);
            usage.labels.push(Label { stream: StreamId(stream), freed, ..Label::default() });
            plan.placements.push(Placement { pool: PoolIndex::new(0), offset: Bytes::new(offset) });
            height = height.max(offset + size);
        }
        plan.heights = vec![Bytes::new(height)];
        usage.clock = Some(Clock { first, every: 1, readings });
        usage.steps = (0..).zip(steps).map(|(step, at)| StepEnd { step: StepIndex(u64::MAX - step), at }).collect();
        usage.reserved = reserved.into_iter().map(|(time, bytes)| (time, Bytes::new(bytes))).collect();
        usage.layouts = vec![Layout { origin: Origin::Recorded, plan }];
        Run { name: "far".to_owned(), notes: vec!["a note".to_owned()], usage }
    })
}

proptest! {
    #[test]
    fn numbers_at_both_ends_come_back(run in run()) {
        let runs = vec![run.clone(), run];
        prop_assert_eq!(read(&runs.iter().map(written).collect::<Vec<_>>()).unwrap(), runs);
    }
}

#[test]
fn numbers_in_a_common_unit_take_less_room() {
    let mut random = Random::new(1);
    let life = Lifetime { lower: 0, upper: 1 };
    let mut usage = |unit: u64| {
        let buffers =
            (0..10_000).map(|place| Buffer::new(place.to_string(), life, Bytes::new(random.below(1 << 24) * unit)));
        let usage = Usage::of(Problem::new(buffers.collect()));
        let run = Run { name: String::new(), notes: Vec::new(), usage };
        let file = written(&run);
        assert_eq!(read(std::slice::from_ref(&file)).unwrap(), [run]);
        file.len()
    };
    let (plain, multiples) = (usage(1), usage(512));
    assert!(multiples < plain + plain / 20, "{multiples} bytes instead of {plain}");
}

#[test]
fn relations_that_bind_nothing_are_left_out() {
    let mut usage = Usage::of(Problem::new(vec![Buffer::new("a", Lifetime { lower: 0, upper: 1 }, Bytes::new(8))]));
    usage.problem.aliases = vec![vec![lowtide_core::BufferIndex::new(0)]];
    let mut run = Run { name: String::new(), notes: Vec::new(), usage };
    let read = read(&[written(&run)]).unwrap();
    run.usage.problem.aliases.clear();
    assert_eq!(read, [run]);
}

#[test]
fn columns_and_fields_that_are_not_known_are_passed_over() {
    assert_eq!(one_buffer(r#","weather":"fair""#, &[("mood", b"good")]).unwrap().len(), 1);
}

#[test]
fn a_layout_that_does_not_hold_its_buffers_is_refused() {
    let layout = |origin: &str, height: u64, bound: u64| {
        format!(r#","layouts":[{{"origin":"{origin}","heights":[{height}],"lower_bound":{bound},"proved":false}}]"#)
    };
    for origin in ["as recorded", "no reuse", "greedy", "planned"] {
        let read = |height, bound| one_buffer(&layout(origin, height, bound), &[("offset 0", &[2 * 4])]);
        assert!(read(12, 12).is_ok());
        assert!(read(u64::MAX, 12).is_ok());
        assert!(matches!(read(11, 0), Err(Error { kind: ErrorKind::BadUsage(_), .. })));
        assert!(matches!(read(12, 13), Err(Error { kind: ErrorKind::BadUsage(_), .. })));
    }
    let one = layout("greedy", 8, 8);
    let many = one.replace(
        ":[{",
        &format!(":[{}{{", "{\"origin\":\"\",\"heights\":[],\"lower_bound\":0,\"proved\":false},".repeat(8)),
    );
    assert!(refusal(&many, &[]).contains("more layouts"));
}

#[test]
fn what_stands_for_more_than_it_holds_is_refused() {
    assert!(refusal(r#","aliases":[[]]"#, &[]).contains("fewer than two"));
    assert!(refusal(r#","contiguous":[[0]]"#, &[]).contains("fewer than two"));
    assert!(refusal(r#","clock":[0,18446744073709551615]"#, &[("clock", &[0])]).contains("more than"));
    assert!(refusal(r#","clock":[0,2]"#, &[("clock", &[0])]).contains("ends too early"));
    assert!(refusal(r#","units":{"size":0}"#, &[]).contains("unit"));
    assert!(refusal(r#","units":{"size":18446744073709551615}"#, &[]).contains("64 bits"));
    let header = |buffers: u64| {
        format!(r#"{{"kind":"usage","version":1,"name":"x","buffers":{buffers},"pools":[],"columns":[["lower",3]]}}"#)
    };
    let error = read(&[packed(&header(4), &[&[0; 3]])]).unwrap_err();
    assert!(error.to_string().contains("`lower` ends too early"), "{error}");
    let error = read(&[packed(&header(limits::BUFFERS + 1), &[&[0; 3]])]).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TooManyRows { limit: limits::BUFFERS }), "{error}");
}

#[test]
fn ids_that_grow_on_what_they_have_in_common_are_left_in_time() {
    // Each id is the one before and a letter more.
    let count = 1_u64 << 20;
    let mut ids = vec![0, 0];
    for common in 0..count - 1 {
        let mut rest = common;
        while rest >= 0x80 {
            ids.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        ids.extend([rest as u8, 1, b'x']);
    }
    let column = vec![1; count as usize];
    let header = format!(
        r#"{{"kind":"usage","version":1,"name":"x","buffers":{count},"pools":[{{"name":"main"}}],
"columns":[["id",{}],["lower",{count}],["length",{count}],["size",{count}]]}}"#,
        ids.len()
    );
    let error = read(&[packed(&header, &[&ids, &column, &column, &column])]).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::FileTooLong { .. }), "{error}");
}

#[test]
fn a_third_run_is_refused_before_any_is_read() {
    let error = read(&[vec![0], vec![1], vec![2]]).unwrap_err();
    assert!(error.to_string().contains("more than 2 runs"), "{error}");
}
