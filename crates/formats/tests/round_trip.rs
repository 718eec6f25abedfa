//! What is written is what was: for any problem, trace or plan, reading the written file gives it back.

use lowtide_core::{
    Align, Buffer, BufferIndex, Bytes, Class, Gap, Lifetime, Placement, Plan, Pool, PoolIndex, Problem, Trace, Window,
};
use lowtide_formats::{Input, PlanFile, write_lifetimes, write_plan, write_plan_csv, write_problem, write_trace};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Texts that a careless writer would break: commas, quotes, line breaks, spaces, other scripts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9_./:]{1,8}",
        1 => "[ ,\"\r\na-zäλ\u{1F30A}{}-]{1,8}",
    ]
}

fn gaps(lower: i64, size: u64) -> impl Strategy<Value = (Vec<Gap>, i64)> {
    let window = (0..=size).prop_flat_map(move |first| (Just(first), first..=size));
    vec((0..5_i64, 1..5_i64, option::of(window)), 0..3).prop_map(move |steps| {
        let mut end = lower;
        let gaps = steps
            .into_iter()
            .map(|(pause, length, window)| {
                let start = end + pause;
                end = start + length;
                let window = window.map(|(lower, upper)| Window { lower: Bytes::new(lower), upper: Bytes::new(upper) });
                Gap { lifetime: Lifetime { lower: start, upper: end }, window }
            })
            .collect();
        (gaps, end)
    })
}

fn buffer() -> impl Strategy<Value = Buffer> {
    let shape = (-50..50_i64, 0..1_000_u64)
        .prop_flat_map(|(lower, size)| (Just(lower), Just(size), gaps(lower, size), 0..20_i64));
    (shape, text(), 1..70_u64, option::of(0..9_u64), any::<bool>()).prop_map(
        |((lower, size, (gaps, end), tail), id, align, pin, persistent)| {
            let mut buffer = Buffer::new(id, Lifetime { lower, upper: end + tail }, Bytes::new(size));
            buffer.align = Align::new(align).expect("not zero");
            buffer.gaps = gaps;
            buffer.pin = pin.map(|multiple| Bytes::new(multiple * align));
            buffer.class = if persistent { Class::Persistent } else { Class::Transient };
            buffer
        },
    )
}

fn one_pool() -> impl Strategy<Value = Problem> {
    vec(buffer(), 0..12).prop_map(|mut buffers| {
        for (place, buffer) in buffers.iter_mut().enumerate() {
            buffer.id = format!("{}{place}", buffer.id).into();
        }
        Problem::new(buffers)
    })
}

/// Buffers in several pools, with relations among those that nothing else speaks against.
fn bound() -> impl Strategy<Value = Problem> {
    (one_pool(), vec((0..3_usize, any::<bool>()), 12), 1..4_usize, any::<bool>()).prop_map(
        |(mut problem, places, pools, spill)| {
            problem.pools = (0..pools).map(|place| Pool::unlimited(format!("pool \"{place}\""))).collect();
            problem.pools[0].capacity = Some(Bytes::new(1 << 20));
            if spill && pools > 1 {
                problem.pools[0].spill = Some(PoolIndex::new(pools - 1));
            }
            for (buffer, &(pool, _)) in problem.buffers.iter_mut().zip(&places) {
                buffer.pool = PoolIndex::new(pool % pools);
            }
            let chosen = problem.indices().zip(&places).filter(|(_, (_, chosen))| *chosen).map(|(index, _)| index);
            let plain = |index: &BufferIndex| {
                let buffer = problem.buffer(*index);
                buffer.pin.is_none() && buffer.pool.get() == 0 && buffer.class == Class::Transient
            };
            let members: Vec<BufferIndex> = chosen.filter(plain).take(4).collect();
            problem.may_share = members.windows(2).map(|pair| (pair[1], pair[0])).collect();
            problem.aliases = members.chunks(2).map(<[_]>::to_vec).collect();
            problem.contiguous = vec![members];
            problem
        },
    )
}

fn plan_for(problem: &Problem, offsets: &[u64]) -> Plan {
    let mut heights = vec![Bytes::ZERO; problem.pools.len()];
    let placements = problem
        .buffers
        .iter()
        .zip(offsets.iter().cycle())
        .map(|(buffer, &offset)| {
            let (pool, offset) = (buffer.pool, Bytes::new(offset));
            heights[pool.get()] = heights[pool.get()].max(offset + buffer.size);
            Placement { pool, offset }
        })
        .collect();
    Plan { placements, heights, lower_bound: Bytes::new(5), proved: true }
}

fn trace_text() -> impl Strategy<Value = String> {
    let place = option::of(0..=u64::MAX - 1_000);
    let row = (0..11_u8, 0..4_usize, 0..1_000_u64, option::of(0..3_u64), option::of(0..99_u64), text(), text(), place);
    vec(row, 0..40).prop_map(|rows| {
        let mut table = csv::Writer::from_writer(Vec::new());
        let mut write = |row: [&str; 9]| table.write_record(row).expect("written to memory");
        write(["site", "event", "id", "bytes", "Address", "stream", "time_ns", "Note", "category"]);
        let names = ["a", "b,\"1\"", "c\nd", "é"];
        let (mut live, mut owed, mut step) = ([false; 4], [0; 4], 0);
        for (kind, name, bytes, stream, time, site, note, place) in rows {
            let given = bytes.to_string();
            let (kind, id, bytes) = match kind {
                0..3 if !live[name] => {
                    live[name] = true;
                    ("alloc", names[name].to_owned(), &*given)
                }
                0..5 if live[name] => {
                    live[name] = false;
                    owed[name] += 1;
                    ("free", names[name].to_owned(), "")
                }
                5 if owed[name] > 0 => {
                    owed[name] -= 1;
                    ("done", names[name].to_owned(), "0")
                }
                6 if live[name] => ("record", names[name].to_owned(), ""),
                7 => {
                    step += 1 + bytes % 2;
                    ("step", step.to_string(), "")
                }
                8 => ("oom", String::new(), &*given),
                9 => ("reserve", String::new(), &*given),
                10 => ("release", String::new(), &*given),
                _ if bytes % 2 == 0 => ("event", note.clone(), ""),
                _ => ("wait", note.clone(), ""),
            };
            let [stream, time] = [stream, time].map(|number| number.map_or_else(String::new, |n| n.to_string()));
            let has_place = ["alloc", "reserve", "release"].contains(&kind);
            let place = place.filter(|_| has_place).map_or_else(String::new, |place| {
                if place % 2 == 0 { format!("{place:#x}") } else { place.to_string() }
            });
            let category = if note.len() > 4 { "activation" } else { "" };
            write([&site, kind, &id, bytes, &place, &stream, &time, &note, category]);
        }
        String::from_utf8(table.into_inner().expect("written to memory")).expect("texts are UTF-8")
    })
}

fn read_problem(bytes: &[u8]) -> Problem {
    match Input::read(bytes).expect("what was written is read") {
        Input::Lifetimes(lifetimes) => lifetimes.problem,
        Input::Problem(problem) => problem,
        other => panic!("{} was read", other.what()),
    }
}

fn read_trace(bytes: &[u8]) -> Trace {
    match Input::read(bytes).expect("what was written is read") {
        Input::Trace(trace) => trace,
        other => panic!("{} was read", other.what()),
    }
}

proptest! {
    #[test]
    fn lifetimes_come_back_from_csv(problem in one_pool()) {
        let mut out = Vec::new();
        write_lifetimes(&problem, &mut out).unwrap();
        prop_assert_eq!(read_problem(&out), problem);
    }

    #[test]
    fn problems_come_back_from_json(problem in bound()) {
        prop_assert_eq!(problem.check(), Ok(()));
        let mut out = Vec::new();
        write_problem(&problem, &mut out).unwrap();
        prop_assert_eq!(read_problem(&out), problem);
    }

    #[test]
    fn traces_come_back_from_csv(text in trace_text()) {
        let trace = read_trace(text.as_bytes());
        prop_assert_eq!(trace.extra.len(), 1);
        let mut out = Vec::new();
        write_trace(&trace, &mut out).unwrap();
        prop_assert_eq!(read_trace(&out), trace);
    }

    #[test]
    fn plans_come_back_from_json(problem in bound(), offsets in vec(0..5_000_u64, 12)) {
        let plan = plan_for(&problem, &offsets);
        let extra = json!({"solver": "best", "seconds": 0.5, "stopped": null, "more": {"x": [1]}});
        let extra: Map<String, Value> = extra.as_object().unwrap().clone();
        let mut out = Vec::new();
        write_plan(&problem, &plan, &extra, &mut out).unwrap();
        let file = PlanFile::read(out.as_slice()).unwrap();
        prop_assert_eq!(file.peak, Some(plan.peak()));
        prop_assert_eq!(file.pools.len(), problem.pools.len());
        prop_assert_eq!(file.place(&problem).unwrap(), plan);
    }

    #[test]
    fn plans_come_back_from_csv(problem in bound(), offsets in vec(0..5_000_u64, 12)) {
        let plan = plan_for(&problem, &offsets);
        let mut out = Vec::new();
        write_plan_csv(&problem, &plan, &mut out).unwrap();
        let read = PlanFile::read(out.as_slice()).unwrap().place(&problem).unwrap();
        prop_assert_eq!(read.placements, plan.placements);
        prop_assert_eq!(read.heights, plan.heights);
    }

    #[test]
    fn a_lifetimes_file_with_offsets_is_both_a_plan_and_pins(problem in one_pool(), offsets in vec(0..99_u64, 12)) {
        let mut problem = problem;
        for buffer in &mut problem.buffers {
            buffer.align = Align::ONE;
        }
        let mut written = Vec::new();
        write_lifetimes(&problem, &mut written).unwrap();
        let Ok(Input::Lifetimes(lifetimes)) = Input::read(written.as_slice()) else { panic!("not lifetimes") };
        let plan = plan_for(&problem, &offsets);
        let mut planned = Vec::new();
        lifetimes.write_plan(&plan, &mut planned).unwrap();
        prop_assert_eq!(PlanFile::read(planned.as_slice()).unwrap().place(&problem).unwrap().placements, &*plan.placements);
        let pins: Vec<_> = read_problem(&planned).buffers.iter().map(|buffer| buffer.pin).collect();
        let offsets: Vec<_> = plan.placements.iter().map(|placement| Some(placement.offset)).collect();
        prop_assert_eq!(pins, offsets);
    }
}

#[test]
fn an_extra_field_may_not_hide_one_with_a_meaning() {
    let problem = Problem::new(Vec::new());
    let extra = json!({"peak": 0}).as_object().unwrap().clone();
    let error = write_plan(&problem, &plan_for(&problem, &[0]), &extra, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "`peak` is a field of its own and cannot be an extra one");
}
