//! Numbers for hashes of search states: near values have nothing in common in 128 bits.

use lowtide_core::random::mix;

/// Scatters the bits of `value` over 128.
pub(crate) fn scatter(value: u64) -> u128 {
    (u128::from(mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))) << 64) | u128::from(mix(value ^ 0xd1b5_4a32_d192_ed03))
}
