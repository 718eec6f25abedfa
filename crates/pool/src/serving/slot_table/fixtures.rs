//! Plans and requests for the tests of the table.

use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use lowtide_learn::{Lane, Slot, StepPlan};

use crate::pool::Request;

pub(super) const KIB: u64 = 1 << 10;

/// A plan of slots: the thread that asks for each, its offset and its size.
pub(super) fn plan(slots: &[(u64, u64, u64)]) -> StepPlan {
    of_slots(slots.iter().map(|&(thread, offset, bytes)| slot(thread, Some(offset), bytes)).collect())
}

pub(super) fn of_slots(slots: Vec<Slot>) -> StepPlan {
    let end = |slot: &Slot| slot.offset.map_or(0, |offset| offset.get() + slot.bytes.get());
    let height = Bytes::new(slots.iter().map(end).max().unwrap_or(0));
    StepPlan::new(slots, height, height, true)
}

pub(super) fn slot(thread: u64, offset: Option<u64>, bytes: u64) -> Slot {
    let lane = Lane { thread: ThreadId(thread), stream: StreamId(0) };
    Slot { lane, bytes: Bytes::new(bytes), align: Align::ONE, offset: offset.map(Bytes::new) }
}

pub(super) fn request(thread: u64, bytes: u64) -> Request {
    Request { thread: ThreadId(thread), ..Request::new(Bytes::new(bytes)) }
}
