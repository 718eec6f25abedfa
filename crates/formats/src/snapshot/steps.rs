//! Where steps end: annotations say when an optimizer stepped, or when the profiler was told of a step.

use super::contents::{AnnotationRecord, Contents};
use super::words::Word;

const PROFILER: &str = "ProfilerStep#";
const OPTIMIZER: &str = "Optimizer.step#";

/// The end of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StepEnd {
    pub(super) time_us: u64,
    pub(super) device: u32,
}

/// The ends of steps in order of time. The profiler's steps are taken where there are some; otherwise those of the
/// optimizer whose annotation comes first.
pub(super) fn find(contents: &Contents) -> Vec<StepEnd> {
    let all = &contents.annotations[contents.root.annotations.start as usize..contents.root.annotations.end as usize];
    let name = |annotation: &AnnotationRecord| contents.text_at(annotation.name);
    let first = |prefix: &str| all.iter().find(|annotation| name(annotation).starts_with(prefix));
    let (leader, is_profiler) = match (first(PROFILER), first(OPTIMIZER)) {
        (Some(leader), _) => (leader, true),
        (None, Some(leader)) => (leader, false),
        (None, None) => return Vec::new(),
    };
    let is_end = |annotation: &&AnnotationRecord| {
        let is_same = if is_profiler { name(annotation).starts_with(PROFILER) } else { annotation.name == leader.name };
        is_same && annotation.device == leader.device && annotation.stage == Word::End.place()
    };
    let end = |annotation: &AnnotationRecord| StepEnd { time_us: annotation.time_us, device: annotation.device };
    let mut ends: Vec<StepEnd> = all.iter().filter(is_end).map(end).collect();
    ends.sort_unstable();
    ends
}
