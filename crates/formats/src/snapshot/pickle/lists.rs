//! Lists that may still get items. A list becomes what it stands for when something takes it; until then all handles
//! to it share a slot, and slots are used again.

use super::fault::{Halt, PickleFault};
use super::memo::Memo;
use super::value::{Opaque, Sort, Value};
use crate::limits;
use crate::snapshot::contents::{Contents, within};

/// The lists on the stack.
#[derive(Default)]
pub(crate) struct Lists {
    slots: Vec<Slot>,
    unused: Vec<u32>,
    /// How many frames are in lists that are not yet complete.
    frames: u64,
}

/// How many unused slots keep their room for frames.
const ROOMY: usize = 16;

#[derive(Default)]
struct Slot {
    state: State,
    /// The frames of a list of frames; their room is kept for the next list in this slot.
    frames: Vec<u32>,
    /// How often the list stands on the stack.
    handles: u32,
    entry: Option<u32>,
    /// Whether the memo has it twice, so that its slot must stay.
    is_kept: bool,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Empty,
    Frames,
    /// Records of one sort, from the first to before the last.
    Records(Sort, u32, u32),
    /// Things that have nothing to do in one list.
    Mixed,
    Complete(Value),
}

impl Lists {
    /// A new list that stands on the stack once.
    pub(crate) fn open(&mut self) -> Result<u32, Halt> {
        if let Some(slot) = self.unused.pop() {
            self.slots[slot as usize].handles = 1;
            return Ok(slot);
        }
        let slot = self.slots.len();
        if slot as u64 >= limits::OBJECTS {
            return Err(PickleFault::TooMany { what: "open lists", limit: limits::OBJECTS }.into());
        }
        self.slots.push(Slot { handles: 1, ..Slot::default() });
        Ok(slot as u32)
    }

    /// The list stands on the stack once more.
    pub(crate) fn refer(&mut self, slot: u32) {
        self.slots[slot as usize].handles += 1;
    }

    /// The list was put into the memo.
    pub(crate) fn remember(&mut self, slot: u32, entry: u32) {
        let slot = &mut self.slots[slot as usize];
        if slot.entry.is_some() {
            slot.is_kept = true;
        } else {
            slot.entry = Some(entry);
        }
    }

    /// Adds `item`, which was taken from the stack, to the list in `slot`.
    pub(crate) fn append(&mut self, slot: u32, item: Value, contents: &mut Contents) -> Result<(), Halt> {
        let Slot { state, frames, .. } = &mut self.slots[slot as usize];
        let item = contents.as_trace(item, matches!(state, State::Empty | State::Records(Sort::Trace, ..)))?;
        *state = match (*state, item) {
            (State::Complete(_), _) => return Err(PickleFault::Recursive.into()),
            (State::Empty | State::Frames, Value::Frame(frame)) => {
                within(frames.len() + 1, limits::FRAMES_OF_A_STACK, "frames of a stack")?;
                self.frames += 1;
                within(self.frames as usize, limits::FRAMES, "frames of open lists")?;
                frames.push(frame);
                State::Frames
            }
            (State::Empty, Value::Record(sort, index)) => State::Records(sort, index, index + 1),
            (State::Records(sort, first, end), Value::Record(other, index)) if (sort, end) == (other, index) => {
                State::Records(sort, first, end + 1)
            }
            (State::Records(sort, ..), Value::Record(other, _)) if sort == other && sort != Sort::Trace => {
                return Err(PickleFault::UsedTwice.into());
            }
            _ => State::Mixed,
        };
        Ok(())
    }

    /// Takes the list in `slot` from the stack: what it stands for.
    pub(crate) fn take(&mut self, slot: u32, contents: &mut Contents, memo: &mut Memo) -> Result<Value, Halt> {
        let place = &mut self.slots[slot as usize];
        let value = match place.state {
            State::Complete(value) => value,
            State::Empty => Value::EmptyList,
            State::Frames => contents.stack(&place.frames)?,
            State::Records(sort, first, end) => contents.run(sort, first, end)?,
            State::Mixed => Value::Opaque(Opaque::List),
        };
        place.state = State::Complete(value);
        let mut frames = std::mem::take(&mut place.frames);
        self.frames -= frames.len() as u64;
        frames.clear();
        if let Some(entry) = place.entry {
            memo.settle(entry, value)?;
        }
        place.handles -= 1;
        if place.handles == 0 && !place.is_kept {
            let is_roomy = self.unused.len() < ROOMY;
            *place = Slot { frames: if is_roomy { frames } else { Vec::new() }, ..Slot::default() };
            self.unused.push(slot);
        }
        Ok(value)
    }
}
