//! Reading and writing the memory under blocks, for tests that look whether blocks keep their contents. Every access is
//! checked against the model of a watched source, which is locked meanwhile.

#![expect(unsafe_code, reason = "reads and writes memory of a source by its address")]

use std::ptr;

use lowtide_core::Bytes;
use lowtide_memory::Span;

use crate::program::MemoryModel;

/// Writes `bytes` at `address`; `false`, and nothing, where they cannot all be written.
pub(crate) fn write(model: &MemoryModel, address: u64, bytes: &[u8]) -> bool {
    if !model.is_accessible(Span::new(address, Bytes::new(bytes.len() as u64))) {
        return false;
    }
    let to = ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: there is memory under all of these addresses, which the processor may write, and it stays while the model
    // are borrowed: a watched source changes nothing without them. It is the source's own, so that no reference of this
    // program points there, `bytes` neither.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    true
}

/// Reads `bytes` at `address`; `false`, and nothing, where they cannot all be read.
pub(crate) fn read(model: &MemoryModel, address: u64, bytes: &mut [u8]) -> bool {
    if !model.is_accessible(Span::new(address, Bytes::new(bytes.len() as u64))) {
        return false;
    }
    let from = ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: as in `write`; fresh memory of a source is all zeros, so that every byte has a value.
    unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    true
}
