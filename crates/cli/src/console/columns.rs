//! Tables in text, as wide as the terminal is.

use crate::console::width;

/// The lines of a table: the first column to the left, the others to the right. Where it is too wide for the terminal, each
/// row is its name and what its columns say, on as many lines as that takes.
pub(crate) fn aligned(cells: &[Vec<String>]) -> Vec<String> {
    within(cells, in_columns(cells), width())
}

/// As [`aligned`], with a last column that is not padded, because it differs from run to run.
pub(crate) fn aligned_before(cells: &[Vec<String>], last: &[String]) -> Vec<String> {
    let lines = in_columns(cells).into_iter().zip(last).map(|(line, last)| format!("{line}  {last}")).collect();
    let whole: Vec<Vec<String>> =
        cells.iter().zip(last).map(|(row, last)| row.iter().chain([last]).cloned().collect()).collect();
    within(&whole, lines, width())
}

/// `lines` of a table, or its rows by themselves where those are too long.
fn within(cells: &[Vec<String>], lines: Vec<String>, width: Option<usize>) -> Vec<String> {
    let widest = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    match width {
        Some(width) if widest > width => in_rows(cells, width),
        _ => lines,
    }
}

fn in_columns(cells: &[Vec<String>]) -> Vec<String> {
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

/// Every row by itself: its first cell, and then the others behind the names of their columns.
fn in_rows(cells: &[Vec<String>], width: usize) -> Vec<String> {
    let Some((names, rows)) = cells.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(row.first().cloned());
        let mut line = String::new();
        for (name, cell) in names.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
            let part = format!("{name} {cell}");
            if !line.is_empty() && line.chars().count() + 3 + part.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(if line.is_empty() { "  " } else { " · " });
            line.push_str(part.trim_start());
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<const N: usize>(rows: [[&str; N]; 2]) -> Vec<Vec<String>> {
        rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()
    }

    #[test]
    fn names_stand_left_and_numbers_right() {
        let cells = table([["name", "n"], ["a", "1,000"]]);
        for width in [None, Some(11)] {
            assert_eq!(within(&cells, in_columns(&cells), width), ["name      n", "a     1,000"]);
        }
    }

    #[test]
    fn a_table_that_is_too_wide_has_its_columns_below_each_other() {
        let cells = table([["allocator", "reserved", "wasted", "calls"], ["caching", "90.0 MiB", "20.0%", "6"]]);
        let lines = within(&cells, in_columns(&cells), Some(30));
        assert_eq!(lines, ["caching", "  reserved 90.0 MiB", "  wasted 20.0% · calls 6"]);
    }
}
