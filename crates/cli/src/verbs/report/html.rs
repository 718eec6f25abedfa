//! The page: studies in, one file out.

use lowtide_formats::usage_element;
use lowtide_report::{Difference, Findings, Page, Shown, carried, page};

use crate::Failure;
use crate::atomic_file::Target;
use crate::console::{progress, show};
use crate::planning::study::Study;

/// Writes the page that shows `studies`: one run, or two that are compared by `differences`.
pub(crate) fn write(studies: &[&Study], differences: &[Difference], target: &Target) -> Result<(), Failure> {
    let _line = progress::Doing::new(&format!("drawing {}", show::path(target.path())));
    let element = |study: &&Study| usage_element(&study.name, &study.notes, &carried(&study.usage));
    let data = studies.iter().map(element).collect::<Result<Vec<_>, _>>();
    let data = data.map_err(|error| Failure::contents(target.path().display(), error))?;
    let findings: Vec<Findings> = studies.iter().map(|study| study.findings()).collect();
    let runs: Vec<Shown<'_>> = studies
        .iter()
        .zip(&findings)
        .map(|(study, findings)| Shown { name: &study.name, usage: &study.usage, live: &study.live, findings })
        .collect();
    let notes: Vec<String> = studies.iter().flat_map(|study| study.notes.iter().cloned()).collect();
    let names: Vec<&str> = studies.iter().map(|study| &*study.name).collect();
    let headlines: Vec<String> = studies.iter().map(|study| study.headline().join(" · ")).collect();
    let html = page(&Page {
        title: &names.join(" → "),
        headline: &headlines.join(" → "),
        runs: &runs,
        data: &data,
        differences,
        notes: &notes,
        generator: concat!("lowtide ", env!("CARGO_PKG_VERSION")),
    });
    target.write_bytes(html.as_bytes())
}
