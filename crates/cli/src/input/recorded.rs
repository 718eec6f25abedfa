//! A recorded run, out of any input that is one.

use lowtide_core::Trace;
use lowtide_formats::Input;

use crate::input::source::Source;
use crate::{Console, Failure};

/// A recorded run.
pub(crate) struct Recorded {
    pub trace: Trace,
    /// Whether its events were the rows of a table.
    is_table: bool,
}

impl Recorded {
    /// Reads `source`, and says what that had to leave open.
    pub fn read(source: &Source, console: &mut Console) -> Result<Self, Failure> {
        match source.read(console, Input::read)? {
            Input::Trace(trace) => Ok(Self { trace, is_table: true }),
            Input::Snapshot(snapshot) => {
                snapshot.notes.iter().for_each(|note| console.say(format!("note: {source}: {note}")));
                Ok(Self { trace: snapshot.trace, is_table: false })
            }
            other => {
                let message = format!("this is {}, not a recorded run", other.what());
                Err(Failure::unfit(&source.to_string(), message, "give a trace or a PyTorch snapshot"))
            }
        }
    }

    /// The row of an event, the header being row 1; nothing where it was none.
    pub fn row(&self, event: usize) -> Option<u64> {
        self.is_table.then_some(event as u64 + 2)
    }
}
