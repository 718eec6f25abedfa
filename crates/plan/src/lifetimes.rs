//! From a recorded run to a problem: each block of the trace becomes a buffer that lives from its allocation until
//! the device has finished with it.

use std::ops::Range;

use lowtide_core::{Action, Block, Buffer, Bytes, Class, Lifetime, Problem, StepIndex, Trace};
use rustc_hash::FxHashMap;

/// Why a step cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The trace closes no such step.
    #[error("the trace has no step {wanted}; {}", match .last {
        Some(last) => format!("it closes steps {} to {last}", .first.unwrap_or(*last)),
        None => "it closes none".to_owned(),
    })]
    NoSuchStep {
        /// The step asked for.
        wanted: StepIndex,
        /// The first that there is.
        first: Option<StepIndex>,
        /// The last that there is.
        last: Option<StepIndex>,
    },
}

/// The whole run as one problem, in the order of its events.
pub fn whole_run(trace: &Trace) -> Problem {
    Problem::new(buffers(trace, 0..trace.events.len()))
}

/// One step: what lives at some time during it. What was there before it and stays throughout is persistent; what
/// was there before and ends within is alive from the step's first event on.
pub fn one_step(trace: &Trace, wanted: StepIndex) -> Result<Problem, StepError> {
    let mut steps = trace.steps();
    let range =
        steps.find(|&(step, _)| step == wanted).map(|(_, range)| range).ok_or_else(|| StepError::NoSuchStep {
            wanted,
            first: trace.steps().next().map(|(step, _)| step),
            last: trace.steps().last().map(|(step, _)| step),
        })?;
    Ok(Problem::new(buffers(trace, range)))
}

/// Where each block begins and ends, as indices of events; the end of the trace where it does not end.
fn spans(trace: &Trace) -> Vec<Lifetime> {
    let end = trace.events.len() as i64;
    let until_done = trace.has_done_rows();
    let mut spans = vec![Lifetime { lower: 0, upper: end }; trace.blocks.len()];
    for (time, event) in trace.events.iter().enumerate() {
        match event.action {
            Action::Alloc { block } => spans[block.0 as usize].lower = time as i64,
            Action::Free { block } if !until_done => spans[block.0 as usize].upper = time as i64,
            Action::Done { block } => spans[block.0 as usize].upper = time as i64,
            _ => {}
        }
    }
    spans
}

fn buffers(trace: &Trace, range: Range<usize>) -> Vec<Buffer> {
    let (start, end) = (range.start as i64, range.end as i64);
    let whole = start == 0 && range.end == trace.events.len();
    let mut uses: FxHashMap<u32, u32> = FxHashMap::default();
    let mut buffers = Vec::new();
    for (block, span) in trace.blocks.iter().zip(spans(trace)) {
        let use_number = uses.entry(block.name.0).or_insert(0);
        *use_number += 1;
        let lifetime = Lifetime { lower: span.lower.max(start), upper: span.upper.min(end) };
        if lifetime.lower >= lifetime.upper {
            continue;
        }
        let mut buffer = buffer(trace, block, *use_number, lifetime);
        if !whole && span.lower < start && span.upper >= end {
            buffer.class = Class::Persistent;
        }
        buffers.push(buffer);
    }
    buffers
}

/// A name that a program used several times is numbered from its second use on.
fn buffer(trace: &Trace, block: &Block, use_number: u32, lifetime: Lifetime) -> Buffer {
    let name = trace.text(block.name);
    let bytes: Bytes = block.bytes;
    if use_number == 1 {
        Buffer::new(name, lifetime, bytes)
    } else {
        Buffer::new(format!("{name}#{use_number}"), lifetime, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{BlockIndex, Event, TextIndex};

    /// Blocks a, b, c; `rows` are the events.
    fn trace(rows: &[Action]) -> Trace {
        let block = |name| Block { name: TextIndex(name), bytes: Bytes::new(8) };
        Trace {
            events: rows.iter().map(|&action| Event::new(action)).collect(),
            blocks: vec![block(0), block(1), block(0)],
            texts: vec!["a".into(), "b".into()],
            extra: Vec::new(),
        }
    }

    const fn alloc(block: u32) -> Action {
        Action::Alloc { block: BlockIndex(block) }
    }
    const fn free(block: u32) -> Action {
        Action::Free { block: BlockIndex(block) }
    }
    const fn done(block: u32) -> Action {
        Action::Done { block: BlockIndex(block) }
    }
    const fn step(step: u64) -> Action {
        Action::Step { step: StepIndex(step) }
    }

    fn lives(problem: &Problem) -> Vec<(&str, i64, i64, Class)> {
        let life = |buffer: &'_ Buffer| (buffer.lifetime.lower, buffer.lifetime.upper, buffer.class);
        problem
            .buffers
            .iter()
            .map(|b| {
                let (l, u, c) = life(b);
                (&*b.id, l, u, c)
            })
            .collect()
    }

    #[test]
    fn a_block_lives_from_its_allocation_to_its_free_or_to_the_end() {
        let problem = whole_run(&trace(&[alloc(0), alloc(1), free(0), alloc(2), free(2)]));
        let t = Class::Transient;
        assert_eq!(lives(&problem), [("a", 0, 2, t), ("b", 1, 5, t), ("a#2", 3, 4, t)]);
    }

    #[test]
    fn where_a_trace_says_when_the_device_is_done_a_block_lives_until_then() {
        let problem = whole_run(&trace(&[alloc(0), alloc(1), free(0), free(1), done(0), alloc(2)]));
        let t = Class::Transient;
        assert_eq!(lives(&problem), [("a", 0, 4, t), ("b", 1, 6, t), ("a#2", 5, 6, t)]);
    }

    #[test]
    fn what_outlives_a_step_on_both_sides_is_persistent_in_it() {
        let rows = [alloc(0), alloc(1), step(1), alloc(2), free(2), free(0), step(2), free(1)];
        let problem = one_step(&trace(&rows), StepIndex(2)).unwrap();
        let (p, t) = (Class::Persistent, Class::Transient);
        assert_eq!(lives(&problem), [("a", 3, 5, t), ("b", 3, 7, p), ("a#2", 3, 4, t)]);
        let missing = one_step(&trace(&rows), StepIndex(7)).unwrap_err();
        assert_eq!(missing.to_string(), "the trace has no step 7; it closes steps 1 to 2");
    }
}
