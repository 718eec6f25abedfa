//! Whether memory is short: for the control group that the process is in, or for the machine. It is when what a group
//! cannot drop (all it has, less file pages) reaches 95% of its limit, or when, averaged over 10 seconds, some of its
//! tasks waited for memory 10% of the time.

use lowtide_core::Bytes;
use lowtide_memory::system::files::groups::{Group, machine_available, machine_waiting};

/// The share of a limit that counts as pressure, in percent.
const FULL: u64 = 95;

/// The share of time that tasks wait for memory that counts as pressure, in percent.
const WAITING: f64 = 10.0;

/// Where pressure is read.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// The process's group and those around it, as far as they are to be seen.
    groups: Vec<Group>,
}

impl Pressure {
    /// Finds the group of this process.
    pub(crate) fn new() -> Self {
        Self { groups: Group::own() }
    }

    /// How much more the process and those beside it may use: what the machine has left, and the groups up to their limits.
    pub(crate) fn room(&self) -> Option<Bytes> {
        let of_group = |group: &Group| {
            let used = group.current()?.saturating_sub(group.file_pages().unwrap_or_default());
            Some(group.limit()?.saturating_sub(used))
        };
        self.groups.iter().filter_map(of_group).chain(machine_available()).min()
    }

    /// Whether a group reaches its limit, or, where that is asked too, tasks wait for memory.
    pub(crate) fn is_met(&self, asks_for_waiting: bool) -> bool {
        self.is_full() || asks_for_waiting && self.is_waiting()
    }

    /// Whether a group reaches its limit.
    fn is_full(&self) -> bool {
        self.groups.iter().any(is_full)
    }

    /// Whether tasks wait for memory.
    fn is_waiting(&self) -> bool {
        let own = self.groups.first().and_then(Group::waiting);
        own.or_else(machine_waiting).is_some_and(|share| share >= WAITING)
    }
}

fn is_full(group: &Group) -> bool {
    let (Some(limit), Some(current)) = (group.limit(), group.current()) else { return false };
    let reaches = |bytes: Bytes| u128::from(bytes.get()) * 100 >= u128::from(limit.get()) * u128::from(FULL);
    // What the system has to add up is asked for only where it matters.
    reaches(current) && reaches(current.saturating_sub(group.file_pages().unwrap_or_default()))
}
