//! Lists of items, one per row, in one vector.

/// For each row a list; the lists lie behind each other in `items`.
pub(crate) struct Rows<T> {
    from: Vec<u32>,
    pub items: Vec<T>,
}

impl<T: Copy + Default> Rows<T> {
    pub fn new(rows: usize, entries: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut from = vec![0_u32; rows + 1];
        for (row, _) in entries.clone() {
            from[row as usize + 1] += 1;
        }
        for row in 0..rows {
            from[row + 1] += from[row];
        }
        let mut next = from.clone();
        let mut items = vec![T::default(); from[rows] as usize];
        for (row, item) in entries {
            items[next[row as usize] as usize] = item;
            next[row as usize] += 1;
        }
        Self { from, items }
    }

    /// Where the list of `row` lies in `items`.
    pub fn range(&self, row: u32) -> std::ops::Range<usize> {
        self.from[row as usize] as usize..self.from[row as usize + 1] as usize
    }
}
