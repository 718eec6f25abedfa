//! When memory goes back to the system, and when it stays.

use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_core::random::Random;
use lowtide_memory::{HostOptions, Pages};

use super::super::{HostArena, HostArenaOptions};
use super::{KIB, MIB, THREAD, arena, train};

#[test]
fn memory_that_nothing_uses_goes_back_after_a_while_and_not_before() {
    let arena = arena(None);
    // A clock that goes since the machine was started.
    let mut now = 86_400_000;
    let mut wait = |seconds: u64| {
        for _ in 0..seconds * 4 {
            now += 250;
            arena.tick(Duration::from_millis(now));
        }
    };
    let large = arena.alloc(64 * MIB, 64, THREAD).unwrap();
    wait(1);
    arena.free(large).unwrap();
    wait(1);
    assert_eq!(arena.stats().resident.get(), 64 * MIB);
    wait(4);
    assert_eq!(arena.stats().resident, Bytes::ZERO);
    (0..6).for_each(|_| {
        train(&arena, 1);
        wait(1);
    });
    let large = arena.alloc(64 * MIB, 64, THREAD).unwrap();
    arena.free(large).unwrap();
    wait(6);
    assert!(arena.stats().resident.get() < 4 * MIB, "how long steps take is not counted from the clock's zero");
}

/// Steps of which no two have the same sizes.
fn train_otherwise(arena: &HostArena, seed: u64) {
    let mut random = Random::new(seed);
    let mut blocks = Vec::new();
    for _ in 0..40 {
        blocks.push(arena.alloc(random.below(6 * MIB) + 32 * KIB, 64, THREAD).unwrap());
        if blocks.len() > 12 {
            arena.free(blocks.swap_remove(random.below(blocks.len() as u64) as usize)).unwrap();
        }
    }
    for block in blocks {
        arena.free(block).unwrap();
    }
    arena.step();
}

/// A step of a program whose batches differ in size; the gradients of its weights stay until the next.
fn train_batch(arena: &HostArena, rows: u64, weights: &mut Vec<u64>) {
    let widths = [13, 512, 512, 256, 64, 16, 432, 729, 351, 367, 1024, 1024, 512, 256, 1];
    let take = |bytes: u64| arena.alloc(bytes.max(32 * KIB), 64, THREAD).unwrap();
    let give = |block: u64| arena.free(block).unwrap();
    weights.drain(..).for_each(give);
    let forward: Vec<u64> = widths.iter().map(|width| take(rows * width * 4)).collect();
    let mut above = take(rows * 4);
    for (block, width) in forward.into_iter().zip(widths).rev() {
        let gradient = take(rows * width * 4);
        weights.push(take(width * 512 * 4));
        give(above);
        give(block);
        above = gradient;
    }
    give(above);
    arena.step();
}

#[test]
fn steps_that_nobody_has_planned_yet_hold_hardly_more_than_is_alive() {
    let arena = arena(None);
    let mut weights = Vec::new();
    for (step, rows) in [7100, 9900, 6300, 8700, 9300, 6900, 8100, 7700, 9700, 6100].into_iter().enumerate() {
        train_batch(&arena, rows, &mut weights);
        let stats = arena.stats();
        let peak = stats.peak_live.get();
        assert!(step < 2 || stats.resident.get() <= peak + peak / 14 + 4 * MIB, "step {step}: {stats:?}");
    }
}

#[test]
fn what_was_prefaulted_stays_until_it_is_asked_for() {
    let mut options = HostArenaOptions { decay: Duration::from_secs(1), ..HostArenaOptions::default() };
    options.pages = HostOptions { pages: Pages::Base, prefault: true, ..HostOptions::default() };
    let arena = HostArena::new(options).unwrap();
    let mut weights = Vec::new();
    for step in 0..8 {
        train_batch(&arena, 900 + step, &mut weights);
        arena.tick(Duration::from_secs(step));
    }
    let held = arena.stats().resident;
    (8..40).for_each(|second| arena.tick(Duration::from_secs(second)));
    assert_eq!(arena.stats().resident, held);
    for block in weights {
        arena.free(block).unwrap();
    }
    assert_eq!(arena.trim(), held);
}

#[test]
fn what_goes_back_early_has_an_end() {
    let arena = arena(None);
    let mut seeds = (0..7_u64).cycle();
    let mut step = || {
        train_otherwise(&arena, seeds.next().unwrap());
        arena.stats().resident
    };
    let _ = (0..280).map(|_| step()).last();
    arena.state().stop_learning();
    let _ = (0..280).map(|_| step()).last();
    let held = step();
    (0..35).for_each(|_| assert_eq!(step(), held, "nothing is touched that was given back"));
}

#[test]
fn memory_that_every_step_uses_is_never_given_back() {
    let arena = arena(None);
    (0..8).for_each(|_| train(&arena, 4));
    let held = arena.stats().resident;
    for second in 1..60 {
        train(&arena, 4);
        arena.tick(Duration::from_secs(second));
    }
    assert_eq!(arena.stats().resident, held);
    for second in 60..80 {
        arena.tick(Duration::from_secs(second));
    }
    assert_eq!(arena.stats().resident, Bytes::ZERO, "the program has stopped");
}
