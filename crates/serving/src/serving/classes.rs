//! Size classes of large blocks: eight between two powers of two, so that no more than an eighth of a block is lost.

use crate::serving::large::LARGE;

/// The largest blocks that have a class.
pub(crate) const LARGEST: usize = 1 << 20;

/// Sizes between two powers of two are divided into so many classes.
const STEPS: usize = 8;
/// How many classes there are.
pub(crate) const CLASSES: usize = STEPS * (LARGEST / LARGE).ilog2() as usize + 1;

/// All classes' sizes are multiples of this.
const UNIT: usize = LARGE / STEPS;

static SIZES: [usize; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let power = LARGE << (class / STEPS);
        sizes[class] = power + class % STEPS * (power / STEPS);
        class += 1;
    }
    sizes
};

/// The class of requests for so many units, less one.
static OF_UNITS: [u8; LARGEST / UNIT] = {
    let mut classes = [0; LARGEST / UNIT];
    let (mut units, mut class) = (0, 0);
    while units < classes.len() {
        if (units + 1) * UNIT > SIZES[class as usize] {
            class += 1;
        }
        classes[units] = class;
        units += 1;
    }
    classes
};

/// The smallest class whose blocks have `bytes`, which is not above [`LARGEST`].
#[inline]
pub(crate) fn class_of(bytes: usize) -> usize {
    OF_UNITS.get(bytes.saturating_sub(1) / UNIT).map_or(CLASSES - 1, |&class| usize::from(class))
}

/// What the blocks of a class have.
#[inline]
pub(crate) const fn size_of_class(class: usize) -> usize {
    SIZES[class]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_cover_all_sizes() {
        for class in 0..CLASSES - 1 {
            let size = size_of_class(class);
            assert_eq!((class_of(size), class_of(size + 1)), (class, class + 1), "{size}");
            let next = size_of_class(class + 1);
            assert!(size < next && (next - size) * STEPS <= size, "no more than an eighth is lost");
        }
        assert_eq!((size_of_class(0), size_of_class(CLASSES - 1)), (LARGE, LARGEST));
        assert_eq!((class_of(0), class_of(LARGE), class_of(LARGEST)), (0, 0, CLASSES - 1));
    }
}
