//! `roundup_power2_divisions`: into how many parts the way from one power of two to the next is divided, by the size
//! of the block. A block is rounded up to the next of these marks.

use super::option_error::OptionError;

/// Blocks of 1, 2, 4, … MiB have a number of their own, smaller ones that of 1 MiB, larger ones that of the last.
const INTERVALS: usize = 16;
const FIRST: u32 = 20;

/// What `roundup_power2_divisions` says, as it was written and as it is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Divisions {
    written: String,
    table: [u64; INTERVALS],
}

impl Divisions {
    pub(super) const OPTION: &'static str = "roundup_power2_divisions";

    /// No block is rounded in this way.
    pub(super) fn none() -> Self {
        Self { written: String::new(), table: [0; INTERVALS] }
    }

    /// Reads `4`, the same for all sizes, or `[256:1,512:2,>:4]`: by MiB, where the first number also holds below its
    /// size, `>` for all above the size before it, and sizes between two others are not divided.
    pub(super) fn read(value: &str) -> Result<Self, OptionError> {
        let refused = |range: &str| OptionError::OutOfRange {
            option: Self::OPTION.to_owned(),
            value: value.to_owned(),
            range: range.to_owned(),
        };
        let mut divisions = Self { written: value.to_owned(), table: [0; INTERVALS] };
        let Some(list) = value.strip_prefix('[') else {
            let number = power_of_two(value).ok_or_else(|| refused("a power of two, or a list"))?;
            divisions.table = [number; INTERVALS];
            return Ok(divisions);
        };
        let list = list.strip_suffix(']').ok_or_else(|| refused("a list that ends with `]`"))?;
        let mut last = None;
        for entry in list.split(',').filter(|entry| !entry.is_empty()) {
            let (size, number) = entry.split_once(':').ok_or_else(|| refused("a list of `MiB:divisions`"))?;
            let number = if number == "0" { Some(0) } else { power_of_two(number) };
            let number = number.ok_or_else(|| refused("a list of divisions that are 0 or powers of two"))?;
            if size == ">" {
                divisions.table[last.unwrap_or(0) + 1..].fill(number);
                continue;
            }
            let size = power_of_two(size).ok_or_else(|| refused("a list of sizes that are powers of two, or `>`"))?;
            let interval = (size.ilog2() as usize).min(INTERVALS - 1);
            if last.is_none() {
                divisions.table[..interval].fill(number);
            }
            divisions.table[interval] = number;
            last = Some(interval);
        }
        Ok(divisions)
    }

    /// As it was written; nothing where nothing was.
    pub(super) fn written(&self) -> &str {
        &self.written
    }

    /// `bytes`, which is not zero, rounded up to the next multiple of `unit` or the next mark, or `None` where that
    /// does not fit 64 bits.
    pub(super) fn round(&self, bytes: u64, unit: u64) -> Option<u64> {
        let number = self.table[(bytes.ilog2().saturating_sub(FIRST) as usize).min(INTERVALS - 1)];
        if number > 1 && number.checked_mul(unit).is_some_and(|least| bytes > least) {
            bytes.checked_next_multiple_of((1 << bytes.ilog2()) / number)
        } else {
            bytes.checked_next_multiple_of(unit)
        }
    }
}

fn power_of_two(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn table(value: &str) -> [u64; INTERVALS] {
        Divisions::read(value).unwrap().table
    }

    #[test]
    fn a_number_holds_for_all_sizes() {
        assert_eq!(table("4"), [4; INTERVALS]);
    }

    #[test]
    fn a_list_holds_by_size_and_its_first_number_below_it() {
        let by_size = table("[64:8,128:2,256:4,512:2,1024:4,>:1]");
        assert_eq!(by_size, [8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn sizes_between_two_others_are_not_divided() {
        let by_size = table("[128:8,256:16,512:1,2048:8,>:2]");
        assert_eq!(by_size[6..13], [8, 8, 16, 1, 0, 8, 2]);
    }

    #[test]
    fn sizes_above_the_last_interval_are_of_the_last() {
        assert_eq!(table("[1048576:8]")[INTERVALS - 1], 8);
        assert_eq!(table("[32768:2,>:4]")[INTERVALS - 1], 2);
    }

    #[test]
    fn blocks_are_rounded_to_the_next_mark() {
        let four = Divisions::read("4").unwrap();
        assert_eq!(four.round(1200 * MIB, 512), Some(1280 * MIB));
        assert_eq!(four.round(1280 * MIB, 512), Some(1280 * MIB));
        assert_eq!(four.round(1024 * MIB, 512), Some(1024 * MIB));
        assert_eq!(four.round(1793 * MIB, 512), Some(2048 * MIB));
        assert_eq!(four.round(2048, 512), Some(2048), "too small for four marks of 512 bytes");
        assert_eq!(four.round(2049, 512), Some(2560));
        assert_eq!(four.round(u64::MAX, 512), None);
    }

    #[test]
    fn without_divisions_blocks_are_rounded_to_the_unit() {
        for one in ["1", "[1:1,>:0]"] {
            assert_eq!(Divisions::read(one).unwrap().round(1200 * MIB + 1, 512), Some(1200 * MIB + 512));
        }
    }

    #[test]
    fn hostile_lists_are_refused() {
        for value in
            ["", "0", "3", "-4", "4x", "[4", "[3:4]", "[4:3]", "[4]", "[>]", "[4:]", "[:4]", "[4:4:4]", "[[4:4]]"]
        {
            let error = Divisions::read(value).expect_err(value);
            assert!(matches!(error, OptionError::OutOfRange { .. }), "{value}");
        }
    }
}
