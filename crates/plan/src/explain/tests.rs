//! Kind by kind: the change that a reader of the recording would name is found.

use std::sync::atomic::AtomicBool;

use super::{At, explain};
use crate::options::Options;
use lowtide_core::{
    Absence, Bond, Buffer, BufferIndex, Bytes, Change, Clock, Explanation, Label, Late, Lateness, Lifetime, Problem,
    Remedy, StepEnd, StepIndex, TextIndex, Usage,
};

static NEVER: AtomicBool = AtomicBool::new(false);

fn at(position: usize) -> BufferIndex {
    BufferIndex::new(position)
}

/// A buffer's life, size and site.
type Row = (i64, i64, u64, u32);

fn usage(rows: &[Row], steps: impl IntoIterator<Item = i64>) -> Usage {
    let named = |(n, &(lower, upper, size, _)): (usize, &Row)| {
        Buffer::new(format!("b{n}"), Lifetime { lower, upper }, Bytes::new(size))
    };
    let label = |row: &Row| Label { site: Some(TextIndex(row.3)), ..Label::default() };
    let end = |(n, at): (usize, i64)| StepEnd { step: StepIndex(n as u64 + 1), at };
    Usage {
        labels: rows.iter().map(label).collect(),
        steps: steps.into_iter().enumerate().map(end).collect(),
        ..Usage::of(Problem::new(rows.iter().enumerate().map(named).collect()))
    }
}

const STEP: i64 = 100;

/// Three steps over a weight: two activations that wait for the way back, and two buffers that meet at the peak.
fn training() -> Vec<Row> {
    let mut rows = vec![(0, 3 * STEP + 10, 100, 0)];
    for begin in (0..3).map(|step| step * STEP) {
        rows.extend(
            [(5, 90, 40, 1), (10, 80, 40, 1), (40, 46, 60, 2), (44, 48, 60, 3)]
                .map(|(lower, upper, size, site)| (begin + lower, begin + upper, size, site)),
        );
    }
    rows
}

fn three_steps(rows: &[Row]) -> Usage {
    usage(rows, (1..=3).map(|step| step * STEP - 1))
}

fn explained(usage: &Usage, at: At) -> Explanation {
    let explanation = explain(usage, at, &Options::new(&NEVER)).unwrap();
    assert_eq!(explanation, explain(usage, at, &Options::new(&NEVER)).unwrap(), "it is the same each time");
    explanation
}

/// The best remedy called `name`.
fn best<'a>(explanation: &'a Explanation, name: &str) -> &'a Remedy {
    let named = explanation.remedies.iter().find(|remedy| remedy.change.name() == name);
    named.unwrap_or_else(|| panic!("no {name} among {:#?}", explanation.remedies))
}

fn late<'a>(explanation: &'a Explanation, name: &str) -> &'a Late {
    let named = explanation.late.iter().find(|late| late.release.why.name() == name);
    named.unwrap_or_else(|| panic!("no {name} among {:#?}", explanation.late))
}

fn indices(positions: &[usize]) -> Vec<BufferIndex> {
    positions.iter().map(|&position| at(position)).collect()
}

/// The bond of a swap.
fn bond(remedy: &Remedy) -> Option<Bond> {
    if let Change::Swap { family, .. } = &remedy.change { Some(family.bond) } else { None }
}

#[test]
fn who_is_alive_at_the_peak_is_told_singly_and_by_make() {
    let explanation = explained(&three_steps(&training()), At::Peak);
    assert_eq!((explanation.moment.time, explanation.moment.live.get()), (44, 300));
    assert_eq!((explanation.moment.step, explanation.peak), (Some(StepIndex(1)), explanation.moment));
    assert_eq!(explanation.alive.iter().map(|alive| alive.bytes.get()).collect::<Vec<_>>(), [100, 60, 60, 40, 40]);
    let alike: Vec<_> = explanation.alike.iter().map(|alike| (alike.buffers.len(), alike.bytes.get())).collect();
    assert_eq!(alike, [(1, 100), (2, 80), (1, 60), (1, 60)]);
}

#[test]
fn a_peak_that_comes_again_in_every_step_is_lowered_in_all_of_them() {
    let explanation = explained(&three_steps(&training()), At::Peak);
    let in_place = best(&explanation, "in-place");
    assert_eq!(in_place.change, Change::InPlace { pairs: vec![(at(3), at(4)), (at(7), at(8)), (at(11), at(12))] });
    assert_eq!((in_place.saves.get(), in_place.peak.get()), (60, 240));
    assert_eq!(best(&explanation, "order").saves.get(), 60);
    let Change::Split { family, parts } = &best(&explanation, "split").change else { panic!("a split") };
    assert_eq!((family.bond, family.alive.len(), family.elsewhere.len()), (Bond::Together, 2, 4));
    assert_eq!((*parts, best(&explanation, "split").saves.get()), (4, 90));
}

#[test]
fn the_same_tensor_is_found_in_steps_of_other_shapes() {
    let mut rows = training();
    // Each step is larger by half than the one before; the first also has what is set up.
    for (place, row) in rows.iter_mut().enumerate().skip(1) {
        row.2 += row.2 / 2 * ((place as u64 - 1) / 4);
    }
    let explanation = explained(&three_steps(&rows), At::Peak);
    let in_place = best(&explanation, "in-place");
    assert_eq!(in_place.change, Change::InPlace { pairs: vec![(at(11), at(12)), (at(7), at(8))] });
    assert_eq!((explanation.moment.live.get(), in_place.saves.get()), (500, 120));
}

#[test]
fn what_is_kept_is_away_while_memory_is_high_and_once_in_each_step() {
    let explanation = explained(&three_steps(&training()), At::Peak);
    let swaps: Vec<_> = explanation.remedies.iter().filter(|remedy| bond(remedy).is_some()).collect();
    let Change::Swap { family, absences, per_step } = &swaps[0].change else { panic!("a swap") };
    assert_eq!((swaps[0].saves.get(), &family.alive, per_step.get()), (100, &indices(&[0]), 100));
    let away = |begin| Absence { buffer: at(0), interval: Lifetime { lower: begin + 40, upper: begin + 48 } };
    assert_eq!(*absences, [away(0), away(STEP), away(2 * STEP)]);
    let Change::Swap { family, absences, per_step } = &swaps[1].change else { panic!("a swap") };
    assert_eq!((swaps[1].saves.get(), family.bond, per_step.get()), (80, Bond::Alike, 80));
    assert_eq!((family.alive.len(), family.elsewhere.len(), absences.len()), (2, 4, 6));
}

#[test]
fn letting_go_earlier_is_offered_where_the_next_does_not_fit_in_place() {
    let mut rows = training();
    rows.iter_mut().filter(|row| row.3 == 3).for_each(|row| row.2 = 70);
    let explanation = explained(&three_steps(&rows), At::Peak);
    assert!(explanation.remedies.iter().all(|remedy| remedy.change.name() != "in-place"));
    let order = best(&explanation, "order");
    assert_eq!(order.change, Change::Order { pairs: vec![(at(3), at(4)), (at(7), at(8)), (at(11), at(12))] });
    let just_after = late(&explanation, "just-after");
    assert_eq!((just_after.release.why, just_after.saves), (Lateness::JustAfter { events: 2 }, order.saves));
}

#[test]
fn a_step_or_an_event_is_explained_by_itself() {
    let mut rows = training();
    rows[11].2 = 90;
    let usage = three_steps(&rows);
    assert_eq!(explained(&usage, At::Peak).moment.step, Some(StepIndex(3)));
    let second = explained(&usage, At::Step(StepIndex(2)));
    assert_eq!((second.moment.time, second.scope), (144, Lifetime { lower: 100, upper: 200 }));
    assert_eq!((second.moment.live.get(), best(&second, "in-place").saves.get()), (300, 60));
    let event = explained(&usage, At::Event(60));
    assert_eq!((event.moment.live.get(), event.peak.time, best(&event, "swap").saves.get()), (180, 244, 100));
    let error = |at| explain(&usage, at, &Options::new(&NEVER)).unwrap_err().to_string();
    assert_eq!(error(At::Step(StepIndex(9))), "the trace has no step 9; it closes steps 1 to 3");
    assert_eq!(error(At::Event(310)), "there is no event 310; events go from 0 to 309");
}

#[test]
fn what_the_device_is_not_done_with_could_go_when_the_program_let_go() {
    let rows: Vec<Row> = (0..4).map(|n| (10 * n, 80, 10 + n as u64, n as u32 % 2)).collect();
    let mut usage = usage(&rows, []);
    usage.labels.iter_mut().zip(&rows).for_each(|(label, row)| label.freed = Some(row.0 + 5));
    let explanation = explained(&usage, At::Peak);
    assert_eq!(explanation.late.len(), 3, "the last is in use at the peak");
    let Change::Release(release) = &best(&explanation, "wait").change else { panic!("a release") };
    assert_eq!((release.family.bond, release.ends.len()), (Bond::Together, 4));
    assert_eq!((explanation.moment.live.get(), best(&explanation, "wait").saves.get()), (46, 33));
}

#[test]
fn what_a_variable_holds_until_it_is_assigned_again_is_late() {
    let mut rows = training();
    rows.extend((0..3).map(|step| (STEP * step + 39, STEP * (step + 1) + 46, 50, 4)));
    let explanation = explained(&three_steps(&rows), At::Peak);
    let replaced = late(&explanation, "replaced");
    assert_eq!(replaced.release.family.alive, indices(&[13, 14]));
    assert_eq!((explanation.moment.live.get(), replaced.saves.get()), (400, 50));
    assert!(replaced.release.ends.iter().all(|ending| ending.at % STEP == STEP - 1), "each goes with its step");
}

#[test]
fn a_swap_is_told_only_where_the_clock_leaves_time_for_it() {
    let mut usage = three_steps(&training());
    let mut timed = |nanoseconds: u64| {
        let readings = (0..=310).map(|event| event * nanoseconds).collect();
        usage.clock = Some(Clock { first: 0, every: 1, readings });
        explained(&usage, At::Peak).remedies.iter().any(|remedy| remedy.change.name() == "swap")
    };
    assert!(!timed(0), "no time at all");
    assert!(timed(1000), "a hundred bytes in many microseconds");
}

#[test]
fn what_each_step_leaves_behind_is_a_leak() {
    let mut rows = training();
    rows.extend((0..3).map(|step| (STEP * step + 60, 3 * STEP + 10, 8, 5)));
    let explanation = explained(&three_steps(&rows), At::Peak);
    let leak = late(&explanation, "leak");
    assert_eq!(leak.release.why, Lateness::Leak { per_step: Bytes::new(8) });
    assert_eq!((explanation.moment.time, leak.release.family.alive.len(), leak.saves.get()), (244, 2, 16));
    assert_eq!(explanation.remedies[0].change.name(), "leak", "what grows without end comes first");
}

#[test]
fn nothing_at_all_is_explained_as_nothing() {
    let usage = Usage::of(Problem::new(Vec::new()));
    let explanation = explained(&usage, At::Peak);
    assert_eq!((explanation.moment.live, explanation.remedies.len()), (Bytes::ZERO, 0));
    let error = explain(&usage, At::Event(0), &Options::new(&NEVER)).unwrap_err();
    assert_eq!(error.to_string(), "there is no event 0; nothing is ever alive");
}
