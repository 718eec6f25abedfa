//! The serving machine: how a plan comes to be served and ceases to be, the same for device and host memory.
//!
//! A [`PlanServer`] reports every block to the learner through its [`Observer`], hears what it advises when a step is closed, and
//! judges how the plan did; what differs between the arenas is in its [`ServingPolicy`]. An arena is a [`PlanArena`]: it says
//! whether there is room for a plan, gives it memory and takes that back. Threads meet the plan as a [`ServedPlan`]: a
//! [`SlotTable`] at its addresses, from which blocks come without the arena's lock.

mod observer;
mod plan_arena;
mod plan_server;
mod policy;
mod published;
mod replanner;
mod served_plan;
mod slot_table;
#[cfg(test)]
mod tests;

pub(crate) use observer::Observer;
pub(crate) use plan_arena::{LayOut, PlanArena};
pub(crate) use plan_server::PlanServer;
pub(crate) use policy::{ServingPolicy, StepCost};
pub(crate) use published::Published;
pub(crate) use replanner::Replanned;
pub(crate) use served_plan::{Given, ServedPlan};
pub(crate) use slot_table::{Found, SlotLayout, SlotTable};
