//! An explanation for scripts.

use lowtide_core::{BufferIndex, Bytes, Change, Explanation, Lifetime, Measure, Moment, Usage};
use serde::Serialize;

use super::words;

/// An explanation as an object. Amounts are bytes; fields are added, never removed.
#[derive(Debug, Serialize)]
pub struct ExplanationNumbers {
    kind: &'static str,
    version: u32,
    /// The pool that is explained, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// The moment that is explained.
    event: i64,
    step: Option<u64>,
    live: Bytes,
    /// The highest moment of all.
    peak_event: i64,
    peak_step: Option<u64>,
    peak_live: Bytes,
    /// What the plan needs, where there is one.
    planned: Option<Bytes>,
    alive: Vec<AliveNumbers>,
    late: Vec<LateNumbers>,
    remedies: Vec<RemedyNumbers>,
}

#[derive(Debug, Serialize)]
struct AliveNumbers {
    id: String,
    /// What it adds to the bytes alive.
    bytes: Bytes,
    size: Bytes,
    since: i64,
    until: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// The frame that tells most.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// All frames, the innermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    stream: u64,
}

#[derive(Debug, Serialize)]
struct LateNumbers {
    why: &'static str,
    bytes: Bytes,
    saves: Bytes,
    buffers: Vec<String>,
    text: String,
}

#[derive(Debug, Serialize)]
struct RemedyNumbers {
    kind: &'static str,
    /// Which peak is lowered: `live`, `planned` or `reserved`.
    lowers: &'static str,
    saves: Bytes,
    peak: Bytes,
    /// What the change is about: pairs one behind the other.
    buffers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<u32>,
    /// Who is away when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "windows")]
    intervals: Vec<IntervalNumbers>,
    /// Who would end when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ends: Vec<EndNumbers>,
    text: String,
}

#[derive(Debug, Serialize)]
struct EndNumbers {
    id: String,
    upper: i64,
}

#[derive(Debug, Serialize)]
struct IntervalNumbers {
    id: String,
    lower: i64,
    upper: i64,
}

impl ExplanationNumbers {
    /// `explanation` of `usage`, which is `pool` where there are several.
    pub fn new(usage: &Usage, pool: Option<String>, explanation: &Explanation) -> Self {
        let Moment { time, step, live } = explanation.moment;
        let peak = explanation.peak;
        let id = |buffer: BufferIndex| usage.problem.buffer(buffer).id.to_string();
        let alive = explanation.alive.iter().map(|alive| {
            let buffer = usage.problem.buffer(alive.buffer);
            let label = usage.label(alive.buffer);
            let text = |text: Option<lowtide_core::TextIndex>| text.map(|text| usage.text(text).to_owned());
            AliveNumbers {
                id: buffer.id.to_string(),
                bytes: alive.bytes,
                size: buffer.size,
                since: buffer.lifetime.lower,
                until: buffer.lifetime.upper,
                category: text(label.category),
                place: words::place(usage, alive.buffer),
                site: text(label.site),
                stream: label.stream.0,
            }
        });
        let late = explanation.late.iter().map(|late| LateNumbers {
            why: late.release.why.name(),
            bytes: late.bytes,
            saves: late.saves,
            buffers: late.release.family.buffers().map(id).collect(),
            text: words::late(usage, late),
        });
        let remedies = explanation.remedies.iter().map(|remedy| RemedyNumbers {
            kind: remedy.change.name(),
            lowers: match remedy.change.measure() {
                Measure::Live => "live",
                Measure::Planned => "planned",
                Measure::Reserved => "reserved",
            },
            saves: remedy.saves,
            peak: remedy.peak,
            buffers: buffers_of(&remedy.change).into_iter().map(id).collect(),
            parts: match remedy.change {
                Change::Split { parts, .. } => Some(parts),
                _ => None,
            },
            intervals: intervals_of(&remedy.change)
                .map(|(buffer, Lifetime { lower, upper })| IntervalNumbers { id: id(buffer), lower, upper })
                .collect(),
            ends: match &remedy.change {
                Change::Release(release) => {
                    release.ends.iter().map(|end| EndNumbers { id: id(end.buffer), upper: end.at }).collect()
                }
                _ => Vec::new(),
            },
            text: words::remedy(usage, time, remedy),
        });
        Self {
            kind: "explanation",
            version: 1,
            pool,
            event: time,
            step: step.map(|step| step.0),
            live,
            peak_event: peak.time,
            peak_step: peak.step.map(|step| step.0),
            peak_live: peak.live,
            planned: explanation.planned,
            alive: alive.collect(),
            late: late.collect(),
            remedies: remedies.collect(),
        }
    }
}

fn buffers_of(change: &Change) -> Vec<BufferIndex> {
    match change {
        Change::InPlace { pairs } | Change::Order { pairs } => pairs.iter().flat_map(|&(a, b)| [a, b]).collect(),
        Change::Release(release) => release.family.buffers().collect(),
        Change::Split { family, .. } | Change::Swap { family, .. } => family.buffers().collect(),
        Change::Alignment { .. } | Change::Plan => Vec::new(),
    }
}

fn intervals_of(change: &Change) -> impl Iterator<Item = (BufferIndex, Lifetime)> + '_ {
    let absences = match change {
        Change::Swap { absences, .. } => &**absences,
        _ => &[],
    };
    absences.iter().map(|absence| (absence.buffer, absence.interval))
}
