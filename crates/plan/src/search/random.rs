//! A small deterministic generator: the same seed gives the same plan on every machine.

/// The generator known as `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Scatters the bits of `value` so that near values have nothing in common.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Scatters the bits of `value` over 128.
pub(crate) fn scatter(value: u64) -> u128 {
    (u128::from(mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))) << 64) | u128::from(mix(value ^ 0xd1b5_4a32_d192_ed03))
}
