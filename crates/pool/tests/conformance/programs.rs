//! Programs made up at random, by whoever finds smaller ones that fail too, and from a seed.

use lowtide_core::random::Random;
use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use lowtide_pool::program::{Ask, Misuse, Op, Program, run};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::bench::{Bench, MakePool, MakeSource};

const MIB: u64 = 1 << 20;

/// Plays as many programs as the settings say on a new pool each.
pub fn any_program_leaves_the_pool_whole(source: MakeSource, pool: MakePool) {
    let Some(backing) = source() else { return };
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases = default.cases.saturating_mul(backing.percent).div_ceil(100);
    let mut runner = TestRunner::new(ProptestConfig { cases, ..default });
    let played = runner.run(&program(80), |program| {
        let bench = Bench::new(source, pool).ok_or_else(|| TestCaseError::reject("the source is gone"))?;
        run(&program, &bench.subject()).map_err(|violation| TestCaseError::fail(violation.to_string()))
    });
    played.unwrap_or_else(|error| panic!("{error}"));
}

/// The program that follows from a seed.
pub fn made_up(seed: u64, bytes: usize) -> Program {
    let mut random = Random::new(seed);
    Program::from_bytes(&(0..bytes).map(|_| random.next_u64() as u8).collect::<Vec<_>>())
}

/// Programs of up to so many operations.
pub fn program(longest: usize) -> impl Strategy<Value = Program> {
    vec(op(), 1..longest).prop_map(|ops| Program { ops })
}

fn op() -> impl Strategy<Value = Op> {
    let which = || 0..64_usize;
    prop_oneof![
        12 => ask().prop_map(Op::Alloc),
        1 => (ask(), 1..12_u8).prop_map(|(ask, count)| Op::Burst { ask, count }),
        8 => which().prop_map(|which| Op::Free { which }),
        1 => (0..5_usize).prop_map(|stride| Op::FreeEvery { stride }),
        3 => (which(), stream()).prop_map(|(which, stream)| Op::Record { which, stream }),
        1 => which().prop_map(|which| Op::Look { which }),
        1 => misuse().prop_map(Op::Misuse),
        2 => Just(Op::Step),
        1 => Just(Op::Trim),
        2 => (0..3000_u64).prop_map(|nanoseconds| Op::Advance { nanoseconds }),
        1 => (1..24_usize, 1..24_u8, 0..48_u8).prop_map(|(back, times, odd)| Op::Repeat { back, times, odd }),
    ]
}

fn stream() -> impl Strategy<Value = StreamId> {
    (0..4_u64).prop_map(StreamId)
}

fn ask() -> impl Strategy<Value = Ask> {
    let bytes = prop_oneof![
        30 => 1..4096_u64,
        30 => 1..MIB,
        20 => MIB..8 * MIB,
        10 => 8 * MIB..64 * MIB,
        10 => (1..16_u64, 0..3_u64).prop_map(|(grains, off)| grains * 2 * MIB + off - 1),
        2 => 64 * MIB..256 * MIB,
        1 => Just(0),
        1 => Just(1 << 61),
    ];
    let align = prop_oneof![30 => Just(1), 10 => (0..22_u32).prop_map(|power| 1 << power), 1 => Just(3_u64)];
    (bytes, align, stream(), 0..2_u64).prop_map(|(bytes, align, stream, thread)| Ask {
        bytes: Bytes::new(bytes),
        align: Align::new(align).unwrap(),
        stream,
        thread: ThreadId(thread),
    })
}

fn misuse() -> impl Strategy<Value = Misuse> {
    let which = || 0..64_usize;
    prop_oneof![
        which().prop_map(|which| Misuse::FreeAgain { which }),
        (which(), 0..5000_u64).prop_map(|(which, offset)| Misuse::FreeInside { which, offset }),
        any::<u64>().prop_map(|address| Misuse::FreeWild { address }),
        which().prop_map(|which| Misuse::RecordFreed { which }),
    ]
}
