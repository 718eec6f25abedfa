//! Size classes of large blocks: eight between two powers of two up to 1 MiB, so that no more than an eighth of a block is lost, and four above,
//! where blocks are sparse and what is lost is addresses.

use crate::serving::large::LARGE;

/// The largest blocks that have a class.
pub(crate) const LARGEST: usize = 8 << 20;

/// From here on there are fewer classes.
const FINEST: usize = 1 << 20;

/// Sizes between two powers of two are divided into so many classes, below [`FINEST`] and above.
const STEPS: usize = 8;
const COARSE_STEPS: usize = 4;

/// The first classes, up to [`FINEST`], and all.
pub(crate) const LARGE_CLASSES: usize = STEPS * (FINEST / LARGE).ilog2() as usize + 1;
pub(crate) const CLASSES: usize = LARGE_CLASSES + COARSE_STEPS * (LARGEST / FINEST).ilog2() as usize;

const _: () = assert!(CLASSES <= u64::BITS as usize);

/// All classes' sizes are multiples of this.
const UNIT: usize = LARGE / STEPS;

/// What is judged by itself, because a program that fills its blocks of one kind may touch little of those of another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    /// Up to 1 MiB.
    Large,
    /// Above.
    Larger,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Large, Self::Larger];

    /// That of a class.
    #[inline]
    pub(crate) const fn of(class: usize) -> Self {
        if class < LARGE_CLASSES { Self::Large } else { Self::Larger }
    }

    /// That of so many bytes.
    pub(crate) const fn of_size(bytes: usize) -> Self {
        if bytes <= FINEST { Self::Large } else { Self::Larger }
    }
}

static SIZES: [usize; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let (least, class_above, steps) = if class < LARGE_CLASSES {
            (LARGE, class, STEPS)
        } else {
            (FINEST, class - LARGE_CLASSES + 1, COARSE_STEPS)
        };
        let power = least << (class_above / steps);
        sizes[class] = power + class_above % steps * (power / steps);
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
            let steps = if next <= FINEST { STEPS } else { COARSE_STEPS };
            assert!(size < next && (next - size) * steps <= size, "no more than an eighth or a fourth is lost");
            assert_eq!(Kind::of(class), Kind::of_size(size));
        }
        assert_eq!((size_of_class(0), size_of_class(CLASSES - 1)), (LARGE, LARGEST));
        assert_eq!((class_of(0), class_of(LARGE), class_of(LARGEST)), (0, 0, CLASSES - 1));
    }
}
