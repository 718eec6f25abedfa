//! Programs that a strategy once failed at, as small as they could be made: every strategy plays them all.

use std::sync::Arc;

use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use lowtide_memory::{FailPlan, FailWhen, Failing, Simulated, SimulatedOptions};
use lowtide_pool::program::{Ask, Op, Program, Subject, Watching, run};

use crate::bench::MakePool;
use crate::sources::MakeOptions;

const MIB: u64 = 1 << 20;

pub fn programs_that_failed_once_pass(pool: MakePool, device: MakeOptions) {
    let broken: Vec<String> = programs()
        .into_iter()
        .filter_map(|(name, ops)| play(pool, device, &Program { ops }).err().map(|why| format!("{name}: {why}")))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

fn play(pool: MakePool, device: MakeOptions, program: &Program) -> Result<(), String> {
    let options = SimulatedOptions { contents: true, capacity: Some(Bytes::new(128 * MIB)), ..device() };
    let device = Arc::new(Failing::new(Simulated::new(options).unwrap(), FailPlan::new(FailWhen::Never)));
    let source = Arc::new(Watching::new(device.clone()));
    let pool = pool(source.clone()).unwrap();
    let subject = Subject {
        pool: &*pool,
        source: &source,
        device: Some(device.source()),
        gives_all_back: true,
        source_fails: false,
    };
    run(program, &subject).map_err(|violation| violation.to_string())
}

fn ask(stream: u64, bytes: u64) -> Ask {
    Ask { stream: StreamId(stream), ..Ask::new(Bytes::new(bytes)) }
}

fn alloc(stream: u64, bytes: u64) -> Op {
    Op::Alloc(ask(stream, bytes))
}

fn free(which: usize) -> Op {
    Op::Free { which }
}

fn burst(stream: u64, bytes: u64, count: u8) -> Op {
    Op::Burst { ask: ask(stream, bytes), count }
}

fn repeat(back: usize, times: u8, odd: u8) -> Op {
    Op::Repeat { back, times, odd }
}

fn programs() -> Vec<(&'static str, Vec<Op>)> {
    let aligned = Op::Alloc(Ask { align: Align::new(1024).unwrap(), ..ask(0, 1) });
    vec![
        ("a peak that falls when a plan is served", vec![alloc(0, 1), repeat(1, 6, 2)]),
        (
            "small blocks of three streams, and a step between",
            vec![
                alloc(0, 354_817),
                alloc(1, 1025),
                burst(2, 434_689, 5),
                Op::FreeEvery { stride: 2 },
                alloc(1, 1),
                repeat(1, 2, 2),
                Op::Step,
                repeat(4, 2, 0),
            ],
        ),
        (
            "a trim in every step",
            vec![
                alloc(0, 1),
                free(0),
                free(0),
                alloc(0, MIB),
                alloc(0, 1),
                burst(0, 3 * MIB + 1, 1),
                Op::Trim,
                free(21),
                repeat(4, 5, 0),
            ],
        ),
        (
            "a step that is closed within a step, for the other stream",
            vec![
                alloc(0, 1),
                Op::Step,
                free(0),
                aligned,
                alloc(1, 2_096_641),
                Op::FreeEvery { stride: 0 },
                repeat(6, 2, 2),
            ],
        ),
        (
            "a step that is closed within a step, for the first stream",
            vec![alloc(1, 1), Op::Step, free(0), alloc(0, 2_094_081), free(0), alloc(0, 2561), repeat(6, 2, 2)],
        ),
        (
            "many small blocks beside large ones",
            vec![
                alloc(0, 1),
                alloc(0, 1),
                alloc(0, 1),
                free(0),
                burst(0, 418_817, 8),
                alloc(0, 1),
                free(2),
                free(58),
                alloc(0, 5),
                alloc(0, 838_145),
                alloc(0, MIB),
                free(9),
                alloc(0, 1),
                free(55),
                Op::Trim,
                Op::Step,
                free(28),
                repeat(14, 4, 3),
            ],
        ),
        (
            "a base that grows until it meets the first alias run",
            vec![
                alloc(1, 42_991_617),
                Op::Alloc(Ask { align: Align::new(1_048_576).unwrap(), thread: ThreadId(0), ..ask(1, 4_194_305) }),
                alloc(1, 1),
                alloc(0, 1),
                alloc(1, 1),
                repeat(2, 12, 0),
                alloc(0, 1),
                Op::FreeEvery { stride: 3 },
                free(0),
                free(0),
                alloc(1, 1),
                free(0),
                alloc(0, 0),
                alloc(1, 23_068_673),
                alloc(0, 1),
                free(47),
                alloc(3, 31_485_953),
                Op::Advance { nanoseconds: 0 },
                Op::Alloc(Ask { align: Align::new(1).unwrap(), thread: ThreadId(1), ..ask(1, 4_298_241) }),
                alloc(0, 1),
                alloc(0, 1),
                alloc(1, 50_331_649),
                free(63),
                alloc(1, 8_253_953),
                free(11),
                free(44),
                burst(0, 285_697, 11),
                alloc(0, 8_890_369),
                repeat(15, 2, 2),
                alloc(0, 7_608_833),
                alloc(2, 5_244_929),
                repeat(19, 19, 1),
            ],
        ),
    ]
}
