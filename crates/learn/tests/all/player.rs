//! Plays steps of made-up programs on a learner and serves its plans as an arena would: a block whose place is in use, or
//! that the plan does not have, is a miss.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lowtide_core::{Align, Buffer, Bytes, Lifetime, Placement, Plan, PoolIndex, Problem, StreamId, ThreadId};
use lowtide_learn::{Advice, Cursor, Lane, Learner, LearnerOptions, Served, StepPlan, Ticket};
use lowtide_plan::{Verdict, validate};

/// What a program does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Allocates so many bytes under a name.
    Alloc(Lane, u64, u64),
    /// Frees what has this name.
    Free(u64),
}

pub fn lane(thread: u64) -> Lane {
    Lane { thread: ThreadId(thread), stream: StreamId(0) }
}

pub fn align() -> Align {
    Align::new(512).unwrap()
}

/// Options that plan in `step`, so that tests know when.
pub fn at_once() -> LearnerOptions {
    LearnerOptions { background: false, time_limit: Duration::from_millis(300), ..LearnerOptions::default() }
}

/// A chain of layers: each allocates its output of some KiB, then a work space that it frees, then frees the input.
pub fn chain(lane: Lane, first_name: u64, sizes: &[u64]) -> Vec<Op> {
    let mut ops = Vec::new();
    for (layer, &size) in sizes.iter().enumerate() {
        let name = first_name + 2 * layer as u64;
        ops.extend([Op::Alloc(lane, name, size * 1024), Op::Alloc(lane, name + 1, size * 4096), Op::Free(name + 1)]);
        if layer > 0 {
            ops.push(Op::Free(name - 2));
        }
    }
    ops.push(Op::Free(first_name + 2 * (sizes.len() as u64 - 1)));
    ops
}

/// The sizes of a chain of `layers` that are all different and tell programs apart by `seed`.
pub fn sizes(layers: u64, seed: u64) -> Vec<u64> {
    (0..layers).map(|layer| 1 + (layer * 37 + seed * 101) % 251).collect()
}

struct Block {
    ticket: Option<Ticket>,
    place: Option<(u64, u64)>,
}

/// A program's memory, served by plans.
pub struct Player {
    pub learner: Learner,
    pub plan: Option<Arc<StepPlan>>,
    pub dropped: u32,
    pub steps: u64,
    cursors: HashMap<Lane, Cursor>,
    blocks: HashMap<u64, Block>,
    known: Vec<Vec<Option<Bytes>>>,
}

impl Player {
    pub fn new(options: LearnerOptions) -> Self {
        let learner = Learner::new(options);
        let plan = learner.likely_next();
        Self { learner, plan, dropped: 0, steps: 0, cursors: HashMap::new(), blocks: HashMap::new(), known: Vec::new() }
    }

    /// Plays a step and does as advised; how the plan did.
    pub fn step(&mut self, ops: &[Op]) -> Served {
        let mut served = Served::default();
        for &op in ops {
            match op {
                Op::Alloc(lane, name, bytes) => self.alloc(lane, name, bytes, &mut served),
                Op::Free(name) => self.free(name),
            }
        }
        let watched = self.learner.watching();
        match self.learner.step(served) {
            Advice::Wait => {}
            Advice::Serve(plan) => self.serve(Some(plan)),
            Advice::Drop => {
                self.dropped += 1;
                self.serve(None);
            }
        }
        assert_eq!(self.plan.as_ref().map(Arc::as_ptr), self.learner.likely_next().as_ref().map(Arc::as_ptr));
        self.cursors.values_mut().for_each(Cursor::restart);
        self.steps += 1;
        // A pattern that rested is planned long after its steps; the first plan is of the step that was just watched.
        for (place, plan) in self.learner.candidates().to_vec().iter().enumerate() {
            if self.is_new(plan) && watched && place == 0 {
                check(plan, ops);
            }
        }
        served
    }

    fn serve(&mut self, plan: Option<Arc<StepPlan>>) {
        self.plan = plan;
        self.cursors.clear();
    }

    fn alloc(&mut self, lane: Lane, name: u64, bytes: u64, served: &mut Served) {
        let ticket = self.learner.watching().then(|| self.learner.alloc(lane, Bytes::new(bytes), align()));
        let mut place = None;
        if let Some(plan) = &self.plan {
            let cursor = self.cursors.entry(lane).or_insert_with(|| Cursor::new(plan, lane));
            let slot = cursor.next(plan, Bytes::new(bytes), align()).map(|slot| plan.slots[slot as usize]);
            let hit = slot.is_some_and(|slot| {
                assert_eq!(slot.bytes.get(), bytes, "a slot of another size was given");
                let Some(offset) = slot.offset else { return true };
                place = Some((offset.get(), offset.get() + bytes.next_multiple_of(512)));
                !self.blocks.values().any(|block| overlap(block.place, place))
            });
            *(if hit { &mut served.hits } else { &mut served.misses }) += 1;
            place = place.filter(|_| hit);
        }
        assert!(self.blocks.insert(name, Block { ticket, place }).is_none(), "name {name} is in use");
    }

    fn free(&mut self, name: u64) {
        let block = self.blocks.remove(&name).unwrap();
        if let Some(ticket) = block.ticket.filter(|_| self.learner.watching()) {
            self.learner.free(ticket);
        }
    }

    /// Whether a plan was just made.
    fn is_new(&mut self, plan: &StepPlan) -> bool {
        let offsets: Vec<Option<Bytes>> = plan.slots.iter().map(|slot| slot.offset).collect();
        let is_new = !self.known.contains(&offsets);
        if is_new {
            self.known.push(offsets);
        }
        is_new
    }
}

/// Holds a plan that was just made against the step it was made for, where it has just the allocations of that.
fn check(plan: &StepPlan, ops: &[Op]) {
    let Some(slots) = same_allocations(plan, ops) else { return };
    let mut buffers: HashMap<u64, (Buffer, Bytes)> = HashMap::new();
    let mut slots = slots.into_iter();
    for (tick, &op) in ops.iter().enumerate() {
        match op {
            Op::Alloc(_, name, bytes) => {
                let slot = plan.slots[slots.next().unwrap()];
                let life = Lifetime::new(tick as i64, ops.len() as i64).unwrap();
                if let Some(offset) = slot.offset {
                    let buffer = Buffer::new(format!("{name} of {tick}"), life, Bytes::new(bytes));
                    buffers.insert(name, (Buffer { align: slot.align, ..buffer }, offset));
                }
            }
            Op::Free(name) => {
                if let Some((mut buffer, offset)) = buffers.remove(&name) {
                    buffer.lifetime.upper = tick as i64;
                    buffers.insert(u64::MAX - tick as u64, (buffer, offset));
                }
            }
        }
    }
    let (buffers, offsets): (Vec<Buffer>, Vec<Bytes>) = buffers.into_values().unzip();
    let height = buffers.iter().zip(&offsets).map(|(buffer, &offset)| offset + buffer.size).max();
    let height = height.unwrap_or(Bytes::ZERO);
    assert!(height <= plan.height && plan.bound <= plan.height);
    let placements = offsets.into_iter().map(|offset| Placement { pool: PoolIndex::default(), offset }).collect();
    let placed = Plan { placements, heights: vec![height], lower_bound: Bytes::ZERO, proved: false };
    assert_eq!(validate(&Problem::new(buffers), &placed), Verdict::Valid);
}

/// The slot of each allocation of `ops`, where every lane has just the allocations that the plan has.
fn same_allocations(plan: &StepPlan, ops: &[Op]) -> Option<Vec<usize>> {
    let mut lanes: HashMap<Lane, std::collections::VecDeque<usize>> = HashMap::new();
    for (index, slot) in plan.slots.iter().enumerate() {
        lanes.entry(slot.lane).or_default().push_back(index);
    }
    let mut slots = Vec::new();
    for op in ops {
        if let &Op::Alloc(lane, _, bytes) = op {
            let slot = lanes.get_mut(&lane)?.pop_front()?;
            (plan.slots[slot].bytes.get() == bytes).then_some(())?;
            slots.push(slot);
        }
    }
    (slots.len() == plan.slots.len()).then_some(slots)
}

fn overlap(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.0 < b.1 && b.0 < a.1)
}
