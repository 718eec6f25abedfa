//! Where steps end: annotations say when an optimizer stepped, or when the profiler was told of a step.

use crate::snapshot::contents::words::Word;
use crate::snapshot::contents::{AnnotationRecord, Contents};
use crate::snapshot::note::Note;

const PROFILER: &str = "ProfilerStep#";
const OPTIMIZER: &str = "Optimizer.step#";
/// What PyTorch itself says beside steps, and nobody misses.
const USUAL: &str = "Optimizer.zero_grad#";

/// The end of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StepEnd {
    pub(crate) time_us: u64,
    pub(crate) device: u32,
}

/// The ends of steps in order of time. The profiler's steps are taken where some of them ended; otherwise those of the
/// optimizer whose step ended first in the list. Annotations of other names are only counted.
pub(crate) fn find(contents: &Contents, notes: &mut Vec<Note>) -> Vec<StepEnd> {
    let all = &contents.annotations[contents.root.annotations.start as usize..contents.root.annotations.end as usize];
    let name = |annotation: &AnnotationRecord| contents.text_at(annotation.name);
    let is_end = |annotation: &AnnotationRecord| annotation.stage == Word::End.place();
    let first = |prefix: &str| all.iter().find(|one| is_end(one) && name(one).starts_with(prefix));
    let leader = first(PROFILER).or_else(|| first(OPTIMIZER));
    let is_profiler = leader.is_some_and(|leader| name(leader).starts_with(PROFILER));
    let is_led = |one: &AnnotationRecord| {
        leader.is_some_and(|leader| if is_profiler { name(one).starts_with(PROFILER) } else { one.name == leader.name })
    };
    let others = all.iter().filter(|one| !is_led(one) && !name(one).starts_with(USUAL)).count() as u64;
    if others > 0 {
        notes.push(Note::OtherAnnotations { count: others });
    }
    let is_step = |one: &&AnnotationRecord| {
        is_led(one) && is_end(one) && leader.is_some_and(|leader| one.device == leader.device)
    };
    let end = |one: &AnnotationRecord| StepEnd { time_us: one.time_us, device: one.device };
    let mut ends: Vec<StepEnd> = all.iter().filter(is_step).map(end).collect();
    ends.sort_unstable();
    ends
}
