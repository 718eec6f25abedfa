//! Making what is on its way between operators in parts, one after the other: each part holds its share of the bytes.

use lowtide_core::{Bond, BufferIndex, Change, Family, Remedy};

use super::edit::Edit;
use super::scene::Scene;

/// More parts are tried only where they save at least this part of the peak more.
const WORTH: u64 = 20;

/// The most parts tried.
const MOST_PARTS: u32 = 8;

/// A buffer smaller than this part of the largest one is not split along with it.
const ALONG: u64 = 16;

/// The families that could be made in parts: those on their way between operators at the moment, one by one, by make,
/// and all of them together, since at the moment each of them is made from or into another.
pub(super) fn splits(scene: &Scene, families: &[Family]) -> Vec<Remedy> {
    let brief = |family: &&Family| family.alive.iter().all(|&index| scene.families.is_brief(index));
    let narrow = |family: &&Family| matches!(family.bond, Bond::Tensor | Bond::Alike);
    let together = together(scene);
    let families = families.iter().filter(narrow).filter(brief).chain(&together);
    families.filter_map(|family| split(scene, family)).collect()
}

/// All that is on its way at the moment, but for what is small beside the largest.
fn together(scene: &Scene) -> Option<Family> {
    let mut brief: Vec<BufferIndex> =
        scene.alive.iter().map(|alive| alive.buffer).filter(|&index| scene.families.is_brief(index)).collect();
    let least = scene.size(*brief.first()?).get().div_ceil(ALONG);
    brief.retain(|&index| scene.size(index).get() >= least);
    (brief.len() > 1).then(|| scene.families.family(Bond::Together, brief))
}

fn split(scene: &Scene, family: &Family) -> Option<Remedy> {
    let (mut parts, mut best) = (2, None);
    let mut height = scene.height;
    while parts <= MOST_PARTS {
        let mut edit = Edit::default();
        for buffer in family.buffers() {
            edit.divide(&scene.usage.problem, buffer, parts);
        }
        let lower = scene.height_after(&edit)?;
        let worth = height.saturating_sub(lower);
        if worth == 0 || best.is_some() && worth < scene.height / WORTH {
            break;
        }
        best = Some((parts, edit));
        height = lower;
        parts *= 2;
    }
    let (parts, edit) = best?;
    scene.remedy(Change::Split { family: family.clone(), parts }, &edit)
}
