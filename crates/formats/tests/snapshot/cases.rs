//! What real snapshots rarely have, each in a snapshot made for it, as every writer writes it.

use std::collections::{BTreeMap, BTreeSet};

use lowtide_core::{Action, StepIndex};
use lowtide_formats::limits;

use crate::pickle;
use crate::pickle::reading::{Totals, peak, read_item, rows, shown, sites, totals};
use crate::pickle::{Item, annotation, block, event, frame, no_frames, segment, snapshot};

/// A stack of one frame.
fn stack(name: &str, file: &str, line: u64) -> Item {
    Item::List(vec![frame(name, file, line)])
}

#[test]
fn frames_become_a_site_without_the_recorder() {
    let frames = Item::List(vec![
        frame("torch::unwind::unwind()", "??", 0),
        frame("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
        frame("c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)", "CUDACachingAllocator.cpp", 0),
        frame("at::empty(int; int)", "??", 0),
        frame("helper", "tools;more.py", 12),
        frame("", "", 0),
        frame("c10::cuda::CUDACachingAllocator::Native::free(void*)", "", 0),
    ]);
    let snapshot = read_item(&snapshot(vec![], vec![vec![event("alloc", 512, 8, 0, 5, frames)]], vec![]));
    let expected = "at::empty(int, int); tools,more.py:12 helper; c10::cuda::CUDACachingAllocator::Native::free(void*)";
    assert_eq!(sites(&snapshot.trace), BTreeSet::from([expected]));
}

#[test]
fn categories_follow_from_files_and_names() {
    let module = "site-packages/torch/nn/modules/module.py";
    let stacks = [
        ("optimizer", stack("_init_group", "site-packages/torch/optim/adam.py", 7)),
        ("optimizer", stack("step", "deepspeed/runtime/bf16_optimizer.py", 7)),
        ("optimizer", stack("_init_group", "C:\\lib\\torch\\optim\\adam.py", 7)),
        ("backward", stack("torch::autograd::Engine::evaluate_function(int)", "??", 0)),
        ("backward", stack("backward", "site-packages/torch/_tensor.py", 7)),
        ("parameter", stack("_apply", module, 7)),
        ("parameter", stack("reset_parameters", "mine.py", 7)),
        ("forward", stack("_wrapped_call_impl", module, 7)),
        ("forward", stack("forward", "mine.py", 7)),
        ("", stack("step", "dance.py", 7)),
        ("", stack("step", "optimal/dance.py", 7)),
        (
            "workspace",
            Item::List(vec![frame("at::cuda::setWorkspaceForHandle(int)", "??", 0), frame("forward", "a.py", 1)]),
        ),
        (
            "workspace",
            Item::List(vec![frame("forward", "a.py", 1), frame("at::cuda::getCUDABlasLtWorkspace()", "??", 0)]),
        ),
        // The innermost frame that tells something decides.
        (
            "forward",
            Item::List(vec![
                frame("forward", "mine.py", 9),
                frame("_call_impl", module, 9),
                frame("closure", "mine.py", 9),
                frame("step", "site-packages/torch/optim/adam.py", 9),
            ]),
        ),
        (
            "parameter",
            Item::List(vec![frame("at::empty()", "??", 0), frame("_apply", module, 8), frame("forward", "a.py", 8)]),
        ),
        ("", no_frames()),
        // Behind the first step.
        ("", stack("_apply", module, 8)),
        ("forward", Item::List(vec![frame("_apply", module, 8), frame("forward", "mine.py", 8)])),
    ];
    let end = annotation("END", "Optimizer.step#SGD.step", 10);
    let events = stacks.iter().enumerate().map(|(place, (_, frames))| {
        event("alloc", 512 * place as u64, 8, 0, if place < stacks.len() - 2 { 10 } else { 11 }, frames.clone())
    });
    let snapshot = read_item(&snapshot(vec![], vec![events.collect()], vec![end]));
    let trace = &snapshot.trace;
    let allocs = trace.events.iter().filter(|event| matches!(event.action, Action::Alloc { .. }));
    let found: Vec<&str> = allocs.map(|event| event.category.map_or("", |category| trace.text(category))).collect();
    assert_eq!(found, stacks.map(|(category, _)| category));
}

#[test]
fn the_profilers_steps_come_before_those_of_the_first_optimizer() {
    let allocs = || (0..9).map(|time| event("alloc", 512 * time, 8, 0, 10 * time, no_frames())).collect::<Vec<_>>();
    let mut annotations = vec![
        annotation("START", "Optimizer.step#Adam.step", 9),
        annotation("END", "Optimizer.step#Adam.step", 10),
        annotation("END", "Optimizer.step#SGD.step", 15),
        annotation("END", "Optimizer.zero_grad#Adam.zero_grad", 16),
        annotation("END", "Optimizer.step#Adam.step", 35),
    ];
    let steps = |annotations: &[Item]| -> Vec<(StepIndex, usize)> {
        let snapshot = read_item(&snapshot(vec![], vec![allocs()], annotations.to_vec()));
        snapshot.trace.steps().map(|(step, rows)| (step, rows.len())).collect()
    };
    assert_eq!(steps(&annotations), [(StepIndex(1), 3), (StepIndex(2), 3)]);
    annotations.extend([50, 70, 200].map(|time| annotation("END", &format!("ProfilerStep#{time}"), time)));
    assert_eq!(steps(&annotations), [(StepIndex(1), 7), (StepIndex(2), 3), (StepIndex(3), 2)]);
}

#[test]
fn only_the_end_of_a_step_leads_and_other_annotations_are_counted() {
    let allocs = vec![event("alloc", 512, 8, 0, 1, no_frames()), event("alloc", 1024, 8, 0, 9, no_frames())];
    let annotations = vec![
        annotation("START", "ProfilerStep#1", 1),
        annotation("START", "Optimizer.step#A", 3),
        annotation("END", "Optimizer.step#B", 4),
        annotation("END", "## forward ##", 5),
    ];
    let snapshot = read_item(&snapshot(vec![], vec![allocs], annotations));
    assert_eq!(snapshot.trace.steps().count(), 1);
    assert_eq!(shown(&snapshot.notes)[1..], ["3 annotations that mark no end of a step left out"]);
}

#[test]
fn steps_that_cannot_be_placed_are_noted() {
    let end = || vec![annotation("END", "Optimizer.step#A", 3)];
    let mut alloc = event("alloc", 512, 8, 0, 1, no_frames());
    if let Item::Dict(pairs) = &mut alloc {
        pairs.retain(|(key, _)| *key != "time_us");
    }
    let without_times = read_item(&snapshot(vec![], vec![vec![alloc]], end()));
    assert_eq!(
        shown(&without_times.notes)[1..],
        [
            "1 event has no time; those of different devices may be out of order",
            "1 step left out: no event has a time to place it by",
        ]
    );
    let without_events = read_item(&snapshot(vec![], vec![], end()));
    assert_eq!(
        shown(&without_events.notes),
        [
            "the snapshot has no history: the trace holds only what was there when it was taken",
            "1 step left out: there are no events to place it among",
        ]
    );
}

#[test]
fn a_device_keeps_its_own_order_where_its_times_fall() {
    let alloc = |address, time| event("alloc", address, 8, 0, time, no_frames());
    let traces = vec![vec![alloc(512, 100), alloc(1024, 10), alloc(1536, 50)], vec![alloc(512, 20)]];
    let snapshot = read_item(&snapshot(vec![], traces, vec![]));
    let rows: Vec<_> = snapshot.trace.events.iter().map(|event| (event.device, event.time_ns)).collect();
    assert_eq!(rows, [(Some(1), Some(10_000)), (Some(0), Some(90_000)), (Some(0), Some(0)), (Some(0), Some(40_000))]);
    assert_eq!(
        shown(&snapshot.notes)[1..],
        ["2 events have an earlier time than one before on the same device; the order is kept"]
    );
}

#[test]
fn a_row_of_nothing_but_quotes_fits_a_line() {
    let quotes = |end: &str| "\"".repeat(200_000 - 1) + end;
    let mut said = event("alloc", 512, 8, 0, 1, stack(&quotes("a"), "??", 0));
    if let Item::Dict(pairs) = &mut said {
        pairs.retain(|(key, _)| !["compile_context", "user_metadata"].contains(key));
        pairs.extend([
            ("user_metadata", Item::Text(quotes("b"))),
            ("compile_context", Item::Text(quotes("c"))),
            ("internal_metadata", Item::Text(quotes("d"))),
            ("forward_frames", stack(&quotes("e"), "??", 0)),
        ]);
    }
    // Reads it back from CSV.
    read_item(&snapshot(vec![], vec![vec![said]], vec![]));
}

#[test]
fn a_stack_of_too_many_frames_is_refused() {
    let frames = |count: u64| Item::List((0..count).map(|line| frame("f", "a.py", line)).collect());
    let of = |count| {
        let alloc = event("alloc", 512, 8, 0, 1, frames(count));
        pickle::pickle(&snapshot(vec![], vec![vec![alloc]], vec![]), pickle::Style::Native)
    };
    assert!(pickle::reading::read(&of(limits::FRAMES_OF_A_STACK)).is_ok());
    let error = pickle::reading::read(&of(limits::FRAMES_OF_A_STACK + 1)).expect_err("it is too deep");
    assert!(error.to_string().contains("more than 4096 frames of a stack"), "{error}");
}

#[test]
fn a_free_that_was_not_requested_is_both_free_and_done() {
    let events = vec![
        event("alloc", 512, 8, 0, 1, no_frames()),
        event("free_completed", 512, 8, 0, 2, no_frames()),
        event("free_completed", 1024, 16, 0, 3, no_frames()),
    ];
    let snapshot = read_item(&snapshot(vec![], vec![events], vec![]));
    assert_eq!(rows(&snapshot.trace), BTreeMap::from([("alloc", 2), ("free", 2), ("done", 2)]));
    assert_eq!(totals(&snapshot.trace), Totals { peak_live: 24, peak_active: 24, ..Totals::default() });
}

#[test]
fn completions_that_were_not_recorded_are_left_to_the_reader_of_the_trace() {
    let device = |is_complete: bool| {
        let mut events = vec![
            event("alloc", 512, 8, 0, 1, no_frames()),
            event("free_requested", 512, 8, 0, 2, no_frames()),
            event("free_completed", 512, 8, 0, 3, no_frames()),
            event("alloc", 512, 4, 0, 4, no_frames()),
        ];
        events.retain(|event| is_complete || !format!("{event:?}").contains("free_completed"));
        events
    };
    let live = vec![block(512, 512, 4, "active_allocated", no_frames())];
    let segments = |device| segment(device, 512, 512, 0, (0, 0), live.clone());
    let alone = read_item(&snapshot(vec![segments(0)], vec![device(false)], vec![]));
    assert_eq!(rows(&alone.trace), BTreeMap::from([("reserve", 1), ("alloc", 2), ("free", 1)]));
    assert_eq!(shown(&alone.notes), [""; 0]);
    let both = read_item(&snapshot(vec![segments(0), segments(1)], vec![device(false), device(true)], vec![]));
    assert_eq!(rows(&both.trace), BTreeMap::from([("reserve", 2), ("alloc", 4), ("free", 2), ("done", 2)]));
}

#[test]
fn a_block_that_is_pending_at_the_end_is_held_until_then() {
    let events = |is_pending: bool, address: u64| {
        let mut events = vec![
            event("alloc", address, 8, 0, 1, no_frames()),
            event("free_requested", address, 8, 0, 2, no_frames()),
            event("alloc", 4096, 8, 0, 3, no_frames()),
        ];
        if !is_pending {
            events.insert(2, event("free_completed", address, 8, 0, 2, no_frames()));
        }
        events
    };
    let segments = |device, address: u64| {
        let pending = block(address, 512, 8, "active_pending_free", no_frames());
        let live = block(4096, 512, 8, "active_allocated", no_frames());
        segment(device, 512, 8192, 0, (0, 0), vec![pending, live])
    };
    let alone = read_item(&snapshot(vec![segments(0, 512)], vec![events(true, 512)], vec![]));
    assert_eq!(rows(&alone.trace), BTreeMap::from([("reserve", 1), ("alloc", 2)]));
    assert_eq!(peak(&alone.trace), 16);
    let note = "1 block (8 B) let go of, but still in use by the device at the end: held throughout";
    assert_eq!(shown(&alone.notes), [note]);
    // Another block ends, so that readers know that this one does not.
    let both = read_item(&snapshot(vec![segments(0, 512)], vec![events(true, 512), events(false, 512)], vec![]));
    assert_eq!(rows(&both.trace), BTreeMap::from([("reserve", 1), ("alloc", 4), ("free", 2), ("done", 1)]));
    // No completion was recorded, but the segments tell which block was not complete.
    let mut reused = vec![
        event("alloc", 1024, 4, 0, 0, no_frames()),
        event("free_requested", 1024, 4, 0, 0, no_frames()),
        event("alloc", 1024, 4, 0, 0, no_frames()),
        event("free_requested", 1024, 4, 0, 0, no_frames()),
    ];
    reused.extend(events(true, 512));
    let reused = read_item(&snapshot(vec![segments(0, 512)], vec![reused], vec![]));
    assert_eq!(rows(&reused.trace), BTreeMap::from([("reserve", 1), ("alloc", 4), ("free", 2)]));
    assert_eq!(peak(&reused.trace), 16);
}

#[test]
fn what_does_not_add_up_is_noted() {
    let blocks = vec![
        block(4096, 512, 500, "active_allocated", no_frames()),
        block(4608, 512, 300, "active_allocated", no_frames()),
        block(5120, 512, 0, "resting", no_frames()),
    ];
    let mut odd = event("alloc", 4608, 301, 0, 6, no_frames());
    if let Item::Dict(pairs) = &mut odd {
        pairs.push(("weather", "fair".into()));
    }
    let events = vec![
        event("segment_alloc", 1 << 20, 4096, 0, 1, no_frames()),
        event("snapshot", 0, 0, 0, 2, no_frames()),
        event("annotate", 4096, 0, 0, 2, no_frames()),
        event("dance", 0, 0, 0, 3, no_frames()),
        event("dance", 0, 0, 0, 3, no_frames()),
        event("alloc", 8192, 7, 0, 3, no_frames()),
        event("free_requested", 8192, 7, 0, 4, no_frames()),
        event("free_completed", 8192, 7, 0, 4, no_frames()),
        event("free_requested", 8192, 7, 0, 5, no_frames()),
        odd,
        event("alloc", 9216, 9, 0, 7, no_frames()),
        event("alloc", 9216, 10, 0, 8, no_frames()),
    ];
    let segments = vec![segment(0, 4096, 2048, 0, (0, 0), blocks)];
    let snapshot = read_item(&snapshot(segments, vec![events], vec![annotation("END", "Optimizer.step#A", 0)]));
    assert_eq!(
        shown(&snapshot.notes),
        [
            "the run had begun before the recording: 1 block (500 B) already there",
            "1 block (10 B) left alive by the events, but not in the segments",
            "1 block (300 B) in the segments, but not left alive by the events",
            "1 range was reserved or released in a way that does not fit the segments",
            "1 step before the first recorded event left out",
            "1 free of a block whose allocation was not recorded",
            "1 block was given out again without a recorded free",
            "1 event of kind `snapshot` left out",
            "1 event of kind `annotate` left out",
            "2 events of unknown kind `dance` left out",
            "`weather` of an event was not read (1 time)",
            "`resting` of the states of blocks was not read (1 time)",
        ]
    );
    assert_eq!(totals(&snapshot.trace).live, 500 + 301 + 10);
}

#[test]
fn what_the_program_said_of_its_memory_has_columns() {
    let mut said = event("alloc", 512, 8, 0, 1, no_frames());
    if let Item::Dict(pairs) = &mut said {
        pairs.retain(|(key, _)| !["compile_context", "user_metadata"].contains(key));
        pairs.extend([
            ("user_metadata", "{\"layer\":\"1\"}".into()),
            ("compile_context", "0/1".into()),
            ("internal_metadata", "mallocWithAddress".into()),
            ("forward_frames", stack("forward", "mine.py", 3)),
            ("pool_id", Item::Pair(2, 7)),
        ]);
    }
    let events = vec![said, event("alloc", 1024, 8, 0, 2, no_frames())];
    let snapshot = read_item(&snapshot(vec![], vec![events], vec![]));
    let trace = &snapshot.trace;
    let columns: Vec<(&str, Vec<&str>)> = trace
        .extra
        .iter()
        .map(|column| (&*column.name, column.values.iter().map(|&value| trace.text(value)).collect()))
        .collect();
    assert_eq!(
        columns,
        [
            ("user_metadata", vec!["{\"layer\":\"1\"}", ""]),
            ("compile_context", vec!["0/1", ""]),
            ("internal_metadata", vec!["mallocWithAddress", ""]),
            ("forward_site", vec!["mine.py:3 forward", ""]),
            ("pool", vec!["2:7", ""]),
        ]
    );
    assert_eq!(snapshot.settings, "max_split_size_mb:64");
}

#[test]
fn a_stack_that_is_too_long_for_a_line_is_cut_and_noted() {
    let long = "x".repeat(200_000);
    let frames = Item::List(vec![frame(&long, "??", 0), frame("outer", "??", 0)]);
    let snapshot = read_item(&snapshot(vec![], vec![vec![event("alloc", 512, 8, 0, 1, frames)]], vec![]));
    assert_eq!(sites(&snapshot.trace).first().map(|site| site.len()), Some(64 << 10));
    assert!(shown(&snapshot.notes).contains(&"1 text was cut to 64.0 KiB".to_owned()), "{:?}", snapshot.notes);
}

#[test]
fn blocks_without_an_address_lie_one_behind_the_other() {
    let plain = |bytes: u64, state: &str| {
        Item::Dict(vec![("size", bytes.into()), ("requested_size", (bytes - 1).into()), ("state", state.into())])
    };
    let blocks = vec![plain(512, "active_allocated"), plain(1024, "inactive"), plain(512, "active_awaiting_free")];
    let snapshot = read_item(&snapshot(vec![segment(1, 4096, 2048, 3, (0, 0), blocks)], vec![], vec![]));
    let blocks: Vec<_> = snapshot.trace.blocks.iter().map(|block| (block.address, block.bytes.get())).collect();
    assert_eq!(blocks, [(Some(4096), 511), (Some(4096 + 1536), 511)]);
    assert_eq!(rows(&snapshot.trace), BTreeMap::from([("reserve", 1), ("alloc", 2)]));
    assert_eq!(peak(&snapshot.trace), 2 * 511);
    assert!(snapshot.trace.events.iter().all(|event| event.device == Some(1) && event.stream.0 == 3));
}

#[test]
fn pinned_host_memory_is_counted_and_left_out() {
    let Item::Dict(mut pairs) = snapshot(vec![], vec![vec![event("alloc", 512, 8, 0, 1, no_frames())]], vec![]) else {
        unreachable!("a snapshot is a dict")
    };
    let host = |time| event("alloc", 4096, 64, 0, time, no_frames());
    pairs.push(("host_segments", Item::List(vec![segment(0, 4096, 64, 0, (0, 0), vec![])])));
    for (traces, count) in [(vec![host(5), host(6)], 3), (vec![Item::List(vec![host(7)]), no_frames()], 2)] {
        let traces = ("host_traces", Item::List(traces));
        let pairs = pairs.iter().cloned().chain([traces]).collect();
        let snapshot = read_item(&Item::Dict(pairs));
        assert!(shown(&snapshot.notes).contains(&format!("{count} records of pinned host memory left out")));
        assert_eq!(rows(&snapshot.trace), BTreeMap::from([("alloc", 1)]));
    }
}
