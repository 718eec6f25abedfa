//! A source that fails: the error is clean, the pool goes on, and nothing is lost.

use std::mem;
use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{FailPlan, FailWhen, Failing, Failure, Simulated, SimulatedOptions, Source};
use lowtide_pool::program::{Ask, Op, Program, Subject, Watching, run};
use lowtide_pool::{Error, Pool};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::bench::MakePool;
use crate::programs::{made_up, program};
use crate::sources::MakeOptions;

const MIB: u64 = 1 << 20;

/// Runs each program with its first call of the source failing, with the second, and so on until none is left.
pub fn whichever_call_of_the_source_fails_the_pool_goes_on(pool: MakePool, device: MakeOptions) {
    if !lowtide_testing::thorough() {
        return;
    }
    let mut broken = Vec::new();
    for (name, program) in [("crowd", crowd()), ("steps", steps()), ("made up", made_up(7, 120))] {
        for failure in [Failure::OutOfMemory, Failure::Refused] {
            for nth in 1.. {
                let plan = FailPlan::new(FailWhen::Nth(nth)).with(failure);
                match play(pool, device, plan, &program) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(why) => {
                        broken.push(format!("{name}, {failure:?} at call {nth}: {why}"));
                        break;
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{} in all: {broken:#?}", broken.len());
}

pub fn calls_of_the_source_that_fail_at_random_lose_nothing(pool: MakePool, device: MakeOptions) {
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
    let failures = (0..u64::MAX, 0..30_u64, any::<bool>());
    let played = runner.run(&(program(60), failures), |(program, (seed, percent, refuses))| {
        let when = FailWhen::Randomly { probability: percent as f64 / 100.0, seed };
        let plan = FailPlan::new(when).with(if refuses { Failure::Refused } else { Failure::OutOfMemory });
        play(pool, device, plan, &program).map(|_| ()).map_err(TestCaseError::fail)
    });
    played.unwrap_or_else(|error| panic!("{error}"));
}

/// Plays a program on a source that fails by a plan, and says how often it did.
fn play(pool: MakePool, device: MakeOptions, plan: FailPlan, program: &Program) -> Result<u64, String> {
    let fails_once = matches!(plan.when, FailWhen::Nth(_));
    // Contents cost time, and do not depend on how calls fail.
    let contents = plan.failure == Failure::Refused;
    let device = SimulatedOptions { contents, capacity: Some(Bytes::new(128 * MIB)), ..device() };
    let failing = Arc::new(Failing::new(Simulated::new(device).unwrap(), plan));
    let source = Arc::new(Watching::new(failing.clone()));
    match pool(source.clone()) {
        Ok(pool) => {
            let device = Some(failing.source());
            let subject = Subject { pool: &*pool, source: &source, device, gives_all_back: true, source_fails: true };
            run(program, &subject).map_err(|violation| violation.to_string())?;
            assert_serves_again(&*pool, fails_once)?;
            mem::drop(pool);
        }
        Err(Error::Source(_) | Error::OutOfMemory { .. }) => {}
        Err(error) => return Err(format!("the pool was not made: {error}")),
    }
    let calls = failing.calls();
    // A source that never stops to fail may keep what a pool that ends cannot give back.
    if fails_once && (calls.committed != Bytes::ZERO || calls.reserved != calls.released) {
        return Err(format!("something was lost: {calls:?}"));
    }
    Ok(failing.calls_failed())
}

/// When its source has recovered a pool serves as if nothing had been.
fn assert_serves_again(pool: &dyn Pool, fails_once: bool) -> Result<(), String> {
    let blocks: Vec<_> = (0..3).map(|_| pool.alloc(&ask(0, 20 * MIB))).collect();
    if fails_once && blocks.iter().filter(|block| block.is_err()).count() > 1 {
        return Err(format!("more than one call failed: {blocks:?}"));
    }
    for block in blocks.into_iter().flatten() {
        while pool.free(block).is_err() {}
    }
    Ok(())
}

fn ask(stream: u64, bytes: u64) -> Ask {
    Ask { stream: StreamId(stream), ..Ask::new(Bytes::new(bytes)) }
}

fn alloc(stream: u64, mebibytes: u64) -> Op {
    Op::Alloc(ask(stream, mebibytes * MIB))
}

/// Three streams that use up a device of 128 MiB.
fn crowd() -> Program {
    let record = |which, stream| Op::Record { which, stream: StreamId(stream) };
    let ops = vec![
        alloc(0, 30),
        alloc(1, 40),
        Op::Burst { ask: ask(2, 5000), count: 6 },
        alloc(0, 20),
        record(0, 1),
        record(0, 2),
        Op::Free { which: 0 },
        alloc(1, 60),
        alloc(0, 50),
        Op::Free { which: 0 },
        alloc(2, 60),
        Op::Step,
        Op::FreeEvery { stride: 2 },
        alloc(0, 70),
        Op::Trim,
        record(1, 3),
        Op::Free { which: 1 },
        Op::Advance { nanoseconds: 400 },
        alloc(3, 45),
        alloc(1, 100),
        Op::FreeEvery { stride: 1 },
        alloc(1, 120),
    ];
    Program { ops }
}

/// The same step again and again, with one block more in one of them.
fn steps() -> Program {
    let ops = vec![
        alloc(0, 6),
        alloc(0, 25),
        Op::Burst { ask: ask(0, 300_000), count: 5 },
        Op::Free { which: 1 },
        alloc(1, 33),
        Op::Record { which: 6, stream: StreamId(0) },
        alloc(0, 40),
        Op::Free { which: 0 },
        Op::FreeEvery { stride: 1 },
        Op::Repeat { back: 9, times: 8, odd: 5 },
        Op::Trim,
        Op::Repeat { back: 10, times: 2, odd: 9 },
    ];
    Program { ops }
}
