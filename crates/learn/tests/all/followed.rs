//! How a cursor follows a lane, and finds its place again.

use std::collections::HashSet;

use lowtide_core::Bytes;
use lowtide_learn::{Cursor, Slot, StepPlan};
use proptest::prelude::*;

use crate::player::{align, lane};

fn plan(sizes: &[u64]) -> StepPlan {
    let slot = |&bytes: &u64| Slot { lane: lane(0), bytes: Bytes::new(bytes), align: align(), offset: None };
    StepPlan::new(sizes.iter().map(slot).collect(), Bytes::ZERO, Bytes::ZERO, false)
}

fn follow(plan: &StepPlan, cursor: &mut Cursor, sizes: &[u64]) -> Vec<Option<u32>> {
    sizes.iter().map(|&bytes| cursor.next(plan, Bytes::new(bytes), align())).collect()
}

#[test]
fn a_step_as_planned_is_followed_slot_by_slot_in_every_step() {
    let sizes: Vec<u64> = (0..100).map(|number| number % 7 + 1).collect();
    let plan = plan(&sizes);
    let mut cursor = Cursor::new(&plan, lane(0));
    for _ in 0..3 {
        let expected: Vec<Option<u32>> = (0..100).map(Some).collect();
        assert_eq!(follow(&plan, &mut cursor, &sizes), expected);
        assert_eq!(cursor.next(&plan, Bytes::new(1), align()), None, "the step is over");
        cursor.restart();
    }
}

#[test]
fn an_insertion_that_looks_like_a_later_slot_costs_that_slot() {
    let plan = plan(&[1, 2, 3, 4, 5, 6]);
    let mut cursor = Cursor::new(&plan, lane(0));
    let found = follow(&plan, &mut cursor, &[1, 3, 2, 3, 4, 5, 6]);
    assert_eq!(found, [Some(0), Some(2), Some(1), None, Some(3), Some(4), Some(5)]);
}

#[test]
fn what_is_left_out_is_passed_over() {
    let sizes: Vec<u64> = (1..=300).collect();
    let plan = plan(&sizes);
    for (gap, most) in [(1, 0), (3, 0), (40, 1), (200, 3)] {
        let mut cursor = Cursor::new(&plan, lane(0));
        let left: Vec<u64> = sizes.iter().copied().filter(|&size| size <= 20 || size > 20 + gap).collect();
        let missed = follow(&plan, &mut cursor, &left).iter().filter(|slot| slot.is_none()).count();
        assert!(missed <= most, "{missed} missed after {gap} were left out");
    }
}

#[test]
fn a_lane_with_another_name_is_known_by_its_first_size() {
    let sizes = [7, 8, 9];
    let slot =
        |thread: u64, bytes: u64| Slot { lane: lane(thread), bytes: Bytes::new(bytes), align: align(), offset: None };
    let two = StepPlan::new(
        sizes.iter().flat_map(|&bytes| [slot(1, bytes), slot(2, bytes + 10)]).collect(),
        Bytes::ZERO,
        Bytes::ZERO,
        false,
    );
    let mut cursor = Cursor::new(&two, lane(99));
    assert_eq!(follow(&two, &mut cursor, &[17, 18, 19]), [Some(1), Some(3), Some(5)]);
    let mut stranger = Cursor::new(&two, lane(98));
    assert_eq!(follow(&two, &mut stranger, &[1000, 1001]), [None, None]);
    let one = plan(&sizes);
    let mut cursor = Cursor::new(&one, lane(99));
    assert_eq!(follow(&one, &mut cursor, &[8, 9]), [Some(1), Some(2)]);
}

#[test]
fn an_allocation_of_another_size_that_comes_soon_after_anyhow_costs_little() {
    let planned: Vec<u64> = (0..2000).map(|place| 1 + place % 20 * 3 + place / 400).collect();
    let plan = plan(&planned);
    let mut asked = planned.clone();
    assert_eq!((asked[735], asked[737]), (47, 53));
    asked[735] = 53;
    let mut cursor = Cursor::new(&plan, lane(0));
    let missed = follow(&plan, &mut cursor, &asked).iter().filter(|slot| slot.is_none()).count();
    assert!(missed <= 2, "{missed} missed");
}

proptest! {
    #[test]
    fn slots_are_of_the_size_asked_for_and_given_once(
        planned in prop::collection::vec(1_u64..6, 0..80),
        asked in prop::collection::vec(1_u64..7, 0..120),
    ) {
        let plan = plan(&planned);
        let mut cursor = Cursor::new(&plan, lane(0));
        for _ in 0..2 {
            let mut given = HashSet::new();
            for (found, &bytes) in follow(&plan, &mut cursor, &asked).into_iter().zip(&asked) {
                if let Some(slot) = found {
                    prop_assert_eq!(planned[slot as usize], bytes);
                    prop_assert!(given.insert(slot), "slot {} was given twice", slot);
                }
            }
            cursor.restart();
        }
    }

    #[test]
    fn a_few_changes_cost_a_few_misses(
        edits in prop::collection::vec((0_usize..1900, 0_usize..4, 1_u64..500), 0..4),
    ) {
        // Layers of twenty sizes, so that a place is told only by its surroundings.
        let planned: Vec<u64> = (0..2000).map(|place| 1 + place % 20 * 3 + place / 400).collect();
        let plan = plan(&planned);
        let mut asked = planned.clone();
        for &(at, left_out, inserted) in &edits {
            asked.splice(at..at + left_out, [inserted]);
        }
        let mut cursor = Cursor::new(&plan, lane(0));
        let missed = follow(&plan, &mut cursor, &asked).iter().filter(|slot| slot.is_none()).count();
        prop_assert!(missed <= 14 * edits.len(), "{} missed after {:?}", missed, edits);
    }
}
