//! Calls that a pool has to refuse: each changes nothing.

use lowtide_core::StreamId;

use super::super::ops::Misuse;
use super::super::violation::Fault;
use super::{Held, Runner, wrong};
use crate::error::Error;
use crate::pool::Address;

impl Runner<'_> {
    /// Makes a mistake, which has to be refused by name.
    pub(super) fn misuse(&self, misuse: Misuse) -> Result<(), Fault> {
        // What another thread does with an address that this one freed is not known.
        let freed = |which: usize| {
            let found = self.freed.get(which % self.freed.len().max(1)).copied();
            found.filter(|_| self.alone)
        };
        let pool = self.subject.pool;
        let is_held = |address: Address| self.blocks.iter().any(|held| held.address == address);
        let (address, result) = match misuse {
            Misuse::FreeAgain { which } => match freed(which) {
                Some(address) => (address, pool.free(address)),
                None => return Ok(()),
            },
            Misuse::RecordFreed { which } => match freed(which) {
                Some(address) => (address, pool.record(address, StreamId(9))),
                None => return Ok(()),
            },
            Misuse::FreeInside { which, offset } => {
                let Some(index) = self.index(which) else { return Ok(()) };
                let Held { address, ask, .. } = self.blocks[index];
                let inside = Address(address.0 + 1 + offset % ask.bytes.get().saturating_sub(1).max(1));
                if ask.bytes.get() < 2 {
                    return Ok(());
                }
                (inside, pool.free(inside))
            }
            Misuse::FreeWild { address } => {
                let address = Address(address);
                if is_held(address) || !self.alone {
                    return Ok(());
                }
                (address, pool.free(address))
            }
        };
        match result {
            Err(Error::DoubleFree { .. } | Error::ForeignAddress { .. }) => Ok(()),
            result => Err(wrong(format!("{misuse:?} at {address}"), result)),
        }
    }
}
