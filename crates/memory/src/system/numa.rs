//! NUMA policies, by the raw call: the C library has no function for it.

#![expect(unsafe_code, reason = "calls mbind and set_mempolicy")]

use std::io;

use crate::error::Error;
use crate::host::Placement;
use crate::source::Span;
use crate::system::pages;

/// More nodes than any kernel knows.
const NODES: u32 = 1024;

const MPOL_BIND: libc::c_int = 2;
const MPOL_INTERLEAVE: libc::c_int = 3;

/// Says from which nodes the pages of `span` come when they are first touched.
///
/// # Safety
/// The caller owns the addresses.
pub(crate) unsafe fn place(span: Span, placement: &Placement) -> Result<(), Error> {
    let Some((mode, nodes)) = mode(placement) else { return Ok(()) };
    let mask = mask(nodes, "mbind")?;
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
    if result == 0 { Ok(()) } else { Err(refused("mbind", &io::Error::last_os_error())) }
}

/// Says from which nodes all pages come that this thread touches first, and what it starts from now on.
pub(crate) fn place_thread(placement: &Placement) -> Result<(), Error> {
    const CALL: &str = "set_mempolicy";
    let Some((mode, nodes)) = mode(placement) else { return Ok(()) };
    let mask = mask(nodes, CALL)?;
    // SAFETY: the mask is read for the number of bits that it has; the kernel takes that number less one.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), libc::c_ulong::from(NODES) + 1) };
    if result == 0 { Ok(()) } else { Err(refused(CALL, &io::Error::last_os_error())) }
}

/// The kernel's word for a placement; none where it has no wish.
fn mode(placement: &Placement) -> Option<(libc::c_int, &[u32])> {
    match placement {
        Placement::Anywhere => None,
        Placement::Bound(nodes) => Some((MPOL_BIND, nodes)),
        Placement::Interleaved(nodes) => Some((MPOL_INTERLEAVE, nodes)),
    }
}

fn mask(nodes: &[u32], call: &'static str) -> Result<[u64; NODES as usize / 64], Error> {
    let mut mask = [0; NODES as usize / 64];
    if nodes.is_empty() {
        return Err(Error::Refused { call, why: "no node was named".to_owned() });
    }
    for &node in nodes {
        let word = mask.get_mut(node as usize / 64);
        *word.ok_or_else(|| refused(call, &io::ErrorKind::InvalidInput.into()))? |= 1 << (node % 64);
    }
    Ok(mask)
}

fn refused(call: &'static str, error: &io::Error) -> Error {
    Error::Refused { call, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_own_bit() {
        let mask = mask(&[0, 65, 1023], "mbind").unwrap();
        assert_eq!((mask[0], mask[1], mask[15]), (1, 2, 1 << 63));
        assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 3);
    }

    #[test]
    fn nodes_that_no_kernel_has_are_refused() {
        assert!(mask(&[1024], "mbind").is_err());
        assert!(mask(&[u32::MAX], "mbind").is_err());
        assert!(mask(&[], "mbind").is_err());
    }
}
