//! Explanations against a slow twin: what is said to be saved is what a recount of the changed buffers saves. And how
//! soon there is one.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::problems::{Features, Gaps, PLAIN, problems};
use crate::common::{buffer, property, work};
use lowtide_core::{
    Absence, Bond, BufferIndex, Bytes, Change, Ending, Explanation, Family, Label, Lifetime, Problem, Remedy, StepEnd,
    StepIndex, StreamId, TextIndex, Usage,
};
use lowtide_plan::{At, explain, lower_bound};
use proptest::prelude::*;

// The twin: buffers with what a change does to them, counted event by event.

struct Twin<'a> {
    problem: &'a Problem,
    ends: BTreeMap<BufferIndex, i64>,
    parts: BTreeMap<BufferIndex, u64>,
    absences: Vec<Absence>,
    joined: Vec<(BufferIndex, BufferIndex)>,
}

impl<'a> Twin<'a> {
    fn new(problem: &'a Problem) -> Self {
        Self { problem, ends: BTreeMap::new(), parts: BTreeMap::new(), absences: Vec::new(), joined: Vec::new() }
    }

    fn ending(mut self, ends: &[Ending]) -> Self {
        self.ends.extend(ends.iter().map(|ending| (ending.buffer, ending.at)));
        self
    }

    fn changed(mut self, change: &Change) -> Self {
        match change {
            Change::InPlace { pairs } => self.joined.clone_from(pairs),
            Change::Order { pairs } => {
                let begin = |buffer: BufferIndex| self.problem.buffer(buffer).lifetime.lower;
                self.ends.extend(pairs.iter().map(|&(buffer, before)| (buffer, begin(before))));
            }
            Change::Release(release) => return self.ending(&release.ends),
            Change::Split { family, parts } => self.parts.extend(family.buffers().map(|b| (b, u64::from(*parts)))),
            Change::Swap { absences, .. } => self.absences.clone_from(absences),
            Change::Alignment { .. } | Change::Plan => panic!("not a change to what is alive"),
        }
        self
    }

    fn held(&self, index: BufferIndex, time: i64) -> u64 {
        let buffer = self.problem.buffer(index);
        let within = |life: Lifetime| life.lower <= time && time < life.upper;
        let gone = self.ends.get(&index).is_some_and(|&end| end <= time)
            || self.absences.iter().any(|absence| absence.buffer == index && within(absence.interval));
        if gone || !within(buffer.lifetime) {
            return 0;
        }
        let gap = buffer.gaps.iter().find(|gap| within(gap.lifetime));
        let kept = gap.map(|gap| gap.window.map_or(0, |window| (window.upper - window.lower).get()));
        kept.unwrap_or(buffer.size.get()).div_ceil(self.parts.get(&index).copied().unwrap_or(1))
    }

    /// What is alive at `time`, as the bound of a problem that has nothing else.
    fn live(&self, time: i64) -> u64 {
        let size = |index| self.held(index, time);
        let held = self.problem.indices().map(|index| buffer(&format!("{index:?}"), 0, 1, size(index)));
        let mut moment = Problem::new(held.collect());
        moment.may_share.clone_from(&self.problem.may_share);
        moment.aliases.clone_from(&self.problem.aliases);
        for &(a, b) in &self.joined {
            let (of_a, rest): (Vec<_>, Vec<_>) =
                moment.aliases.drain(..).partition(|set| set.contains(&a) || set.contains(&b));
            let mut set: Vec<BufferIndex> = of_a.into_iter().flatten().chain([a, b]).collect();
            set.sort_unstable();
            set.dedup();
            moment.aliases = rest.into_iter().chain([set]).collect();
        }
        lower_bound(&moment).expect("it makes sense").get()
    }

    /// The times of the scope at which anything can change, its first included.
    fn times(&self, scope: Lifetime) -> Vec<i64> {
        let lives = self.problem.buffers.iter().map(|buffer| buffer.lifetime);
        let gaps = self.problem.buffers.iter().flat_map(|buffer| buffer.gaps.iter().map(|gap| gap.lifetime));
        let windows = lives.chain(gaps).chain(self.absences.iter().map(|absence| absence.interval));
        let times = windows.flat_map(|window| [window.lower, window.upper]).chain(self.ends.values().copied());
        let within = |time: &i64| scope.lower < *time && *time < scope.upper;
        let mut times: Vec<i64> = times.filter(within).chain([scope.lower]).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    fn highest(&self, scope: Lifetime) -> u64 {
        self.times(scope).into_iter().map(|time| self.live(time)).max().unwrap_or(0)
    }
}

fn check(usage: &Usage, explanation: &Explanation) {
    let problem = &usage.problem;
    let Explanation { moment, scope, .. } = explanation;
    let before = Twin::new(problem);
    let highest = before.highest(*scope);
    assert_eq!(moment.live.get(), highest);
    assert_eq!(before.live(moment.time), highest);
    let mut earlier = before.times(*scope).into_iter().filter(|&time| time < moment.time);
    assert!(earlier.all(|time| before.live(time) < highest), "there is an earlier one");
    assert_eq!(explanation.alive.iter().map(|alive| alive.bytes).sum::<Bytes>(), moment.live);
    assert_eq!(explanation.alike.iter().map(|alike| alike.bytes).sum::<Bytes>(), moment.live);
    let holds = |index: &BufferIndex| before.held(*index, moment.time) > 0;
    assert_eq!(explanation.alive.len(), problem.indices().filter(holds).count());
    for late in &explanation.late {
        let after = Twin::new(problem).ending(&late.release.ends).highest(*scope);
        assert_eq!(late.saves.get(), highest.saturating_sub(after), "{late:?}");
        check_family(explanation, &late.release.family);
    }
    for remedy in &explanation.remedies {
        let after = Twin::new(problem).changed(&remedy.change).highest(*scope);
        assert_eq!((remedy.saves.get(), remedy.peak.get()), (highest - after, after), "{remedy:?}");
        assert!(remedy.saves > Bytes::ZERO);
        if let Change::InPlace { pairs } = &remedy.change {
            check_chains(problem, pairs);
        }
        if let Change::Swap { family, absences, .. } = &remedy.change {
            check_family(explanation, family);
            for &Absence { buffer, interval } in absences {
                let life = problem.buffer(buffer).lifetime;
                assert!(
                    life.lower < interval.lower && interval.upper < life.upper && interval.length() >= 2,
                    "{remedy:?}"
                );
            }
        }
    }
    let is_doubtful = |remedy: &Remedy| usage.clock.is_none() && matches!(remedy.change, Change::Swap { .. });
    let rank = |remedy: &Remedy| (remedy.change.name() != "leak", is_doubtful(remedy), std::cmp::Reverse(remedy.saves));
    assert!(explanation.remedies.is_sorted_by_key(rank), "leaks first, swaps without times last");
}

/// Buffers in one place are alive together only as input and output.
fn check_chains(problem: &Problem, pairs: &[(BufferIndex, BufferIndex)]) {
    let mut place: Vec<BufferIndex> = problem.indices().collect();
    for &(input, output) in pairs {
        let (from, to) = (place[output.get()], place[input.get()]);
        place.iter_mut().filter(|place| **place == from).for_each(|place| *place = to);
    }
    let life = |index: BufferIndex| problem.buffer(index).lifetime;
    for (a, b) in problem.indices().flat_map(|a| problem.indices().map(move |b| (a, b))) {
        let together = a < b && place[a.get()] == place[b.get()] && life(a).overlaps(life(b));
        assert!(!together || pairs.contains(&(a, b)) || pairs.contains(&(b, a)), "{a:?} and {b:?} of {pairs:?}");
    }
}

fn check_family(explanation: &Explanation, family: &Family) {
    let alive = |index: &BufferIndex| explanation.alive.iter().any(|alive| alive.buffer == *index);
    assert!(!family.alive.is_empty() && family.alive.iter().all(alive), "{family:?}");
    let mut all: Vec<BufferIndex> = family.buffers().collect();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "no buffer twice: {family:?}");
}

/// What is known of a buffer: its site, stream and category, and how long the device took after the program let go.
type RawLabel = (Option<u32>, u64, Option<u32>, Option<i64>);

fn usages(features: Features) -> impl Strategy<Value = Usage> {
    let label = (option(2), 0..2_u64, option(2), proptest::option::of(1..4_i64));
    let labels = proptest::collection::vec(label, features.count);
    let steps = proptest::collection::btree_set(0..12_i64, 0..4);
    (problems(features), labels, steps).prop_map(|(problem, labels, steps)| labelled(problem, &labels, steps))
}

fn option(below: u32) -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(0..below)
}

fn labelled(problem: Problem, labels: &[RawLabel], steps: impl IntoIterator<Item = i64>) -> Usage {
    let mut usage = Usage::of(problem);
    usage.texts = vec!["one".into(), "two".into()];
    for ((label, &(site, stream, category, lag)), buffer) in
        usage.labels.iter_mut().zip(labels).zip(&usage.problem.buffers)
    {
        let freed = lag.map(|lag| buffer.lifetime.upper - lag).filter(|&freed| freed > buffer.lifetime.lower);
        let (site, category) = (site.map(TextIndex), category.map(TextIndex));
        *label = Label { site, category, stream: StreamId(stream), freed };
    }
    usage.steps = ends(steps);
    usage
}

fn ends(times: impl IntoIterator<Item = i64>) -> Vec<StepEnd> {
    times.into_iter().enumerate().map(|(n, at)| StepEnd { step: StepIndex(n as u64 + 1), at }).collect()
}

/// A step of a run that repeats it: how many events it has.
const STEP: i64 = 36;

/// Runs of steps that are alike, of other sizes in each or not, with some buffers that live on into later steps.
fn runs() -> impl Strategy<Value = Usage> {
    let length = prop_oneof![3 => 1..3_i64, 3 => 3..STEP, 1 => STEP..3 * STEP];
    let row =
        (0..STEP - 1, length, 1..9_u64, (option(2), 0..2_u64, option(2), proptest::option::weighted(0.2, 1..4_i64)));
    (proptest::collection::vec(row, 1..7), 2..5_i64, 0..3_u64, 0..9_u64).prop_map(|(rows, steps, growth, weight)| {
        let end = (steps - 1) * STEP + 2 * STEP / 3;
        let mut buffers = vec![buffer("weight", 0, end, weight)];
        let mut labels = vec![(None, 0, None, None)];
        for (step, &(lower, length, size, label)) in (0..steps).flat_map(|step| rows.iter().map(move |row| (step, row)))
        {
            let begin = step * STEP + lower;
            if begin < end {
                let id = format!("b{}", buffers.len());
                buffers.push(buffer(&id, begin, end.min(begin + length), size + growth * step as u64));
                labels.push(label);
            }
        }
        labelled(Problem::new(buffers), &labels, (1..steps).map(|step| step * STEP - 1))
    })
}

const BOUND: Features = Features { gaps: Gaps::Flat, aliases: true, may_share: true, size: 9, count: 9, ..PLAIN };

proptest! {
    #![proptest_config(property(2_000))]

    #[test]
    fn savings_are_what_a_recount_saves(usage in usages(Features { size: 9, count: 9, ..PLAIN })) {
        check(&usage, &explain(&usage, At::Peak, &work(1_000)).unwrap());
    }

    #[test]
    fn savings_of_bound_buffers_are_what_a_recount_saves(usage in usages(BOUND), event in 0..12_i64) {
        check(&usage, &explain(&usage, At::Peak, &work(1_000)).unwrap());
        if let Ok(explanation) = explain(&usage, At::Event(event), &work(1_000)) {
            prop_assert_eq!(explanation.scope, Lifetime { lower: event, upper: event + 1 });
            check(&usage, &explanation);
        }
        for end in &usage.steps {
            check(&usage, &explain(&usage, At::Step(end.step), &work(1_000)).unwrap());
        }
    }

    #[test]
    fn savings_in_runs_of_steps_are_what_a_recount_saves(usage in runs(), step in 1..4_u64) {
        check(&usage, &explain(&usage, At::Peak, &work(1_000)).unwrap());
        if let Ok(explanation) = explain(&usage, At::Step(StepIndex(step)), &work(1_000)) {
            check(&usage, &explanation);
        }
    }

    #[test]
    fn no_absence_of_one_buffer_saves_more(problem in problems(Features { size: 9, count: 8, ..PLAIN })) {
        let usage = Usage::of(problem);
        let explanation = explain(&usage, At::Peak, &work(1_000)).unwrap();
        let mut best = 0;
        for alive in &explanation.alive {
            let Lifetime { lower, upper } = usage.problem.buffer(alive.buffer).lifetime;
            for interval in (lower + 1..upper - 2).flat_map(|a| (a + 2..upper).map(move |b| Lifetime { lower: a, upper: b })) {
                let mut twin = Twin::new(&usage.problem);
                twin.absences.push(Absence { buffer: alive.buffer, interval });
                best = best.max(explanation.moment.live.get() - twin.highest(explanation.scope));
            }
        }
        let told = explanation.remedies.iter().filter(|remedy| bond(remedy) == Some(Bond::Tensor));
        prop_assert_eq!(told.map(|remedy| remedy.saves.get()).max().unwrap_or(0), best);
    }
}

/// The bond of a swap.
fn bond(remedy: &Remedy) -> Option<Bond> {
    if let Change::Swap { family, .. } = &remedy.change { Some(family.bond) } else { None }
}

#[test]
fn every_change_to_a_long_run_reaches_all_its_steps() {
    let (steps, per_step) = (40, 500);
    let row = |n: i64| {
        let (begin, place) = (n / per_step * 2 * per_step, n % per_step);
        let kept = place % 4 == 0;
        let (lower, upper) = if kept { (place, 2 * per_step - 1 - place) } else { (place, place + 3) };
        buffer(&format!("b{n}"), begin + lower, begin + upper.max(lower + 1), 512 * (1 + place as u64 % 50))
    };
    let problem = Problem::new((0..steps * per_step).map(row).collect());
    let labels: Vec<RawLabel> = (0..steps * per_step).map(|n| (Some((n % 100) as u32 / 50), 0, None, None)).collect();
    let usage = labelled(problem, &labels, (1..=steps).map(|step| step * 2 * per_step - 1));
    let explanation = explain(&usage, At::Peak, &work(1)).unwrap();
    let swaps = explanation.remedies.iter().filter_map(|remedy| match &remedy.change {
        Change::Swap { absences, .. } => Some(absences),
        _ => None,
    });
    let mut count = 0;
    for absences in swaps {
        // The peak comes again in every step: a change to some of them alone would save nothing.
        let steps_of: BTreeSet<i64> = absences.iter().map(|absence| absence.interval.lower / (2 * per_step)).collect();
        assert_eq!(steps_of.len() as i64, steps, "{absences:?}");
        count += 1;
    }
    assert!(count > 0, "{:?}", explanation.remedies);
}
