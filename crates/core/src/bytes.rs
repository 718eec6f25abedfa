//! Amounts of memory: [`Bytes`], how they are written for people, and [`Align`].

use std::fmt;
use std::iter::Sum;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes: a size, or an offset from the start of a pool.
///
/// Displayed in KiB, MiB or GiB; this is the only place that decides how an amount reads. The operators
/// panic on overflow in debug builds like those of `u64`; a [`Problem`](crate::Problem) that passed its own
/// check cannot overflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

const UNITS: [(&str, u64); 5] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

impl Bytes {
    /// No bytes at all.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count as a bare integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or `None` where it does not fit 64 bits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or zero where `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The smallest multiple of `align` that is not below `self`, or `None` where it does not fit 64 bits.
    pub fn checked_align_up(self, align: Align) -> Option<Self> {
        self.0.checked_next_multiple_of(align.get()).map(Self)
    }

    /// How large `self` is as a multiple of `base`; one when both are zero.
    pub fn ratio(self, base: Self) -> f64 {
        if self == base { 1.0 } else { self.0 as f64 / base.0 as f64 }
    }
}

impl fmt::Display for Bytes {
    /// `17 B`, `1.5 KiB`, `21.0 GiB`: one decimal, except for plain bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = UNITS.into_iter().rev().find(|&(_, scale)| self.0 >= scale).unwrap_or(UNITS[0]);
        let text = if scale == 1 {
            format!("{} {unit}", self.0)
        } else {
            format!("{:.1} {unit}", self.0 as f64 / scale as f64)
        };
        f.pad(&text)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Why a text is not an amount of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// The part before the unit is no number.
    #[error("`{0}` is not an amount of memory; write bytes or a number with a unit, such as `1.5GiB`")]
    NotANumber(String),
    /// The unit is none of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB.
    #[error("`{0}` is not a unit of memory; use B, KiB, MiB, GiB, TiB or KB, MB, GB, TB")]
    UnknownUnit(String),
    /// The amount is negative, or larger than 64 bits hold.
    #[error("`{0}` is out of range; an amount of memory is between 0 and 2^64-1 bytes")]
    OutOfRange(String),
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads `4096`, `512MiB`, `1.5 GiB` or `2GB` (units of 1000 without the `i`, of 1024 with it; K, M, G
    /// and T alone are of 1024). A fraction of a byte is rounded up.
    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].trim_end(), &trimmed[split..]);
        let scale = unit_scale(unit).ok_or_else(|| ParseBytesError::UnknownUnit(unit.to_owned()))?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Self).ok_or_else(|| ParseBytesError::OutOfRange(text.to_owned()));
        }
        let value = number.parse::<f64>().map_err(|_| ParseBytesError::NotANumber(text.to_owned()))?;
        let scaled = (value * scale as f64).ceil();
        if scaled.is_finite() && scaled >= 0.0 && scaled < u64::MAX as f64 {
            Ok(Self(scaled as u64))
        } else {
            Err(ParseBytesError::OutOfRange(text.to_owned()))
        }
    }
}

fn unit_scale(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

/// What an offset must be a multiple of: any number but zero, not only powers of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Align(NonZeroU64);

impl Align {
    /// Every offset is aligned to one.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// An alignment of `multiple`, or `None` for zero.
    pub const fn new(multiple: u64) -> Option<Self> {
        match NonZeroU64::new(multiple) {
            Some(multiple) => Some(Self(multiple)),
            None => None,
        }
    }

    /// The multiple as a bare integer.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Whether `offset` is a multiple of this alignment.
    pub fn holds(self, offset: Bytes) -> bool {
        offset.0.is_multiple_of(self.get())
    }

    /// The largest number that divides both.
    #[must_use]
    pub fn common_divisor(self, other: Self) -> Self {
        let (mut a, mut b) = (self.get(), other.get());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self::new(a).unwrap_or(Self::ONE)
    }

    /// The smallest alignment that satisfies both, or `None` where it does not fit 64 bits.
    pub fn checked_common_multiple(self, other: Self) -> Option<Self> {
        let divided = self.get() / self.common_divisor(other).get();
        divided.checked_mul(other.get()).and_then(Self::new)
    }
}

impl Default for Align {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_in_the_largest_unit_that_is_not_a_fraction() {
        let shown: Vec<String> =
            [0, 1023, 1536, 22_548_578_304, 3 << 40].map(|count| Bytes::new(count).to_string()).into();
        assert_eq!(shown, ["0 B", "1023 B", "1.5 KiB", "21.0 GiB", "3.0 TiB"]);
    }

    #[test]
    fn sizes_are_read_as_bytes_or_with_a_unit() {
        let read = |text: &str| text.parse::<Bytes>().map(Bytes::get);
        assert_eq!(read("4096"), Ok(4096));
        assert_eq!(read("1.5GiB"), Ok(3 << 29));
        assert_eq!(read(" 2 kb "), Ok(2000));
        assert_eq!(read("18446744073709551615"), Ok(u64::MAX));
        assert!(matches!(read("-1"), Err(ParseBytesError::OutOfRange(_))));
        assert!(matches!(read("17TiBB"), Err(ParseBytesError::UnknownUnit(_))));
        assert!(matches!(read("99999999TiB"), Err(ParseBytesError::OutOfRange(_))));
        assert!(matches!(read("much"), Err(ParseBytesError::UnknownUnit(_))));
        assert!(matches!(read(""), Err(ParseBytesError::NotANumber(_))));
    }

    #[test]
    fn alignments_need_not_be_powers_of_two() {
        let six = Align::new(6).unwrap();
        let four = Align::new(4).unwrap();
        assert_eq!(six.common_divisor(four).get(), 2);
        assert_eq!(six.checked_common_multiple(four).unwrap().get(), 12);
        assert_eq!(Bytes::new(7).checked_align_up(six), Some(Bytes::new(12)));
        assert_eq!(Bytes::new(u64::MAX).checked_align_up(six), None);
    }
}
