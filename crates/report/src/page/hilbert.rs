//! A curve that visits every cell of a square grid so that cells visited one after the other lie side by side.

const BITS: u32 = 31;

/// The largest coordinate.
pub(crate) const MOST: u64 = (1 << BITS) - 1;

/// How far along the curve the cell at `x`, `y` lies.
pub(crate) fn place(x: u64, y: u64) -> u64 {
    let (mut x, mut y) = (x.min(MOST), y.min(MOST));
    let mut place = 0;
    for bit in (0..BITS).rev() {
        let right = (x >> bit) & 1;
        let upper = (y >> bit) & 1;
        place = (place << 2) | ((3 * right) ^ upper);
        let below = (1 << bit) - 1;
        (x, y) = (x & below, y & below);
        if upper == 0 {
            if right == 1 {
                (x, y) = (below - x, below - y);
            }
            (x, y) = (y, x);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_curve_are_neighbours_on_the_grid() {
        let mut cells: Vec<(u64, u64)> = (0..16).flat_map(|x| (0..16).map(move |y| (x, y))).collect();
        cells.sort_by_key(|&(x, y)| place(x, y));
        let places: Vec<u64> = cells.iter().map(|&(x, y)| place(x, y)).collect();
        assert!(places.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert!(cells.windows(2).all(|pair| pair[0].0.abs_diff(pair[1].0) + pair[0].1.abs_diff(pair[1].1) == 1));
    }
}
