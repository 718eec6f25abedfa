//! Tables in text.

/// The lines of a table: the first column to the left, the others to the right.
pub(crate) fn aligned(cells: &[Vec<String>]) -> Vec<String> {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let cells = [["name", "n"], ["a", "1,000"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&cells), ["name      n", "a     1,000"]);
    }
}
