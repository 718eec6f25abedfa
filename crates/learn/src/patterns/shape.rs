//! What a plan is made for: the allocations of a pattern in one order, when each is freed, and where that order may vary.

use crate::Lane;
use crate::plan::step_plan::{Key, Slot, StepPlan};
use crate::planning::timeline::Layout;

/// How long a slot lives, in places of [`Shape::slots`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// For longer than a step, or nobody knows: it is not planned.
    Online,
    /// To a place in the same step.
    Within {
        /// The first place at which it is surely freed.
        end: u32,
        /// The first place of its own lane at which it is.
        lane_end: u32,
    },
    /// To a place in the next step.
    Wraps {
        /// The first place at which it is surely freed.
        end: u32,
    },
    /// To a place in the next step behind its own: two of it are alive for a while. It is planned over two steps.
    Straddles {
        /// The first place at which it is surely freed.
        end: u32,
    },
}

/// One allocation of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ShapeSlot {
    /// The number of its lane.
    pub lane: u32,
    pub key: Key,
    pub life: Life,
    /// Whether the order is not certain at the border to the slot behind it: some allocation before the border comes
    /// after one behind it in some steps.
    pub joined: bool,
}

/// The allocations of a pattern; those of one lane are in their certain order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Shape {
    pub slots: Vec<ShapeSlot>,
}

impl Shape {
    /// Whether numbers make sense: lives end behind their beginning and inside the shape, and lanes are fewer than
    /// `lanes`.
    pub fn is_sound(&self, lanes: usize) -> bool {
        let count = self.slots.len();
        self.slots.iter().enumerate().all(|(place, slot)| {
            let ends = match slot.life {
                Life::Online => true,
                Life::Within { end, lane_end } => {
                    [end, lane_end].iter().all(|&end| (place + 1..=count).contains(&(end as usize)))
                }
                Life::Wraps { end } | Life::Straddles { end } => end as usize <= count,
            };
            ends && (slot.lane as usize) < lanes
        })
    }

    /// Whether a slot's blocks are alive two at a time.
    pub fn straddles(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.life, Life::Straddles { .. }))
    }

    /// Two steps in a row as one, in which nothing straddles.
    pub fn doubled(&self) -> Self {
        let count = self.slots.len() as u32;
        let first = self.slots.iter().map(|slot| ShapeSlot {
            life: match slot.life {
                Life::Wraps { end } | Life::Straddles { end } => {
                    Life::Within { end: count + end, lane_end: count + end }
                }
                life => life,
            },
            ..*slot
        });
        let second = self.slots.iter().map(|slot| ShapeSlot {
            life: match slot.life {
                Life::Within { end, lane_end } => Life::Within { end: count + end, lane_end: count + lane_end },
                Life::Straddles { end } => Life::Wraps { end },
                life => life,
            },
            ..*slot
        });
        Self { slots: first.chain(second).collect() }
    }

    /// The plan that `layout` makes of it, with the names that lanes have now.
    pub fn plan(&self, layout: &Layout, lanes: &[Lane]) -> StepPlan {
        let named = |(slot, &offset): (&ShapeSlot, &Option<_>)| Slot {
            lane: lanes[slot.lane as usize],
            bytes: slot.key.bytes,
            align: slot.key.align,
            offset,
        };
        let slots = self.slots.iter().zip(&layout.offsets).map(named).collect();
        let renewed = |life| matches!(life, Life::Wraps { .. } | Life::Straddles { .. });
        let renewed = self.slots.iter().map(|slot| renewed(slot.life)).collect();
        StepPlan { renewed, ..StepPlan::new(slots, layout.height, layout.bound, layout.proved) }
    }
}
