//! NUMA policies, by the raw call: the C library has no function for it.

#![expect(unsafe_code, reason = "calls mbind")]

use std::io;

use crate::error::Error;
use crate::host::options::Placement;
use crate::pages;
use crate::source::Span;

/// More nodes than any kernel knows.
const NODES: u32 = 1024;

const MPOL_BIND: libc::c_int = 2;
const MPOL_INTERLEAVE: libc::c_int = 3;

/// Says from which nodes the pages of `span` come when they are first touched.
///
/// # Safety
/// The caller owns the addresses.
pub(super) unsafe fn place(span: Span, placement: &Placement) -> Result<(), Error> {
    let (mode, nodes) = match placement {
        Placement::Anywhere => return Ok(()),
        Placement::Bound(nodes) => (MPOL_BIND, nodes),
        Placement::Interleaved(nodes) => (MPOL_INTERLEAVE, nodes),
    };
    let mask = mask(nodes)?;
    // SAFETY: the addresses are the caller's, and the mask is read for the number of bits that it has; the kernel takes
    // that number less one.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            pages::pointer(span),
            pages::length(span),
            mode,
            mask.as_ptr(),
            libc::c_ulong::from(NODES) + 1,
            0 as libc::c_uint,
        )
    };
    if result == 0 { Ok(()) } else { Err(refused(&io::Error::last_os_error())) }
}

fn mask(nodes: &[u32]) -> Result<[u64; NODES as usize / 64], Error> {
    let mut mask = [0; NODES as usize / 64];
    if nodes.is_empty() {
        return Err(Error::Refused { call: "mbind", why: "no node was named".to_owned() });
    }
    for &node in nodes {
        let word = mask.get_mut(node as usize / 64).ok_or_else(|| refused(&io::ErrorKind::InvalidInput.into()))?;
        *word |= 1 << (node % 64);
    }
    Ok(mask)
}

fn refused(error: &io::Error) -> Error {
    Error::Refused { call: "mbind", why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_own_bit() {
        let mask = mask(&[0, 65, 1023]).unwrap();
        assert_eq!((mask[0], mask[1], mask[15]), (1, 2, 1 << 63));
        assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 3);
    }

    #[test]
    fn nodes_that_no_kernel_has_are_refused() {
        assert!(mask(&[1024]).is_err());
        assert!(mask(&[u32::MAX]).is_err());
        assert!(mask(&[]).is_err());
    }
}
