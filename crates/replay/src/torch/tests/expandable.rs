//! The rules of expandable segments.

use lowtide_core::Bytes;

use super::check::check;
use super::*;

fn expandable() -> Expandable {
    pool("expandable_segments:True")
}

#[test]
fn blocks_lie_in_a_row_and_memory_comes_by_pages() {
    let pool = expandable();
    let first = take(&pool, 15 * MIB);
    assert_eq!(reserved(&pool), 20 * MIB);
    let second = take(&pool, 15 * MIB);
    assert_eq!(second.0, first.0 + 15 * MIB, "it begins in the rest of the first page");
    assert_eq!(reserved(&pool), 40 * MIB);
    take(&pool, 10 * MIB);
    assert_eq!(reserved(&pool), 40 * MIB);
}

#[test]
fn every_page_is_a_handle_of_its_own() {
    let device = device(None);
    let pool = Expandable::open(device.clone(), "");
    take(&pool, 50 * MIB);
    take(&pool, 5);
    assert_eq!((device.calls().created, device.calls().reserved), (4, 2));
}

#[test]
fn any_rest_of_512_bytes_is_split_off() {
    let pool = expandable();
    take(&pool, 20 * MIB - 512);
    assert_eq!(pool.inspect(|backing| backing.blocks.all().count()), 3, "the rest of the page, and of the range");
}

#[test]
fn a_range_is_an_eighth_larger_than_the_device() {
    let pool: Expandable = small_pool(800, "");
    let block = take(&pool, 1);
    let range = pool.inspect(|backing| backing.blocks.all().map(|index| backing.blocks[index].bytes).sum::<u64>());
    assert_eq!(range, 900 * MIB);
    pool.free(block).unwrap();
}

#[test]
fn a_block_that_can_grow_is_the_last_choice() {
    let pool = expandable();
    let blocks = [30, 30, 30].map(|size| take(&pool, size * MIB));
    pool.free(blocks[0]).unwrap();
    assert_eq!(take(&pool, 8 * MIB), blocks[0], "ten at the end of the last page would fit better");
}

#[test]
fn pages_that_are_wholly_free_go_when_memory_runs_out() {
    let pool: Expandable = small_pool(800, "");
    let blocks = [700, 80, 15].map(|size| take(&pool, size * MIB));
    assert_eq!(reserved(&pool), 800 * MIB);
    pool.free(blocks[1]).unwrap();
    check(&pool);
    let moved = take(&pool, 85 * MIB);
    check(&pool);
    assert_eq!(moved.0, blocks[2].0 + 15 * MIB, "the pages between went to the end");
    assert_eq!(reserved(&pool), 800 * MIB);
    assert!(is_out_of_memory(&try_take(&pool, 30 * MIB)));
    check(&pool);
}

#[test]
fn a_gap_is_filled_before_the_end_grows() {
    let pool = expandable();
    let blocks = [40, 40, 40].map(|size| take(&pool, size * MIB));
    pool.free(blocks[1]).unwrap();
    assert_eq!(pool.trim(), Ok(Bytes::new(40 * MIB)));
    check(&pool);
    assert_eq!(take(&pool, 25 * MIB), blocks[1]);
    assert_eq!(reserved(&pool), 120 * MIB, "two pages of the gap");
    check(&pool);
}

#[test]
fn a_gap_between_free_memory_becomes_one_block_again() {
    let pool = expandable();
    let blocks = [30, 60, 30].map(|size| take(&pool, size * MIB));
    pool.free(blocks[1]).unwrap();
    assert_eq!(pool.trim(), Ok(Bytes::new(40 * MIB)), "ten before and ten behind two pages");
    check(&pool);
    assert_eq!(take(&pool, 60 * MIB), blocks[1]);
    assert_eq!(reserved(&pool), 120 * MIB);
    check(&pool);
}

#[test]
fn what_is_free_goes_with_its_range_on_trim() {
    let device = device(None);
    let pool = Expandable::open(device.clone(), "");
    for stream in 0..3 {
        let blocks = [take_on(&pool, 5, stream), take_on(&pool, 50 * MIB, stream)];
        free_all(&pool, &blocks);
    }
    assert_eq!(pool.trim(), Ok(Bytes::new(3 * 62 * MIB)));
    assert_eq!(device.calls().committed, Bytes::ZERO);
    assert_eq!(device.calls().released, 6);
}

#[test]
fn without_memory_for_all_pages_none_is_kept() {
    let pool: Expandable = small_pool(100, "");
    let first = take(&pool, 50 * MIB);
    assert!(is_out_of_memory(&try_take(&pool, 80 * MIB)));
    assert_eq!(reserved(&pool), 60 * MIB);
    check(&pool);
    pool.free(first).unwrap();
    take(&pool, 80 * MIB);
}

#[test]
fn addresses_without_memory_go_on_trim() {
    let device = device(Some(8 * MIB));
    let pool = Expandable::open(device.clone(), "");
    assert!(is_out_of_memory(&try_take(&pool, 2 * MIB)));
    pool.trim().unwrap();
    assert_eq!(device.calls().reserved, device.calls().released);
}

#[test]
fn the_size_of_a_large_page_is_an_option() {
    let pool: Expandable = pool("large_segment_size_mb:12,expandable_segments:True");
    take(&pool, 13 * MIB);
    assert_eq!(reserved(&pool), 24 * MIB);
}

#[test]
fn a_fraction_is_checked_before_pages_are_mapped() {
    let pool: Expandable = small_pool(100, "per_process_memory_fraction:0.5");
    take(&pool, 25 * MIB);
    assert!(is_out_of_memory(&try_take(&pool, 15 * MIB + 512)));
    take(&pool, 10 * MIB);
    assert_eq!(reserved(&pool), 40 * MIB);
}
