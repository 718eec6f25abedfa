//! What a table serves, one call after the other.

use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::Served;

use super::fixtures::{KIB, of_slots, plan, request, slot};
use super::{Found, SlotTable};

/// A table of slots: the thread that asks for each, its offset and its size.
fn table(slots: &[(u64, u64, u64)]) -> SlotTable {
    SlotTable::new(Arc::new(plan(slots)))
}

fn take(table: &SlotTable, bytes: u64) -> Found {
    table.take(&request(0, bytes))
}

#[test]
fn blocks_that_come_as_planned_are_served_in_order() {
    let table = table(&[(0, 0, KIB), (0, 4 * KIB, KIB), (0, 2 * KIB, 2 * KIB)]);
    assert_eq!([KIB, KIB, 2 * KIB].map(|bytes| take(&table, bytes)), [0, 4 * KIB, 2 * KIB].map(Found::At));
    assert_eq!(table.restart(), Served { hits: 3, misses: 0 });
}

#[test]
fn each_thread_follows_its_own_part_of_the_plan() {
    let table = table(&[(0, 0, KIB), (1, KIB, KIB), (0, 2 * KIB, KIB), (1, 3 * KIB, KIB)]);
    let turns = [1, 0, 0, 1].map(|thread| table.take(&request(thread, KIB)));
    assert_eq!(turns, [KIB, 0, 2 * KIB, 3 * KIB].map(Found::At));
}

#[test]
fn a_thread_that_the_plan_does_not_have_is_missed() {
    let table = table(&[(0, 0, KIB)]);
    assert_eq!(table.take(&request(1, KIB)), Found::Missed);
    assert_eq!(table.in_use().count(), 0);
}

#[test]
fn a_size_that_the_plan_does_not_have_is_missed_and_the_next_is_served() {
    let table = table(&[(0, 0, KIB), (0, KIB, KIB)]);
    assert_eq!(take(&table, 3 * KIB), Found::Missed);
    assert_eq!(take(&table, KIB), Found::At(0));
    assert_eq!(table.served(), Served { hits: 1, misses: 1 });
}

#[test]
fn a_slot_without_a_place_is_a_hit_that_is_placed_online() {
    let table = SlotTable::new(Arc::new(of_slots(vec![slot(0, None, KIB), slot(0, Some(0), KIB)])));
    assert_eq!([take(&table, KIB), take(&table, KIB)], [Found::Online, Found::At(0)]);
    assert_eq!(table.in_use().count(), 1);
    assert_eq!(table.served(), Served { hits: 2, misses: 0 });
}

#[test]
fn a_slot_that_is_still_in_use_in_the_next_step_is_missed() {
    let table = table(&[(0, 0, KIB)]);
    assert_eq!(take(&table, KIB), Found::At(0));
    table.restart();
    assert_eq!(take(&table, KIB), Found::Missed);
    assert!(table.give(0));
    table.restart();
    assert_eq!(take(&table, KIB), Found::At(0));
}

#[test]
fn a_slot_is_missed_while_one_that_shares_its_addresses_is_in_use() {
    let table = table(&[(0, 0, 2 * KIB), (0, KIB, 3 * KIB), (1, 2 * KIB, KIB)]);
    assert_eq!(take(&table, 2 * KIB), Found::At(0));
    assert_eq!(take(&table, 3 * KIB), Found::Missed);
    assert_eq!(table.take(&request(1, KIB)), Found::At(2 * KIB), "slots that only touch share nothing");
}

#[test]
fn slots_that_begin_at_one_offset_are_told_apart_when_given_back() {
    let table = table(&[(0, 0, KIB), (0, 0, 2 * KIB)]);
    for bytes in [KIB, 2 * KIB] {
        assert_eq!(take(&table, bytes), Found::At(0));
        assert_eq!(table.at(0).map(|slot| slot.bytes.get()), Some(bytes));
        assert!(table.give(0));
    }
    assert_eq!(table.at(0), None);
}

#[test]
fn a_block_is_given_back_once() {
    let table = table(&[(0, 0, KIB)]);
    assert!(!table.give(0), "nothing was taken yet");
    take(&table, KIB);
    assert!(table.give(0));
    assert!(!table.give(0));
    assert!(!table.give(512), "no slot begins there");
}

#[test]
fn slots_under_a_foreign_block_are_missed_until_it_is_gone() {
    let table = table(&[(0, 0, KIB), (0, KIB, 2 * KIB), (0, 3 * KIB, 3 * KIB)]);
    let all = || [KIB, 2 * KIB, 3 * KIB].map(|bytes| take(&table, bytes));
    table.block(KIB, 2 * KIB, true);
    table.block(2 * KIB, 3 * KIB, true);
    assert_eq!(all(), [Found::At(0), Found::Missed, Found::At(3 * KIB)]);
    table.restart();
    table.block(KIB, 2 * KIB, false);
    assert_eq!(all()[1], Found::Missed, "the other block is still there");
    table.restart();
    table.block(2 * KIB, 3 * KIB, false);
    assert_eq!(all()[1], Found::At(KIB));
}

#[test]
fn a_plan_for_two_steps_serves_its_halves_in_turn() {
    let mut plan = of_slots(vec![slot(0, Some(0), KIB), slot(0, Some(KIB), KIB)]);
    plan.steps = 2;
    let table = SlotTable::new(Arc::new(plan));
    for (offset, before) in [(0, None), (KIB, Some(0)), (0, Some(KIB)), (KIB, Some(0))] {
        assert_eq!(take(&table, KIB), Found::At(offset), "the block of the step before is still in use");
        assert_eq!(take(&table, KIB), Found::Missed, "the other half is not this step's");
        assert!(before.is_none_or(|before| table.give(before)));
        assert_eq!(table.restart(), Served { hits: 1, misses: 1 });
    }
}

#[test]
fn a_closed_table_serves_nothing_and_leaves_what_was_in_use_to_the_closer() {
    let table = table(&[(0, 0, KIB), (0, KIB, KIB), (0, 2 * KIB, KIB)]);
    take(&table, KIB);
    take(&table, KIB);
    table.give(0);
    table.close();
    assert_eq!(take(&table, KIB), Found::Missed);
    let left: Vec<_> = table.in_use().filter_map(|slot| slot.offset).map(Bytes::get).collect();
    assert_eq!(left, [KIB]);
    assert!(!table.give(KIB), "the closer has it");
    assert!(table.has_left(KIB) && !table.has_left(0) && !table.has_left(2 * KIB));
}

#[test]
fn pairs_of_slots_that_share_addresses_are_counted_as_they_are() {
    let slots = [(0, 0, 4), (0, 4, 4), (0, 0, 8), (0, 6, 6), (0, 12, 1), (0, 0, 20)];
    let plan = plan(&slots.map(|(thread, offset, size)| (thread, offset * KIB, size * KIB)));
    let overlap = |one: (u64, u64, u64), two: (u64, u64, u64)| one.1 < two.1 + two.2 && two.1 < one.1 + one.2;
    let pairs = (0..slots.len()).flat_map(|one| (0..one).map(move |two| (one, two)));
    let expected = pairs.filter(|&(one, two)| overlap(slots[one], slots[two])).count() as u64;
    assert_eq!(SlotTable::pairs_of_rivals(&plan), expected);
}

#[test]
fn many_slots_at_one_address_are_counted_in_no_time() {
    let plan = plan(&vec![(0, 0, KIB); 60_000]);
    assert_eq!(SlotTable::pairs_of_rivals(&plan), 60_000 * 59_999 / 2);
}
