//! PyTorch memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes, read without carrying out
//! anything in it and without building its tree, as a trace with remarks.

mod contents;
mod convert;
mod note;
mod pickle;

use std::io::Read;

use lowtide_core::Trace;

use crate::Error;

pub use note::Note;
pub use pickle::fault::PickleFault;

/// The first byte of every pickle that can be a snapshot.
pub(crate) const FIRST_BYTE: u8 = pickle::opcode::PROTO;

/// What a snapshot tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Its events as a trace: first what was there before them, then those of all devices in order of time.
    pub trace: Trace,
    /// What its reader should know: what was put together, left out, or does not add up.
    pub notes: Vec<Note>,
    /// The allocator's settings as the user gave them; empty where there were none.
    pub settings: String,
}

/// Reads a snapshot, in memory that grows with its events and not with its bytes.
pub(crate) fn read<'a>(reader: Box<dyn Read + 'a>) -> Result<Snapshot, Error> {
    convert::convert(pickle::machine::read(reader)?)
}
