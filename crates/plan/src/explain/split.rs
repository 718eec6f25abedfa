//! Making what is on its way between operators in parts, one after the other: each part holds its share of the bytes.

use lowtide_core::{Bond, BufferIndex, Change, Family, Remedy};

use super::analysis::Analysis;
use super::edit::Edit;

/// More parts are tried only where they save at least this part of the peak more.
const WORTH: u64 = 20;

/// The most parts tried.
const MOST_PARTS: u32 = 8;

/// A buffer smaller than this part of the largest one is not split along with it.
const ALONG: u64 = 16;

/// The families that could be made in parts: those on their way between operators at the moment, one by one, by make,
/// and all of them together, since at the moment each of them is made from or into another.
pub(super) fn splits(analysis: &Analysis, families: &[Family]) -> Vec<Remedy> {
    let brief = |family: &&Family| family.alive.iter().all(|&index| analysis.families.is_brief(index));
    let narrow = |family: &&Family| matches!(family.bond, Bond::Tensor | Bond::Alike);
    let together = together(analysis);
    let families = families.iter().filter(narrow).filter(brief).chain(&together);
    families.filter_map(|family| split(analysis, family)).collect()
}

/// All that is on its way at the moment, but for what is small beside the largest.
fn together(analysis: &Analysis) -> Option<Family> {
    let mut brief: Vec<BufferIndex> =
        analysis.alive.iter().map(|alive| alive.buffer).filter(|&index| analysis.families.is_brief(index)).collect();
    let least = analysis.size(*brief.first()?).get().div_ceil(ALONG);
    brief.retain(|&index| analysis.size(index).get() >= least);
    (brief.len() > 1).then(|| analysis.families.family(Bond::Together, brief))
}

fn split(analysis: &Analysis, family: &Family) -> Option<Remedy> {
    let (mut parts, mut best) = (2, None);
    let mut height = analysis.height;
    while parts <= MOST_PARTS {
        let mut edit = Edit::default();
        for buffer in family.buffers() {
            edit.divide(&analysis.usage.problem, buffer, parts);
        }
        let lower = analysis.height_after(&edit)?;
        let worth = height.saturating_sub(lower);
        if worth == 0 || best.is_some() && worth < analysis.height / WORTH {
            break;
        }
        best = Some((parts, edit));
        height = lower;
        parts *= 2;
    }
    let (parts, edit) = best?;
    analysis.remedy(Change::Split { family: family.clone(), parts }, &edit)
}
