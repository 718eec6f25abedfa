//! FreeRuns threads that take and give blocks of a plan through many orders of their steps. What the threads hold is kept in
//! accounting of the standard library, which are read and written at once: only the table's own steps are interleaved.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lowtide_core::Bytes;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};

use super::super::served_plan::{Given, ServedPlan};
use super::fixtures::{KIB, plan, request};
use super::{Found, SlotTable, locked};
use crate::pool::Address;
use crate::sync::Mutex as InterleavedMutex;

/// How many orders are tried at random, and as many again that change between threads only a few times.
const ORDERS: usize = 10_000;

/// How many changes between threads the rarest mistake needs.
const DEPTH: usize = 4;

const BASE: u64 = 1 << 40;

/// FreeRuns `test` in many orders.
fn explore(test: fn()) {
    run(RandomScheduler::new_from_seed(1, ORDERS), test);
    run(PctScheduler::new_from_seed(1, DEPTH, ORDERS), test);
}

/// FreeRuns `test` in every order there is.
fn exhaust(test: fn()) {
    run(DfsScheduler::new(None, false), test);
}

fn run(scheduler: impl Scheduler + 'static, test: fn()) {
    let mut config = Config::new();
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test);
}

/// A plan at work, and what is known about it from outside.
struct World {
    serving: ServedPlan,
    /// The ranges that somebody uses.
    used: Mutex<Vec<(u64, u64)>>,
    /// What the arena has behind its lock.
    arena: InterleavedMutex<Accounting>,
}

/// The arena's accounting.
struct Accounting {
    is_lowered: bool,
    /// The addresses of blocks that it knows by name.
    blocks: BTreeSet<u64>,
}

impl World {
    /// A world of slots: the thread that asks for each, its offset and its size.
    fn new(slots: &[(u64, u64, u64)]) -> Arc<Self> {
        let plan = plan(slots);
        let height = plan.height.get();
        let serving = ServedPlan::new(SlotTable::new(Arc::new(plan)), BASE, height, 1);
        serving.watch(false);
        let arena = InterleavedMutex::new(Accounting { is_lowered: false, blocks: BTreeSet::new() });
        Arc::new(Self { serving, used: Mutex::default(), arena })
    }

    fn table(&self) -> &SlotTable {
        &self.serving.slots
    }

    /// Begins to use a range, which nobody else may.
    fn enter(&self, start: u64, end: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = used.iter().find(|range| range.0 < end && start < range.1);
        assert_eq!(shared, None, "{start}..{end} is used by two");
        used.push((start, end));
    }

    fn leave(&self, start: u64, end: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|&range| range != (start, end));
    }

    /// A block of `bytes` for a thread, if the table has one.
    fn take(&self, thread: u64, bytes: u64) -> Option<u64> {
        let Found::At(offset) = self.serving.take(&request(thread, bytes))? else { return None };
        self.enter(offset, offset + bytes);
        Some(offset)
    }

    /// Gives a block back as an arena does.
    fn give(&self, offset: u64, bytes: u64) {
        self.leave(offset, offset + bytes);
        let address = self.serving.address(offset);
        match self.serving.give(address) {
            Given::Yes => {}
            Given::Late(_) => self.forget(address),
            Given::No => self.give_by_lock(address, offset),
        }
    }

    fn forget(&self, address: Address) {
        let known = locked(&self.arena).blocks.remove(&address.0);
        assert!(known, "a block was given back late of which the arena does not know");
    }

    fn give_by_lock(&self, address: Address, offset: u64) {
        let mut arena = locked(&self.arena);
        let is_in_use = if arena.is_lowered { arena.blocks.remove(&address.0) } else { self.table().give(offset) };
        assert!(is_in_use, "a block was lost before it was given back");
    }

    /// Lowers the table as an arena does.
    fn lower(&self) {
        let mut arena = locked(&self.arena);
        self.table().close();
        arena.is_lowered = true;
        for slot in self.table().in_use() {
            let address = self.serving.address(slot.offset.map_or(0, Bytes::get)).0;
            assert!(arena.blocks.insert(address), "a block was adopted twice");
        }
    }

    /// Takes and gives one block of each size in order.
    fn work(&self, thread: u64, sizes: &[u64]) {
        for &bytes in sizes {
            if let Some(offset) = self.take(thread, bytes) {
                self.give(offset, bytes);
            }
        }
    }

    /// After all threads ended: nothing is in use, and each slot can be had.
    fn assert_whole(&self, slots: &[(u64, u64, u64)]) {
        assert_eq!(self.table().in_use().count(), 0);
        self.table().restart();
        for &(thread, offset, bytes) in slots {
            assert_eq!(self.take(thread, bytes), Some(offset));
            self.give(offset, bytes);
        }
    }

    /// After all threads ended on a table that was lowered: the arena knows no block that nobody has.
    fn assert_nothing_is_left(&self) {
        assert_eq!(locked(&self.arena).blocks, BTreeSet::new(), "the arena holds blocks that nobody has");
    }
}

fn start(world: &Arc<World>, work: impl FnOnce(&World) + Send + 'static) -> JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || work(&world))
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}

#[test]
fn two_threads_never_hold_shared_addresses_in_any_order() {
    exhaust(|| {
        let world = World::new(&[(0, 0, KIB), (1, 0, KIB)]);
        let claim = |slot| {
            start(&world, move |world| {
                if world.table().claim(slot) {
                    world.enter(0, KIB);
                }
            })
        };
        join([0, 1].map(claim));
    });
}

#[test]
fn two_threads_that_take_turns_at_shared_addresses_leave_them_free() {
    explore(|| {
        let slots = [(0, 0, KIB), (1, 0, 2 * KIB), (0, KIB, 3 * KIB), (1, 3 * KIB, KIB)];
        let world = World::new(&slots);
        let first = start(&world, |world| world.work(0, &[KIB, 3 * KIB]));
        let second = start(&world, |world| world.work(1, &[2 * KIB, KIB]));
        join([first, second]);
        world.assert_whole(&slots);
    });
}

#[test]
fn three_threads_that_take_turns_at_shared_addresses_leave_them_free() {
    explore(|| {
        let slots = [(0, 0, 2 * KIB), (1, KIB, 2 * KIB), (2, 2 * KIB, 2 * KIB), (0, 0, 4 * KIB), (2, 0, KIB)];
        let world = World::new(&slots);
        let first = start(&world, |world| world.work(0, &[2 * KIB, 4 * KIB]));
        let second = start(&world, |world| world.work(1, &[2 * KIB]));
        let third = start(&world, |world| world.work(2, &[2 * KIB, KIB]));
        join([first, second, third]);
        world.assert_whole(&slots);
    });
}

#[test]
fn a_block_that_is_held_by_one_thread_is_given_by_another_while_a_rival_asks() {
    explore(|| {
        let slots = [(0, 0, KIB), (1, 0, 2 * KIB)];
        let world = World::new(&slots);
        assert_eq!(world.take(0, KIB), Some(0));
        let giver = start(&world, |world| world.give(0, KIB));
        let rival = start(&world, |world| world.work(1, &[2 * KIB]));
        join([giver, rival]);
        world.assert_whole(&slots);
    });
}

#[test]
fn a_table_closed_while_a_block_is_taken_knows_it_or_refuses_it_in_any_order() {
    exhaust(|| {
        let world = World::new(&[(0, 0, KIB)]);
        let taker = start(&world, |world| {
            if world.take(0, KIB).is_some() {
                world.leave(0, KIB);
                world.give_by_lock(world.serving.address(0), 0);
            }
        });
        let closer = start(&world, World::lower);
        join([taker, closer]);
        world.assert_nothing_is_left();
    });
}

#[test]
fn a_table_closed_while_a_block_is_given_back_loses_nothing_in_any_order() {
    exhaust(|| {
        let world = World::new(&[(0, 0, KIB)]);
        assert_eq!(world.take(0, KIB), Some(0));
        join([start(&world, |world| world.give(0, KIB)), start(&world, World::lower)]);
        world.assert_nothing_is_left();
    });
}

#[test]
fn a_table_closed_while_blocks_come_and_go_loses_nothing() {
    explore(|| {
        let world = World::new(&[(0, 0, KIB), (1, KIB, 2 * KIB), (0, 0, 3 * KIB), (1, 0, KIB)]);
        let first = start(&world, |world| world.work(0, &[KIB, 3 * KIB]));
        let second = start(&world, |world| world.work(1, &[2 * KIB, KIB]));
        join([first, second, start(&world, World::lower)]);
        world.assert_nothing_is_left();
    });
}

#[test]
fn a_table_closed_between_a_block_and_its_successor_adopts_the_successor() {
    explore(|| {
        let world = World::new(&[(0, 0, KIB), (1, 0, 2 * KIB)]);
        assert_eq!(world.take(0, KIB), Some(0));
        let giver = start(&world, |world| world.give(0, KIB));
        let successor = start(&world, |world| world.work(1, &[2 * KIB]));
        join([giver, successor, start(&world, World::lower)]);
        world.assert_nothing_is_left();
    });
}

#[test]
fn slots_under_a_foreign_block_are_served_only_after_it_is_gone() {
    explore(|| {
        let slots = [(0, 0, 2 * KIB), (1, KIB, 2 * KIB)];
        let world = World::new(&slots);
        let is_foreign = Arc::new(AtomicBool::new(true));
        world.table().block(KIB, 2 * KIB, true);
        let takers = slots.map(|(thread, ..)| {
            let is_foreign = Arc::clone(&is_foreign);
            start(&world, move |world| {
                let block = world.take(thread, 2 * KIB);
                assert!(block.is_none() || !is_foreign.load(Ordering::Relaxed), "a blocked slot was served");
                if let Some(offset) = block {
                    world.give(offset, 2 * KIB);
                }
            })
        });
        let foreign = start(&world, move |world| {
            is_foreign.store(false, Ordering::Relaxed);
            world.table().block(KIB, 2 * KIB, false);
        });
        join(takers.into_iter().chain([foreign]));
        world.assert_whole(&slots);
    });
}

#[test]
fn of_a_slot_and_a_foreign_block_that_come_at_once_only_one_is_served() {
    explore(|| {
        let slots = [(0, 0, 2 * KIB), (1, KIB, 2 * KIB)];
        let world = World::new(&slots);
        let takers = slots.map(|(thread, ..)| start(&world, move |world| world.work(thread, &[2 * KIB])));
        let foreign = start(&world, |world| {
            world.table().block(KIB, 2 * KIB, true);
            if world.table().in_use().next().is_none() {
                world.enter(KIB, 2 * KIB);
                thread::yield_now();
                world.leave(KIB, 2 * KIB);
            }
            world.table().block(KIB, 2 * KIB, false);
        });
        join(takers.into_iter().chain([foreign]));
        world.assert_whole(&slots);
    });
}

#[test]
fn a_slot_under_two_foreign_blocks_waits_for_both() {
    explore(|| {
        let slots = [(0, 0, 2 * KIB)];
        let world = World::new(&slots);
        let left = Arc::new(Mutex::new(2));
        for start in [0, KIB] {
            world.table().block(start, start + KIB, true);
        }
        let foreigners = [0, KIB].map(|offset| {
            let left = Arc::clone(&left);
            start(&world, move |world| {
                *left.lock().unwrap() -= 1;
                world.table().block(offset, offset + KIB, false);
            })
        });
        let taker = start(&world, move |world| {
            let block = world.take(0, 2 * KIB);
            assert!(block.is_none() || *left.lock().unwrap() == 0, "a blocked slot was served");
            if let Some(offset) = block {
                world.give(offset, 2 * KIB);
            }
        });
        join(foreigners.into_iter().chain([taker]));
        world.assert_whole(&slots);
    });
}
