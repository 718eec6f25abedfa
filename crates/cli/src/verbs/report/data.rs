//! A report in numbers: what `--format json` prints and `-o x.json` writes.

use lowtide_core::Bytes;
use lowtide_report::{Grouping, alive_at, group};
use serde::Serialize;

use crate::Failure;
use crate::atomic_file::Target;
use crate::console::show;
use crate::planning::study::Study;
use crate::verbs::plan::Summary;

/// One run in numbers. Amounts are bytes; fields are added, never removed.
#[derive(Debug, Serialize)]
pub(super) struct One {
    pub kind: &'static str,
    /// The plan's; `peak` is its height.
    #[serde(flatten)]
    pub plan: Summary,
    pub name: String,
    /// The pool that the following is about, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The most that was alive at once.
    pub live_peak: Bytes,
    pub peak_event: i64,
    pub peak_step: Option<u64>,
    /// The most that the recorded allocator held.
    pub reserved_peak: Option<Bytes>,
    pub layouts: Vec<LayoutNumbers>,
    /// What the groups are by.
    pub by: &'static str,
    /// Who is alive at the peak, those first that hold most.
    pub alive: Vec<GroupNumbers>,
}

#[derive(Debug, Serialize)]
pub(super) struct LayoutNumbers {
    pub origin: &'static str,
    pub bytes: Bytes,
}

#[derive(Debug, Serialize)]
pub(super) struct GroupNumbers {
    pub key: String,
    pub bytes: Bytes,
    pub buffers: usize,
}

impl One {
    pub fn new(study: &Study, by: Grouping) -> Self {
        let peak = study.peak();
        let (usage, _) = study.explained();
        let groups = group(usage, &alive_at(usage, peak.time), by).into_iter();
        let layouts = study.usage.layouts.iter();
        Self {
            kind: "report",
            plan: study.summary.clone(),
            name: study.name.clone(),
            pool: study.focus.as_ref().map(|focus| focus.pool.clone()),
            live_peak: peak.live,
            peak_event: peak.time,
            peak_step: peak.step.map(|step| step.0),
            reserved_peak: study.reserved(),
            layouts: layouts
                .map(|layout| LayoutNumbers { origin: layout.origin.name(), bytes: layout.plan.peak() })
                .collect(),
            by: by.name(),
            alive: groups
                .map(|group| GroupNumbers { key: group.key, bytes: group.bytes, buffers: group.count })
                .collect(),
        }
    }
}

/// Writes `numbers` as one object.
pub(super) fn write(numbers: &impl Serialize, target: &Target) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(numbers)
        .map_err(|error| Failure::Fault(format!("{}: {error}", show::path(target.path()))))?;
    text.push(b'\n');
    target.write_bytes(&text)
}
