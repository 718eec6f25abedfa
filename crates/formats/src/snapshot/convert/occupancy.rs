//! What stands at which address of a device, while its events are gone through.

use std::collections::HashMap;

/// The blocks of a device by their addresses, each with what is to be known of it.
#[derive(Debug)]
pub(crate) struct Occupancy<B> {
    held: HashMap<u64, Occupant<B>>,
}

impl<B> Default for Occupancy<B> {
    fn default() -> Self {
        Self { held: HashMap::new() }
    }
}

/// What stands at an address where something stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occupant<B> {
    Live(B),
    /// The program let go of it; the device has not finished.
    Freed(B),
    Gone,
}

/// Why there is no block to free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// No event spoke of the address before.
    Untouched,
    /// The last block there is gone.
    Gone,
}

/// A block that the device has finished with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended<B> {
    pub(crate) block: B,
    /// Whether no event said that the program let go of it.
    pub(crate) was_live: bool,
}

impl<B: Copy + PartialEq> Occupancy<B> {
    /// A block begins; returns what stood there and did not end.
    pub(crate) fn begin(&mut self, address: u64, block: B) -> Option<Occupant<B>> {
        self.held.insert(address, Occupant::Live(block)).filter(|&held| held != Occupant::Gone)
    }

    /// The program lets go of the block at an address.
    pub(crate) fn free(&mut self, address: u64) -> Result<B, Missing> {
        match self.held.get_mut(&address) {
            Some(held) => match *held {
                Occupant::Live(block) => {
                    *held = Occupant::Freed(block);
                    Ok(block)
                }
                Occupant::Freed(_) | Occupant::Gone => Err(Missing::Gone),
            },
            None => Err(Missing::Untouched),
        }
    }

    /// The device has finished with the block at an address.
    pub(crate) fn end(&mut self, address: u64) -> Result<Ended<B>, Missing> {
        let Some(held) = self.held.get_mut(&address) else { return Err(Missing::Untouched) };
        match std::mem::replace(held, Occupant::Gone) {
            Occupant::Live(block) => Ok(Ended { block, was_live: true }),
            Occupant::Freed(block) => Ok(Ended { block, was_live: false }),
            Occupant::Gone => Err(Missing::Gone),
        }
    }

    /// Says what stands at an address.
    pub(crate) fn put(&mut self, address: u64, held: Occupant<B>) {
        self.held.insert(address, held);
    }

    pub(crate) fn at(&self, address: u64) -> Option<Occupant<B>> {
        self.held.get(&address).copied()
    }

    /// All addresses that events spoke of, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Occupant<B>)> {
        self.held.iter().map(|(&address, &held)| (address, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_freed_and_taken_again() {
        let mut occupancy = Occupancy::default();
        let [first, second] = ["first", "second"];
        assert_eq!(occupancy.free(8), Err(Missing::Untouched));
        assert_eq!(occupancy.begin(8, first), None);
        assert_eq!(occupancy.free(8), Ok(first));
        assert_eq!(occupancy.free(8), Err(Missing::Gone));
        assert_eq!(occupancy.end(8), Ok(Ended { block: first, was_live: false }));
        assert_eq!(occupancy.end(8), Err(Missing::Gone));
        assert_eq!(occupancy.begin(8, second), None);
        assert_eq!(occupancy.end(8), Ok(Ended { block: second, was_live: true }));
        assert_eq!(occupancy.begin(8, first), None);
        assert_eq!(occupancy.begin(8, second), Some(Occupant::Live(first)));
    }
}
