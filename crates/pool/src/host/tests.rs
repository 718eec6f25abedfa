//! Programs of random calls against a plain model, and what a host arena promises about steps, pages and forks.

mod purge;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_core::ThreadId;
use lowtide_learn::LearnerOptions;
use lowtide_memory::{HostOptions, Pages};
use proptest::prelude::*;

use super::{HostArena, HostArenaOptions};
use crate::error::Error;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const THREAD: ThreadId = ThreadId(0);

fn arena(find_steps: Option<u64>) -> HostArena {
    let learner = LearnerOptions { background: false, patterns: 32, ..LearnerOptions::default() };
    let options = HostArenaOptions {
        range: Bytes::new(1 << 34),
        pages: HostOptions { pages: Pages::Base, ..HostOptions::default() },
        learner: Some(learner),
        find_steps,
        decay: Duration::from_secs(2),
    };
    HostArena::new(options).unwrap()
}

#[derive(Clone, Debug)]
enum Op {
    Alloc {
        bytes: u64,
        align: u64,
        zeroed: bool,
    },
    Free {
        which: usize,
    },
    Resize {
        which: usize,
        bytes: u64,
    },
    Step,
    Tick,
    Trim,
    /// The last operations again, as steps that leave nothing behind.
    Repeat {
        back: usize,
        times: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![32 * KIB..200 * KIB, 32 * KIB..8 * MIB];
    prop_oneof![
        8 => (bytes.clone(), 0..14_u32, any::<bool>())
            .prop_map(|(bytes, align, zeroed)| Op::Alloc { bytes, align: 1 << align, zeroed }),
        6 => any::<usize>().prop_map(|which| Op::Free { which }),
        2 => (any::<usize>(), bytes).prop_map(|(which, bytes)| Op::Resize { which, bytes }),
        1 => Just(Op::Step),
        1 => Just(Op::Tick),
        1 => Just(Op::Trim),
        1 => (2..12_usize, 2..8_u8).prop_map(|(back, times)| Op::Repeat { back, times }),
    ]
}

struct Player<'a> {
    arena: &'a HostArena,
    blocks: Vec<(u64, u64)>,
    now: u64,
}

impl Player<'_> {
    fn play(&mut self, op: &Op) {
        match *op {
            Op::Alloc { bytes, align, zeroed } => {
                let mut cleared: Vec<Range<u64>> = Vec::new();
                let address = if zeroed {
                    self.arena.alloc_zeroed(bytes, align, THREAD, &mut |part| cleared.push(part))
                } else {
                    self.arena.alloc(bytes, align, THREAD)
                };
                let address = address.expect("there is room");
                assert!(address.is_multiple_of(align));
                assert!(cleared.iter().all(|part| address <= part.start && part.end <= address + bytes));
                self.blocks.push((address, bytes));
            }
            Op::Free { which } if !self.blocks.is_empty() => {
                let (address, _) = self.blocks.swap_remove(which % self.blocks.len());
                self.arena.free(address).unwrap();
            }
            Op::Resize { which, bytes } if !self.blocks.is_empty() => {
                let index = which % self.blocks.len();
                let (address, _) = self.blocks[index];
                if self.arena.resize(address, bytes).unwrap() {
                    self.blocks[index] = (address, bytes);
                }
            }
            Op::Step => self.arena.step(),
            Op::Tick => {
                self.now += 700;
                self.arena.tick(Duration::from_millis(self.now));
            }
            Op::Trim => {
                self.arena.trim();
            }
            Op::Free { .. } | Op::Resize { .. } | Op::Repeat { .. } => {}
        }
        self.check();
    }

    fn check(&self) {
        let mut by_address = BTreeMap::new();
        for &(address, bytes) in &self.blocks {
            assert!(self.arena.range().contains(&address));
            assert!(self.arena.usable(address).is_some_and(|usable| usable >= bytes));
            by_address.insert(address, bytes);
        }
        assert_eq!(by_address.len(), self.blocks.len(), "two blocks at one address");
        let mut end = 0;
        for (address, bytes) in by_address {
            assert!(end <= address, "two blocks overlap");
            end = address + bytes;
        }
        let asked: u64 = self.blocks.iter().map(|block| block.1).sum();
        let usable: u64 = self.blocks.iter().filter_map(|block| self.arena.usable(block.0)).sum();
        let live = self.arena.stats().live.get();
        assert!((asked..=usable).contains(&live), "{live} are live of {asked} to {usable}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_never_overlap(ops in prop::collection::vec(op(), 1..80), marked in any::<bool>()) {
        let arena = arena((!marked).then_some(0));
        let mut player = Player { arena: &arena, blocks: Vec::new(), now: 0 };
        for (index, op) in ops.iter().enumerate() {
            if let Op::Repeat { back, times } = *op {
                for _ in 0..times {
                    let before = player.blocks.len();
                    for op in &ops[index.saturating_sub(back)..index] {
                        if !matches!(op, Op::Repeat { .. }) {
                            player.play(op);
                        }
                    }
                    while player.blocks.len() > before {
                        player.play(&Op::Free { which: player.blocks.len() - 1 });
                    }
                    player.play(&Op::Step);
                }
            } else {
                player.play(op);
            }
        }
        while !player.blocks.is_empty() {
            player.play(&Op::Free { which: 0 });
        }
        arena.trim();
        prop_assert_eq!(arena.stats().live, Bytes::ZERO);
        prop_assert_eq!(arena.stats().resident, Bytes::ZERO);
    }
}

/// Forward and backward of a small network: blocks that grow together and go in reverse.
fn train(arena: &HostArena, scale: u64) {
    let mut saved = Vec::new();
    for layer in 1..=12_u64 {
        let bytes = (40 + layer * 13) * KIB * scale;
        let hidden = arena.alloc(bytes, 64, THREAD).unwrap();
        let scratch = arena.alloc(bytes * 2, 64, THREAD).unwrap();
        saved.push(hidden);
        arena.free(scratch).unwrap();
    }
    for hidden in saved.into_iter().rev() {
        let gradient = arena.alloc(50 * KIB * scale, 64, THREAD).unwrap();
        arena.free(hidden).unwrap();
        arena.free(gradient).unwrap();
    }
    arena.step();
}

#[test]
fn a_step_that_repeats_is_served_by_its_plan() {
    let arena = arena(None);
    (0..10).for_each(|_| train(&arena, 1));
    let before = arena.stats();
    (0..50).for_each(|_| train(&arena, 1));
    let after = arena.stats();
    assert!(before.planned_from.is_some_and(|step| step <= 6), "{before:?}");
    assert_eq!(after.misses, before.misses);
    assert!(after.hits - before.hits >= 50 * 36 - 72, "{before:?} {after:?}");
    assert_eq!(after.resident, before.resident, "nothing new became resident");
}

#[test]
fn steps_are_found_by_their_period() {
    let arena = arena(Some(100));
    (0..40).for_each(|_| {
        train(&arena, 1);
        // Nobody says so.
        arena.step_is_over.store(false, std::sync::atomic::Ordering::Relaxed);
    });
    let stats = arena.stats();
    assert!(stats.hits > 20 * 36 && stats.misses * 50 < stats.hits, "{stats:?}");
    assert!(!stats.marked);
}

#[test]
fn steps_whose_blocks_are_all_of_one_size_are_found() {
    let arena = arena(Some(0));
    for _ in 0..80 {
        let mut blocks: Vec<u64> = (0..9).map(|_| arena.alloc(MIB, 64, THREAD).unwrap()).collect();
        for block in blocks.drain(4..) {
            arena.free(block).unwrap();
            let last = arena.alloc(MIB, 64, THREAD).unwrap();
            arena.free(last).unwrap();
        }
        for block in blocks {
            arena.free(block).unwrap();
        }
    }
    let stats = arena.stats();
    assert!(stats.steps > 50 && stats.hits > 45 * 14, "{stats:?}");
    assert_eq!(stats.resident, stats.peak_live, "a plan takes no more than there was");
}

#[test]
fn kinds_of_step_that_take_turns_share_memory_and_have_a_plan_each() {
    let arena = arena(None);
    let scales = [3, 5, 4, 7, 6, 2];
    (0..18).for_each(|step| train(&arena, scales[step % 6]));
    let before = arena.stats();
    (0..36).for_each(|step| train(&arena, scales[step % 6]));
    let after = arena.stats();
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    assert!(hits >= 99 * (hits + misses) / 100 && hits > 36 * 30, "{before:?} {after:?}");
    let peak: u64 = after.peak_live.get();
    assert!(after.resident.get() <= peak + peak / 20 + 4 * MIB, "{after:?}");
}

#[test]
fn a_plan_gives_way_to_a_program_that_changes() {
    let arena = arena(None);
    (0..10).for_each(|_| train(&arena, 1));
    (0..10).for_each(|_| train(&arena, 9));
    let kept: Vec<u64> = (0..20).map(|_| arena.alloc(3 * MIB, 64, THREAD).unwrap()).collect();
    (0..10).for_each(|_| train(&arena, 2));
    for block in kept {
        arena.free(block).unwrap();
    }
    arena.trim();
    let stats = arena.stats();
    assert_eq!((stats.live, stats.resident), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn a_range_that_is_full_refuses_and_goes_on() {
    let options = HostArenaOptions { range: Bytes::new(64 * MIB), ..HostArenaOptions::default() };
    let arena = HostArena::new(options).unwrap();
    assert_eq!(arena.alloc(65 * MIB, 64, THREAD), None);
    let blocks: Vec<u64> = std::iter::from_fn(|| arena.alloc(7 * MIB, 64, THREAD)).collect();
    assert_eq!(blocks.len(), 9);
    assert_eq!(arena.alloc(4096 * MIB, 64, THREAD), None);
    for block in blocks {
        arena.free(block).unwrap();
    }
    assert!(arena.alloc(60 * MIB, 64, THREAD).is_some());
    assert_eq!(arena.alloc(u64::MAX, 64, THREAD), None);
    assert_eq!(arena.alloc(40 * 1024, 1 << 63, THREAD), None);
}

#[test]
fn what_was_never_in_use_need_not_be_cleared() {
    let arena = arena(None);
    let mut cleared = 0;
    let block = arena.alloc_zeroed(MIB, 64, THREAD, &mut |part| cleared += part.end - part.start).unwrap();
    assert_eq!(cleared, 0);
    arena.free(block).unwrap();
    arena.alloc_zeroed(MIB, 64, THREAD, &mut |part| cleared += part.end - part.start).unwrap();
    assert_eq!(cleared, MIB);
}

#[test]
fn a_block_grows_as_far_as_there_is_room_behind_it() {
    let arena = arena(None);
    let block = arena.alloc(2 * MIB, 64, THREAD).unwrap();
    assert!(arena.resize(block, 6 * MIB).unwrap());
    let wall = arena.alloc(100 * MIB, 64, THREAD).unwrap();
    assert!(!arena.resize(block, 200 * MIB).unwrap());
    assert_eq!(arena.usable(block), Some(6 * MIB));
    assert!(arena.resize(wall, 300 * MIB).unwrap(), "nothing is behind the last block");
    assert!(arena.resize(block, 40 * KIB).unwrap());
    arena.free(block).unwrap();
    arena.free(wall).unwrap();
    assert!(matches!(arena.free(wall), Err(Error::DoubleFree { .. })));
    assert!(matches!(arena.resize(wall, MIB), Err(Error::DoubleFree { .. })));
}

#[test]
fn a_forked_child_has_its_blocks_and_learns_for_itself() {
    let arena: &'static HostArena = Box::leak(Box::new(arena(None)));
    (0..10).for_each(|_| train(arena, 1));
    let kept = arena.alloc(MIB, 64, THREAD).unwrap();
    arena.freeze().thaw_in_child();
    let fresh = arena.stats();
    assert_eq!((fresh.allocations, fresh.hits, fresh.steps, fresh.live.get()), (0, 0, 0, MIB));
    assert!(arena.usable(kept).is_some_and(|usable| usable >= MIB));
    arena.free(kept).unwrap();
    let before = arena.stats();
    (0..20).for_each(|_| train(arena, 1));
    assert!(arena.stats().hits > before.hits + 10 * 30);
}

#[test]
fn a_block_on_a_stages_ground_that_shrinks_keeps_what_is_left_of_it() {
    let arena = arena(None);
    let take = |bytes: u64| arena.alloc(bytes, 64, THREAD).unwrap();
    let give = |block: u64| arena.free(block).unwrap();
    for _ in 0..20 {
        give(take(3 * MIB));
        give(take(64 * MIB));
        arena.step();
    }
    // What the plan gave is a block of its own when the plan is dropped, and lies on the memory of the next.
    let kept = take(3 * MIB);
    arena.trim();
    arena.step();
    let small = take(3 * MIB);
    assert!(arena.resize(kept, MIB).unwrap());
    let large = take(64 * MIB);
    assert!(large + 64 * MIB <= kept || kept + MIB <= large, "{large:x} {kept:x}");
    assert!(!arena.resize(kept, 100 * MIB).unwrap());
    [kept, small, large].into_iter().for_each(give);
    for _ in 0..20 {
        give(take(3 * MIB));
        give(take(64 * MIB));
        arena.step();
    }
    arena.trim();
    assert_eq!((arena.stats().live, arena.stats().resident), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn a_range_that_is_cut_serves_what_is_open_and_refuses_the_rest() {
    let arena = arena(None);
    let block = arena.alloc(MIB, 64, THREAD).unwrap();
    let mut left = 0..0;
    arena.shrink_range(|range| left = range);
    assert!(left.contains(&block) && left.end < arena.range().end);
    assert_eq!(arena.alloc(256 * MIB, 64, THREAD), None);
    let other = arena.alloc(MIB, 64, THREAD).unwrap();
    assert!(left.contains(&other));
}

#[test]
fn who_cannot_wait_is_told_nothing() {
    let arena = arena(None);
    assert!(arena.try_stats().is_some());
    let held = arena.state();
    assert_eq!(arena.try_stats(), None);
    drop(held);
}

#[test]
fn a_step_that_was_marked_before_a_fork_is_not_the_childs() {
    let arena: &'static HostArena = Box::leak(Box::new(arena(Some(0))));
    train(arena, 1);
    arena.freeze().thaw_in_child();
    arena.alloc(MIB, 64, THREAD).unwrap();
    assert!(!arena.stats().marked);
}

#[test]
fn a_plan_is_served_again_after_a_fork() {
    let arena: &'static HostArena = Box::leak(Box::new(arena(None)));
    (0..10).for_each(|_| train(arena, 1));
    arena.freeze().thaw();
    let before = arena.stats();
    (0..5).for_each(|_| train(arena, 1));
    assert_eq!(arena.stats().misses, before.misses);
    assert!(arena.stats().hits > before.hits);
}
