//! What the page knows before its data is there: layouts, curves, groups and an overview of the map; and, packed, how
//! deep the map can be looked into.

use std::borrow::Cow;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::{Buffer, BufferIndex, Bytes, Layout, Moment, Origin, TextIndex, Usage};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::detail::{CROWDED, FAN};
use crate::{Curve, Detail, Findings, Grouping, alive_at, peak};

/// Above this many buffers only the recorded and the last layout of a run can be looked into; of the others there is an
/// overview.
const MOST_DETAILED: usize = 200_000;

/// Below this many buffers the data is there as soon as an overview would be.
const LEAST_FOR_OVERVIEW: usize = 5_000;

/// How many readings of the clock a page carries; events between two of them are timed in proportion.
const MOST_READINGS: usize = 1 << 18;

/// How many things an overview may hold.
const MOST_IN_OVERVIEW: usize = 8_000;

const CURVE_POINTS: usize = 2_000;

/// One run to show.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What it is called.
    pub name: &'a str,
    /// How it used memory; it has at least one layout.
    pub usage: &'a Usage,
    /// The bytes alive over time, of all pools together.
    pub live: &'a Curve,
    /// What was found out about it.
    pub findings: &'a Findings,
}

/// What is written into the page as JSON.
#[derive(Serialize)]
pub(crate) struct Scene {
    version: u32,
    /// How the nodes of the map are built: see [`Detail`].
    fan: usize,
    crowded: f64,
    runs: Vec<RunScene>,
    layouts: Vec<LayoutScene>,
    first_layout: usize,
    groupings: Vec<GroupingScene>,
    first_grouping: usize,
}

#[derive(Serialize)]
struct RunScene {
    name: String,
    buffers: usize,
    span: [i64; 2],
    peak: PeakScene,
    bound: Bytes,
    live: Vec<(i64, Bytes)>,
    reserved: Vec<(i64, Bytes)>,
    steps: Vec<(u64, i64)>,
}

#[derive(Serialize)]
struct PeakScene {
    time: i64,
    live: Bytes,
}

#[derive(Serialize)]
struct LayoutScene {
    run: usize,
    origin: &'static str,
    heights: Vec<Bytes>,
    /// Which layout it is in the data, where it can be looked into.
    detail: Option<usize>,
    /// Begin, length, address, size, how many, their bytes, and the group of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overview: Vec<(i64, u64, u64, u64, u32, Bytes, u32)>,
}

#[derive(Serialize)]
struct GroupingScene {
    name: &'static str,
    keys: Vec<String>,
    /// Bytes at the peaks; where there are none, bytes times events, which are less than a byte at a peak.
    weights: Vec<f64>,
}

/// The scene, and for each run what the browser needs to look deeper.
pub(crate) fn scene(shown: &[Shown<'_>]) -> (Scene, Vec<Vec<u8>>) {
    let mut groupings = Groupings::new(shown);
    let of_runs: Vec<Vec<Vec<u32>>> =
        shown.iter().map(|one| groupings.of(one.usage, peak(one.usage, one.live).time)).collect();
    let first_grouping = groupings.first(shown);
    let mut layouts = Vec::new();
    let mut views = Vec::new();
    for (run, (one, groups)) in shown.iter().zip(&of_runs).enumerate() {
        let mut view = View::default();
        for column in groups {
            view.numbers(column.iter().map(|&group| u64::from(group)));
        }
        let mut details = 0;
        for (place, layout) in one.usage.layouts.iter().enumerate() {
            let detail = Detail::new(&one.usage.problem, &layout.plan);
            let is_detailed = has_detail(one.usage, place);
            if is_detailed {
                view.detail(&detail);
            }
            layouts.push(LayoutScene {
                run,
                origin: layout.origin.name(),
                heights: layout.plan.heights.clone(),
                detail: is_detailed.then_some(details),
                overview: overview(one.usage, &detail, is_detailed, &groups[first_grouping]),
            });
            details += usize::from(is_detailed);
        }
        views.push(view.packed());
    }
    let scene = Scene {
        version: 1,
        fan: FAN,
        crowded: CROWDED,
        runs: shown.iter().map(run_scene).collect(),
        first_layout: first_layout(shown),
        layouts,
        groupings: groupings.scenes,
        first_grouping,
    };
    (scene, views)
}

/// What a page carries of `usage`: those layouts only that can be looked into, and a clock of not too many readings.
pub fn carried(usage: &Usage) -> Cow<'_, Usage> {
    let is_carried = |place: &usize| has_detail(usage, *place);
    let has_long_clock = usage.clock.as_ref().is_some_and(|clock| clock.readings.len() > MOST_READINGS);
    if (0..usage.layouts.len()).all(|place| is_carried(&place)) && !has_long_clock {
        return Cow::Borrowed(usage);
    }
    let mut carried = usage.clone();
    carried.clock = usage.clock.as_ref().map(|clock| clock.thinned(MOST_READINGS));
    let mut place = 0..;
    carried.layouts.retain(|_| place.next().is_some_and(|place| is_carried(&place)));
    Cow::Owned(carried)
}

/// Whether the map of this layout can be looked into down to the last buffer.
fn has_detail(usage: &Usage, layout: usize) -> bool {
    let is_main = layout + 1 == usage.layouts.len() || usage.layouts[layout].origin == Origin::Recorded;
    usage.problem.buffers.len() <= MOST_DETAILED || is_main
}

/// What happened comes first, where it is known; else the last: of two runs the second's.
fn first_layout(shown: &[Shown<'_>]) -> usize {
    let mut origins = shown.iter().flat_map(|one| &one.usage.layouts).map(|layout| layout.origin);
    let recorded = origins.clone().enumerate().filter(|&(_, origin)| origin == Origin::Recorded).last();
    recorded.map_or(origins.by_ref().count().saturating_sub(1), |(place, _)| place)
}

fn run_scene(shown: &Shown<'_>) -> RunScene {
    let usage = shown.usage;
    let live = shown.live;
    let Moment { time, live: bytes, .. } = peak(usage, live);
    let span = usage.span();
    let bound = |layout: &&Layout| layout.origin == Origin::Planned;
    RunScene {
        name: shown.name.to_owned(),
        buffers: usage.problem.buffers.len(),
        span: [span.start, span.end],
        peak: PeakScene { time, live: bytes },
        bound: usage.layouts.iter().find(bound).map_or(bytes, |layout| layout.plan.lower_bound),
        live: live.thinned(CURVE_POINTS).points,
        reserved: Curve::reserved(usage).thinned(CURVE_POINTS).points,
        steps: usage.steps.iter().map(|end| (end.step.0, end.at)).collect(),
    }
}

fn overview(
    usage: &Usage,
    detail: &Detail,
    is_detailed: bool,
    groups: &[u32],
) -> Vec<(i64, u64, u64, u64, u32, Bytes, u32)> {
    if is_detailed && usage.problem.buffers.len() < LEAST_FOR_OVERVIEW {
        return Vec::new();
    }
    let mut scale = 1.0;
    let seen = loop {
        let seen = detail.seen(1600.0 * scale, 700.0 * scale);
        if seen.len() <= MOST_IN_OVERVIEW {
            break seen;
        }
        scale *= 0.8;
    };
    let entry = |merged: crate::Merged| {
        let [start, end] = merged.times;
        let [low, high] = merged.addresses;
        let group = groups[merged.buffer as usize];
        (start, end.abs_diff(start), low, high - low, merged.count, merged.bytes, group)
    };
    seen.into_iter().map(entry).collect()
}

/// Groups under all groupings that tell something, shared by all runs so that colours mean the same.
struct Groupings {
    kinds: Vec<Grouping>,
    scenes: Vec<GroupingScene>,
    places: Vec<FxHashMap<String, u32>>,
}

impl Groupings {
    fn new(shown: &[Shown<'_>]) -> Self {
        let tells = |grouping: &Grouping| {
            let usages = || shown.iter().map(|one| one.usage);
            match grouping {
                Grouping::Category => usages().any(|usage| usage.labels.iter().any(|label| label.category.is_some())),
                Grouping::Line => usages().any(|usage| usage.labels.iter().any(|label| label.site.is_some())),
                Grouping::Module => usages().any(Grouping::names_modules),
                Grouping::Size => true,
            }
        };
        let kinds: Vec<Grouping> = Grouping::ALL.into_iter().filter(tells).collect();
        let scene = |kind: &Grouping| GroupingScene { name: kind.name(), keys: Vec::new(), weights: Vec::new() };
        Self { scenes: kinds.iter().map(scene).collect(), places: vec![FxHashMap::default(); kinds.len()], kinds }
    }

    /// The group of each buffer of `usage`, by grouping.
    fn of(&mut self, usage: &Usage, peak: i64) -> Vec<Vec<u32>> {
        let Self { kinds, scenes, places } = self;
        let area = |buffer: &Buffer| buffer.size.get() as f64 * buffer.lifetime.length() as f64;
        let whole: f64 = usage.problem.buffers.iter().map(area).sum::<f64>() + 1.0;
        let at_peak = alive_at(usage, peak);
        let columns = kinds.iter().zip(scenes).zip(places).map(|((&kind, scene), places)| {
            // Buffers of one site are of one module and line; reading a site takes longer than anything else here.
            let mut of_sites: FxHashMap<TextIndex, u32> = FxHashMap::default();
            let group = |buffer: BufferIndex| {
                let site = usage.label(buffer).site.filter(|_| matches!(kind, Grouping::Module | Grouping::Line));
                let known = site.and_then(|site| of_sites.get(&site).copied());
                let place = known.unwrap_or_else(|| {
                    *places.entry(kind.key(usage, buffer)).or_insert_with_key(|key| {
                        scene.keys.push(key.clone());
                        scene.weights.push(0.0);
                        scene.keys.len() as u32 - 1
                    })
                });
                if let Some(site) = site {
                    of_sites.insert(site, place);
                }
                let buffer = usage.problem.buffer(buffer);
                scene.weights[place as usize] += buffer.size.get() as f64 * buffer.lifetime.length() as f64 / whole;
                place
            };
            let groups: Vec<u32> = usage.problem.indices().map(group).collect();
            for one in &at_peak {
                scene.weights[groups[one.buffer.get()] as usize] += one.bytes.get() as f64;
            }
            groups
        });
        columns.collect()
    }

    fn first(&self, shown: &[Shown<'_>]) -> usize {
        let telling = shown.last().map(|one| Grouping::telling(one.usage));
        self.kinds.iter().position(|&kind| Some(kind) == telling).unwrap_or(0)
    }
}

/// Numbers in groups of seven bits, as in a usage file.
#[derive(Default)]
struct View(Vec<u8>);

impl View {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn numbers(&mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.number(value));
    }

    fn detail(&mut self, detail: &Detail) {
        self.number(detail.classes.len() as u64);
        self.numbers(detail.classes.iter().map(|&length| u64::from(length)));
        let mut before = 0_i64;
        for &buffer in &detail.order {
            let difference = i64::from(buffer) - before;
            self.number(((difference << 1) ^ (difference >> 63)) as u64);
            before = i64::from(buffer);
        }
    }

    fn packed(self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(7));
        let written = encoder.write_all(&self.0).and_then(|()| encoder.finish());
        written.expect("writing to memory does not fail")
    }
}
