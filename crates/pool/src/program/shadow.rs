//! What a block in hand should hold: bytes that follow from its number, all over a small block, and at the ends and in
//! stripes of a large one.

use std::ops::Range;

use super::watching::Watching;
use crate::pool::Address;

/// Blocks up to here are written all over.
const SMALL: u64 = 16 << 10;
/// What is written at each end of a larger one.
const ENDS: u64 = 4 << 10;
/// How far its stripes are apart.
const APART: u64 = 1 << 20;
const STRIPE: u64 = 64;

/// Writes what the block with this number holds; `false` where there is no memory to write.
pub(super) fn fill(source: &Watching, block: Address, bytes: u64, number: u64) -> bool {
    parts(bytes).all(|part| source.write(block.0 + part.start, &pattern(number, &part)))
}

/// The first offset at which a block does not hold what was written.
pub(super) fn first_difference(source: &Watching, block: Address, bytes: u64, number: u64) -> Option<u64> {
    parts(bytes).find_map(|part| {
        let expected = pattern(number, &part);
        let mut found = vec![0; expected.len()];
        if !source.read(block.0 + part.start, &mut found) {
            return Some(part.start);
        }
        let position = expected.iter().zip(&found).position(|(expected, found)| expected != found);
        position.map(|position| part.start + position as u64)
    })
}

/// The parts of a block that are written.
fn parts(bytes: u64) -> Box<dyn Iterator<Item = Range<u64>>> {
    if bytes <= SMALL {
        return Box::new(std::iter::once(0..bytes));
    }
    let stripes = (APART..bytes - ENDS - STRIPE).step_by(APART as usize).map(|start| start..start + STRIPE);
    Box::new([0..ENDS, bytes - ENDS..bytes].into_iter().chain(stripes))
}

/// What the block with this number holds at some offsets.
fn pattern(number: u64, part: &Range<u64>) -> Vec<u8> {
    let word = |index: u64| {
        let mixed = (number ^ index.rotate_left(32)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    let words = part.start / 8..part.end.div_ceil(8);
    let bytes: Vec<u8> = words.flat_map(|index| word(index).to_le_bytes()).collect();
    let skipped = (part.start % 8) as usize;
    bytes[skipped..skipped + (part.end - part.start) as usize].to_vec()
}
