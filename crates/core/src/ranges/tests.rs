//! Every operation against a plain vector with an entry per number.

use std::ops::Range;

use proptest::prelude::*;

use super::*;

const NUMBERS: u64 = 48;

type Model = Vec<Option<u8>>;

fn range() -> impl Strategy<Value = Range<u64>> {
    (0..NUMBERS, 0..12_u64).prop_map(|(start, length)| start..(start + length).min(NUMBERS))
}

fn places(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Sets part of a model, and says how much of it was set before.
fn set(model: &mut Model, range: &Range<u64>, value: Option<u8>) -> u64 {
    let part = &mut model[places(range)];
    let known = part.iter().flatten().count() as u64;
    part.fill(value);
    known
}

/// The longest ranges of a model whose entries are alike as `is` has it.
fn runs(model: &[Option<u8>], is: impl Fn(Option<u8>) -> bool) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in (0..model.len()).filter(|&number| is(model[number])) {
        match runs.last_mut().filter(|run| run.end == number as u64) {
            Some(run) => run.end += 1,
            None => runs.push(number as u64..number as u64 + 1),
        }
    }
    runs
}

fn meeting(runs: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    runs.iter().filter(|run| common(run, range) > 0).cloned().collect()
}

proptest! {
    #[test]
    fn a_set_holds_what_was_inserted_and_not_removed(
        operations in prop::collection::vec((any::<bool>(), range()), 0..40),
        asked in range(),
        length in 1..8_u64,
    ) {
        let mut ranges = RangeSet::new();
        let mut model: Model = vec![None; NUMBERS as usize];
        for (inserts, range) in operations {
            let bytes = range.end - range.start;
            if inserts {
                prop_assert_eq!(ranges.insert(range.clone()), bytes - set(&mut model, &range, Some(0)));
            } else {
                prop_assert_eq!(ranges.remove(range.clone()), set(&mut model, &range, None));
            }
        }
        let all = runs(&model, |entry| entry.is_some());
        prop_assert_eq!(ranges.iter().collect::<Vec<_>>(), all.clone());
        prop_assert_eq!(all.iter().cloned().collect::<RangeSet>(), ranges.clone());
        prop_assert_eq!(ranges.overlapping(&asked).collect::<Vec<_>>(), meeting(&all, &asked));
        let mut gaps = runs(&model[places(&asked)], |entry| entry.is_none());
        for gap in &mut gaps {
            *gap = gap.start + asked.start..gap.end + asked.start;
        }
        prop_assert_eq!(ranges.covers(&asked), gaps.is_empty());
        prop_assert_eq!(ranges.gaps(&asked).collect::<Vec<_>>(), gaps);
        prop_assert_eq!(ranges.total(), model.iter().flatten().count() as u64);
        for at in 0..NUMBERS {
            prop_assert_eq!(ranges.containing(at), all.iter().find(|run| run.contains(&at)).cloned());
            prop_assert_eq!(ranges.ending_at(at), all.iter().find(|run| run.end == at).cloned());
        }
        let lowest = all.iter().find(|run| run.end - run.start >= length).map(|run| run.start);
        prop_assert_eq!(ranges.take_lowest(length), lowest);
        prop_assert!(lowest.is_none_or(|start| ranges.overlapping(&(start..start + length)).next().is_none()));
    }

    #[test]
    fn a_map_has_the_last_value_of_every_number(
        operations in prop::collection::vec((prop::option::of(any::<u8>()), range()), 0..40),
        asked in range(),
    ) {
        let mut ranges = RangeMap::new();
        let mut model: Model = vec![None; NUMBERS as usize];
        for (value, range) in operations {
            let known = set(&mut model, &range, value);
            let changed = match value {
                Some(value) => ranges.insert(range.clone(), value),
                None => ranges.remove(range.clone()),
            };
            prop_assert_eq!(changed, known);
        }
        let mut shown: Model = vec![None; NUMBERS as usize];
        for (range, &value) in ranges.iter() {
            prop_assert!(!range.is_empty());
            prop_assert_eq!(set(&mut shown, &range, Some(value)), 0, "ranges overlap");
        }
        prop_assert_eq!(&shown, &model);
        let met: Vec<_> = ranges.iter().filter(|(range, _)| common(range, &asked) > 0).collect();
        prop_assert_eq!(ranges.overlapping(&asked).collect::<Vec<_>>(), met);
        for at in 0..NUMBERS {
            prop_assert_eq!(ranges.containing(at).map(|(_, &value)| value), model[at as usize]);
        }
    }

    #[test]
    fn free_runs_are_found_by_place_and_by_length(
        operations in prop::collection::vec(range(), 0..40),
        asked in range(),
        length in 0..8_u64,
    ) {
        let mut free = FreeRuns::new();
        let mut model = RangeSet::new();
        for range in operations {
            // What is wholly in is taken out; of anything else, what is missing is put in.
            if !range.is_empty() && model.covers(&range) {
                model.remove(range.clone());
                free.remove(range);
            } else {
                let gaps: Vec<_> = model.gaps(&range).collect();
                for gap in gaps {
                    free.insert(gap);
                }
                model.insert(range);
            }
        }
        let mut all: Vec<_> = model.iter().collect();
        prop_assert_eq!(free.iter().collect::<Vec<_>>(), all.clone());
        prop_assert_eq!(free.overlapping(&asked).collect::<Vec<_>>(), meeting(&all, &asked));
        for at in 0..NUMBERS {
            prop_assert_eq!(free.containing(at), model.containing(at));
            prop_assert_eq!(free.ending_at(at), model.ending_at(at));
        }
        prop_assert_eq!(free.lowest(length), all.iter().find(|run| run.end - run.start >= length).cloned());
        all.sort_by_key(|run| (run.end - run.start, run.start));
        let fitting: Vec<_> = all.iter().filter(|run| run.end - run.start >= length).cloned().collect();
        prop_assert_eq!(free.tightest(length).collect::<Vec<_>>(), fitting);
        all.reverse();
        prop_assert_eq!(free.longest().collect::<Vec<_>>(), all);
    }
}

#[test]
fn neighbours_of_a_set_are_one_and_those_of_a_map_are_not() {
    let (mut ranges, mut values) = (RangeSet::new(), RangeMap::new());
    for range in [0..4, 8..12, 4..8] {
        ranges.insert(range.clone());
        values.insert(range, 'a');
    }
    assert!(ranges.iter().eq(std::iter::once(0..12)));
    assert_eq!(values.iter().count(), 3);
}

#[test]
fn ranges_may_end_at_the_last_number() {
    let mut ranges = RangeSet::new();
    assert_eq!(ranges.insert(0..u64::MAX), u64::MAX);
    assert_eq!(ranges.remove(1..u64::MAX), u64::MAX - 1);
    assert_eq!(ranges.total(), 1);
}
