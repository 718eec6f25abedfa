//! The rules of the caching allocator.

use lowtide_core::Bytes;

use super::check::check;
use super::*;

fn caching() -> Caching {
    pool("")
}

#[test]
fn small_blocks_share_a_segment_of_two_mebibytes() {
    let pool = caching();
    let (first, second) = (take(&pool, 1), take(&pool, MIB));
    assert_eq!(second.0, first.0 + 512);
    assert_eq!(reserved(&pool), 2 * MIB);
    take(&pool, MIB);
    assert_eq!(reserved(&pool), 4 * MIB);
}

#[test]
fn blocks_below_ten_mebibytes_share_a_large_segment() {
    let pool = caching();
    let (first, second) = (take(&pool, 9 * MIB), take(&pool, 9 * MIB));
    assert_eq!(second.0, first.0 + 9 * MIB);
    assert_eq!(reserved(&pool), 20 * MIB);
}

#[test]
fn larger_blocks_have_segments_of_their_own() {
    let pool = caching();
    take(&pool, 10 * MIB);
    take(&pool, 33 * MIB);
    assert_eq!(reserved(&pool), 44 * MIB);
}

#[test]
fn freed_neighbours_merge_inside_a_segment() {
    let pool = caching();
    let blocks: Vec<Address> = (0..4).map(|_| take(&pool, MIB / 2)).collect();
    for place in [0, 2, 1, 3] {
        pool.free(blocks[place]).unwrap();
        check(&pool);
    }
    assert_eq!(pool.inspect(|backing| backing.blocks.all().count()), 1);
}

#[test]
fn the_smallest_block_that_fits_is_taken() {
    let pool = caching();
    let sizes = [40, 20, 30].map(|size| (size, take(&pool, size * MIB)));
    for (_, block) in sizes {
        pool.free(block).unwrap();
    }
    assert_eq!(take(&pool, 25 * MIB), sizes[2].1);
    assert_eq!(take(&pool, 25 * MIB), sizes[0].1);
    assert_eq!(reserved(&pool), 90 * MIB);
}

#[test]
fn of_equal_blocks_that_of_the_newest_segment_is_taken() {
    let pool = caching();
    let [first, second] = [20, 20].map(|size| take(&pool, size * MIB));
    pool.free(first).unwrap();
    pool.free(second).unwrap();
    assert_eq!(take(&pool, 20 * MIB), second);
}

#[test]
fn of_equal_blocks_in_a_segment_the_lowest_is_taken() {
    let pool = caching();
    let blocks: Vec<Address> = (0..4).map(|_| take(&pool, MIB / 2)).collect();
    pool.free(blocks[2]).unwrap();
    pool.free(blocks[0]).unwrap();
    assert_eq!(take(&pool, MIB / 2), blocks[0]);
}

#[test]
fn a_rest_of_a_mebibyte_stays_with_a_large_block() {
    let pool = caching();
    take(&pool, 19 * MIB + 512);
    assert_eq!(pool.inspect(|backing| backing.blocks.all().count()), 1);
    take(&pool, 9 * MIB);
    assert_eq!(pool.inspect(|backing| backing.blocks.all().count()), 3, "eleven are left of twenty");
}

#[test]
fn small_and_large_blocks_do_not_mix() {
    let pool = caching();
    let large = take(&pool, 5 * MIB);
    pool.free(large).unwrap();
    take(&pool, MIB);
    assert_eq!(reserved(&pool), 22 * MIB);
}

#[test]
fn sizes_are_rounded_by_divisions_of_powers_of_two() {
    let pool: Caching = pool("roundup_power2_divisions:4");
    take(&pool, 70 * MIB);
    assert_eq!(reserved(&pool), 80 * MIB);
}

#[test]
fn oversize_blocks_are_neither_split_nor_given_to_small_requests() {
    let pool: Caching = pool("max_split_size_mb:50");
    let block = take(&pool, 60 * MIB);
    pool.free(block).unwrap();
    take(&pool, 30 * MIB);
    assert_eq!(reserved(&pool), 90 * MIB);
    assert_eq!(take(&pool, 50 * MIB), block, "ten are wasted, twenty would be too many");
    assert_eq!(pool.inspect(|backing| backing.blocks.all().count()), 2);
    pool.free(block).unwrap();
    let larger = take(&pool, 80 * MIB);
    pool.free(larger).unwrap();
    assert_eq!(take(&pool, 60 * MIB + 512), larger, "not twenty more than asked for");
    pool.free(larger).unwrap();
    pool.free(take(&pool, 60 * MIB)).unwrap();
}

#[test]
fn out_of_memory_oversize_blocks_go_first_and_only_as_many_as_needed() {
    let pool: Caching = small_pool(200, "max_split_size_mb:40");
    let small = take(&pool, 20 * MIB);
    let blocks = [40, 50, 60].map(|size| take(&pool, size * MIB));
    pool.free(small).unwrap();
    free_all(&pool, &blocks);
    take(&pool, 90 * MIB);
    assert_eq!(reserved(&pool), (20 + 40 + 90) * MIB, "sixty and fifty went");
    check(&pool);
}

#[test]
fn out_of_memory_one_oversize_block_goes_where_it_is_enough() {
    let pool: Caching = small_pool(200, "max_split_size_mb:40,max_non_split_rounding_mb:20");
    let blocks = [80, 110].map(|size| take(&pool, size * MIB));
    free_all(&pool, &blocks);
    take(&pool, 45 * MIB);
    assert_eq!(reserved(&pool), (110 + 46) * MIB, "the smaller one went");
}

#[test]
fn out_of_memory_all_segments_that_are_wholly_free_go() {
    let pool: Caching = small_pool(100, "");
    let blocks = [20, 30].map(|size| take(&pool, size * MIB));
    let small = take(&pool, 1);
    let (part, _rest) = (take(&pool, 9 * MIB), take(&pool, 9 * MIB));
    free_all(&pool, &blocks);
    pool.free(small).unwrap();
    pool.free(part).unwrap();
    take(&pool, 70 * MIB);
    assert_eq!(reserved(&pool), 90 * MIB, "the segment in use stayed");
    check(&pool);
}

#[test]
fn a_fraction_of_the_memory_is_not_passed() {
    let pool: Caching = small_pool(100, "per_process_memory_fraction:0.5");
    let block = take(&pool, 30 * MIB);
    assert!(is_out_of_memory(&try_take(&pool, 30 * MIB)));
    assert!(matches!(try_take(&pool, 51 * MIB), Err(Error::TooLarge { .. })));
    pool.free(block).unwrap();
    take(&pool, 50 * MIB);
    assert_eq!(reserved(&pool), 50 * MIB);
}

const COLLECTING: &str = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.2";

#[test]
fn garbage_that_is_old_goes_before_memory_is_taken() {
    let pool: Caching = small_pool(1000, COLLECTING);
    let blocks = [40, 40, 40].map(|size| take(&pool, size * MIB));
    assert_eq!(reserved(&pool), 120 * MIB);
    pool.free(blocks[0]).unwrap();
    pool.free(blocks[1]).unwrap();
    for _ in 0..3 {
        pool.free(take(&pool, 40 * MIB)).unwrap();
    }
    take(&pool, 60 * MIB);
    assert_eq!(reserved(&pool), 140 * MIB, "one of forty was not used for long");
    assert_eq!(take(&pool, 40 * MIB), blocks[1]);
    check(&pool);
}

#[test]
fn garbage_goes_round_by_round_until_it_is_enough() {
    let pool: Caching = small_pool(1000, COLLECTING);
    let blocks = [40, 50, 60].map(|size| take(&pool, size * MIB));
    pool.free(blocks[0]).unwrap();
    for _ in 0..2 {
        pool.free(take(&pool, 40 * MIB)).unwrap();
    }
    pool.free(blocks[2]).unwrap();
    take(&pool, 70 * MIB);
    assert_eq!(reserved(&pool), 120 * MIB, "forty were the oldest and not enough");
    check(&pool);
}

#[test]
fn without_a_fraction_no_garbage_is_collected() {
    let pool: Caching = small_pool(200, "garbage_collection_threshold:0.1");
    pool.free(take(&pool, 40 * MIB)).unwrap();
    take(&pool, 50 * MIB);
    assert_eq!(reserved(&pool), 90 * MIB);
}

#[test]
fn trim_gives_back_free_segments_and_says_how_much() {
    let pool = caching();
    let kept = take(&pool, 5 * MIB);
    pool.free(take(&pool, 32 * MIB)).unwrap();
    pool.free(take(&pool, 5)).unwrap();
    assert_eq!(pool.trim(), Ok(Bytes::new(34 * MIB)));
    assert_eq!(reserved(&pool), 20 * MIB);
    pool.free(kept).unwrap();
    assert_eq!(pool.trim(), Ok(Bytes::new(20 * MIB)));
    assert_eq!(pool.trim(), Ok(Bytes::ZERO));
    assert_eq!(pool.stats().peak_reserved.get(), 54 * MIB);
}
