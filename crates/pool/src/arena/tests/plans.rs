//! Plans on an arena: when one comes, what it costs, and what becomes of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lowtide_core::random::Random;
use lowtide_core::{Bytes, ThreadId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{Lag, Simulated, Source};

use super::{MIB, block, device, online};
use crate::arena::{Arena, ArenaOptions};
use crate::error::Error;
use crate::pool::{Address, Pool, Request};

fn planned(device: &Arc<Simulated>) -> Arena {
    let learner = Some(LearnerOptions { background: false, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, ..ArenaOptions::default() };
    Arena::new(Arc::clone(device) as Arc<dyn Source>, options).unwrap()
}

/// One step of a program: sizes in mebibytes, those that are divisible by three are kept to the end of the step.
fn run_step(pool: &Arena, sizes: &[u64], thread: u64) -> Vec<Address> {
    let mut kept = Vec::new();
    let mut all = Vec::new();
    for &size in sizes {
        let request = Request { thread: ThreadId(thread), ..Request::new(Bytes::new(size * MIB)) };
        let at = pool.alloc(&request).unwrap();
        all.push(at);
        if size % 3 == 0 {
            kept.push(at);
        } else {
            pool.free(at).unwrap();
        }
    }
    for at in kept.into_iter().rev() {
        pool.free(at).unwrap();
    }
    all
}

const SIZES: [u64; 12] = [3, 17, 9, 40, 2, 5, 28, 11, 64, 7, 19, 33];

#[test]
fn a_repeating_step_is_served_by_a_plan_from_the_third_on_without_a_call() {
    let device = device(None);
    let pool = planned(&device);
    for _ in 0..2 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    let before = device.calls().handles();
    let third = run_step(&pool, &SIZES, 0);
    pool.step();
    let fourth = run_step(&pool, &SIZES, 0);
    pool.step();
    assert_eq!(third, fourth);
    assert_eq!(device.calls().handles(), before);
    let served = pool.served();
    assert_eq!((served.hits, served.misses), (2 * SIZES.len() as u64, 0));
}

#[test]
fn a_step_that_is_longer_by_one_allocation_misses_that_one_alone() {
    let device = device(None);
    let pool = planned(&device);
    // Beside which the one more is next to nothing.
    block(&pool, 14_000);
    for _ in 0..4 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    let before = pool.served();
    let mut longer = SIZES.to_vec();
    longer.insert(5, 13);
    run_step(&pool, &longer, 0);
    pool.step();
    let after = pool.served();
    assert_eq!(after.hits - before.hits, SIZES.len() as u64);
    assert_eq!(after.misses - before.misses, 1);
}

#[test]
fn a_plan_that_an_earlier_run_has_left_is_served_from_the_first_step() {
    let folder = std::env::temp_dir().join(format!("lowtide-arena-{}", std::process::id()));
    let options = |background| {
        let learner = Some(LearnerOptions { background, cache: Some(folder.clone()), ..LearnerOptions::default() });
        ArenaOptions { learner, ..ArenaOptions::default() }
    };
    let earlier = Arena::new(device(None), options(false)).unwrap();
    for _ in 0..6 {
        run_step(&earlier, &SIZES, 0);
        earlier.step();
    }
    drop(earlier);
    let later = Arena::new(device(None), options(true)).unwrap();
    run_step(&later, &SIZES, 0);
    later.step();
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(later.served().hits, SIZES.len() as u64);
}

#[test]
fn a_plan_makes_room_before_more_is_reserved_than_without_it() {
    let device = device(None);
    let (pool, other) = (planned(&device), online(&self::device(None)));
    let mut longer = SIZES.to_vec();
    longer.insert(5, 90);
    for pool in [&pool, &other] {
        for _ in 0..4 {
            run_step(pool, &SIZES, 0);
            pool.step();
        }
    }
    assert!(pool.served().hits > 0);
    for pool in [&pool, &other] {
        run_step(pool, &longer, 0);
        pool.step();
    }
    let (planned, online) = (pool.stats().peak_reserved.get(), other.stats().peak_reserved.get());
    assert!(planned <= online + online / 500, "{planned} of {online}");
    let before = pool.served().hits;
    for _ in 0..80 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    assert!(pool.served().hits >= before + 2 * SIZES.len() as u64, "it is served again after a while");
}

#[test]
fn a_block_that_outlives_its_step_keeps_its_memory_when_a_plan_comes() {
    let device = device(None);
    let pool = planned(&device);
    let weights: Vec<Address> = (0..5).map(|_| block(&pool, 30)).collect();
    let mut gradient = None;
    let mut bound = 0;
    for _ in 0..6 {
        if let Some(last) = gradient.take() {
            pool.free(last).unwrap();
        }
        run_step(&pool, &SIZES, 0);
        gradient = Some(block(&pool, 100));
        bound = bound.max(pool.stats().live.get());
        pool.step();
    }
    let served = pool.served();
    assert!(served.misses == 0 && served.hits >= 3 * SIZES.len() as u64, "{served:?}");
    // The weights and the gradient or the step's own peak, and not much more.
    let peak = 150 + 128 + 8;
    assert!(pool.stats().reserved.get() <= peak * MIB, "{}", pool.stats().reserved);
    for at in weights {
        pool.free(at).unwrap();
    }
}

#[test]
fn a_plan_that_is_not_followed_gives_its_memory_up() {
    let device = device(Some(600 * MIB));
    let pool = planned(&device);
    for _ in 0..4 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    let blocks: Vec<Address> = (0..290).map(|_| block(&pool, 2)).collect();
    assert_eq!(blocks.len(), 290);
    for at in blocks {
        pool.free(at).unwrap();
    }
    pool.step();
    run_step(&pool, &SIZES, 0);
}

#[test]
fn blocks_of_a_plan_that_was_given_up_are_freed_like_any_other() {
    let device = device(None);
    let pool = planned(&device);
    for _ in 0..4 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    let inside = block(&pool, SIZES[0]);
    pool.trim().unwrap();
    assert!(matches!(pool.free(Address(inside.0 + 512)), Err(Error::ForeignAddress { .. } | Error::DoubleFree { .. })));
    pool.free(inside).unwrap();
    assert_eq!(pool.stats().live, Bytes::ZERO);
    assert!(matches!(pool.free(inside), Err(Error::ForeignAddress { .. } | Error::DoubleFree { .. })));
    pool.trim().unwrap();
    assert_eq!(device.calls().committed, Bytes::ZERO);
}

#[test]
fn steps_that_nobody_marks_are_found_and_planned() {
    let device = device(None);
    let learner = Some(LearnerOptions { background: false, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, find_steps: Some(0), ..ArenaOptions::default() };
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    for _ in 0..40 {
        run_step(&pool, &SIZES, 0);
    }
    assert!(pool.served().hits > 10 * SIZES.len() as u64, "{:?}", pool.served());
}

#[test]
fn a_plan_that_is_made_in_the_background_is_mapped_a_few_handles_at_a_time() {
    let device = device(None);
    let learner = Some(LearnerOptions { background: true, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, ..ArenaOptions::on_device() };
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    let sizes = SIZES.map(|size| 8 * size);
    let mut mapped = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    while pool.served().hits == 0 {
        assert!(Instant::now() < deadline, "no plan came");
        run_step(&pool, &sizes, 0);
        let before = device.calls().mapped;
        device.advance(1_000_000_000);
        pool.step();
        mapped.push(device.calls().mapped - before);
        std::thread::sleep(Duration::from_millis(1));
    }
    // After the steps 1, 2, 4, … free memory may be defragmented; after the others only a plan is mapped.
    let steps = mapped.iter().copied().zip(1_u64..);
    let of_the_plan: Vec<u64> = steps.filter(|(_, step)| !step.is_power_of_two()).map(|(mapped, _)| mapped).collect();
    assert!(of_the_plan.iter().sum::<u64>() > 100, "{mapped:?}");
    let most = ArenaOptions::on_device().handles_at_once.get() as u64;
    assert!(of_the_plan.iter().all(|&mapped| mapped <= most), "{mapped:?}");
}

#[test]
fn while_the_device_is_at_work_a_plan_is_mapped_ahead_and_not_while_it_is_idle() {
    let device = device(None);
    let learner = Some(LearnerOptions { background: true, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, ..ArenaOptions::on_device() };
    let most = options.handles_at_once.get() as u64;
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    let sizes = SIZES.map(|size| 8 * size);
    let mapped_by = |ask: &dyn Fn()| {
        let before = device.calls().mapped;
        ask();
        device.calls().mapped - before
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut ahead = Vec::new();
    while pool.served().hits == 0 {
        assert!(Instant::now() < deadline, "no plan came");
        device.advance(1_000_000_000);
        run_step(&pool, &sizes, 0);
        device.set_lag(Lag::After(0));
        assert_eq!(mapped_by(&|| pool.work_ahead(Duration::from_secs(1))), 0, "the program would wait for it");
        device.set_lag(Lag::After(1_000_000_000));
        ahead.push(mapped_by(&|| pool.work_ahead(Duration::from_secs(1))));
        pool.step();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(ahead.iter().any(|&mapped| mapped > most), "{ahead:?}");
}

#[test]
fn a_plan_comes_also_where_what_stays_alive_lies_elsewhere_in_every_step() {
    let device = device(None);
    let learner = Some(LearnerOptions { background: true, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, ..ArenaOptions::default() };
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    let mut random = Random::new(5);
    let sizes: Vec<u64> = (0..400).map(|_| 1 + random.below(60)).collect();
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut input = block(&pool, 90);
    while pool.served().hits == 0 {
        assert!(Instant::now() < deadline, "no plan came");
        run_step(&pool, &sizes, 0);
        // The next input is there before this one goes.
        let next = block(&pool, 90);
        pool.free(std::mem::replace(&mut input, next)).unwrap();
        pool.step();
    }
}

#[test]
fn a_program_that_begins_to_repeat_late_is_planned_all_the_same() {
    let device = device(None);
    let learner = Some(LearnerOptions { background: false, ..LearnerOptions::default() });
    let options = ArenaOptions { learner, find_steps: Some(0), ..ArenaOptions::on_device() };
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    let mut random = Random::new(3);
    for _ in 0..3 * (1 << 16) {
        pool.free(block(&pool, 1 + random.below(100))).unwrap();
    }
    assert_eq!(pool.served().hits, 0);
    // As long as steps are not looked for, and some more.
    for _ in 0..(1 << 16) / SIZES.len() + 200 {
        run_step(&pool, &SIZES, 0);
    }
    assert!(pool.served().hits > 10 * SIZES.len() as u64, "{:?}", pool.served());
}

#[test]
fn memory_of_a_plan_that_was_dropped_serves_again_before_the_step_is_closed() {
    let device = device(None);
    let pool = planned(&device);
    for _ in 0..4 {
        run_step(&pool, &SIZES, 0);
        pool.step();
    }
    let reserved = device.calls().committed;
    let planned: Vec<Address> = SIZES.iter().map(|&size| block(&pool, size)).collect();
    // The plan has no room for it.
    let odd = block(&pool, 3 * SIZES.iter().sum::<u64>());
    pool.free(odd).unwrap();
    for address in planned {
        pool.free(address).unwrap();
    }
    let before = device.calls().committed;
    assert!(before > reserved);
    // As much as all of it, in blocks that no plan has.
    let sizes = (0..).map(|number| 1 + number % 7).scan(0, |sum, size| {
        *sum += size;
        (*sum <= before.get() / MIB).then_some(size)
    });
    let blocks: Vec<Address> = sizes.map(|size| block(&pool, size)).collect();
    assert!(device.calls().committed <= before + Bytes::new(4 * MIB), "{} after {before}", device.calls().committed);
    for address in blocks {
        pool.free(address).unwrap();
    }
}
