//! The benchmark of random sizes in text: two tables with a line for each program and a column for each allocator.

use lowtide_report::{Ink, Sheet};

use super::Report;
use super::measure::Row;
use crate::console::{columns, show};

/// The name of a program is broken where it is longer, so that five allocators fit beside it.
const NAME: Sheet = Sheet { ink: Ink::Unicode, width: 30 };

/// All of it.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let rows = &report.rows;
    let mut lines = Vec::new();
    for (head, cell) in [
        ("CPU ns a turn / peak MiB", cpu_and_peak as fn(&Row) -> String),
        ("wall ns / minor faults a turn", wall_and_faults),
    ] {
        // On a line of its own it is there too where the table is too wide for the terminal.
        lines.push(format!("{head}:"));
        lines.extend(columns::aligned(&table(rows, cell)).into_iter().map(|line| line.trim_end().to_owned()));
        lines.push(String::new());
    }
    lines.extend(rows.iter().flat_map(warnings));
    for skipped in &report.missing {
        lines.push(format!("MISSING {}: {}", skipped.name, skipped.reason));
    }
    for skipped in &report.failed {
        lines.push(format!("FAILED {}: {}", skipped.name, skipped.reason));
    }
    lines.push(format!(
        "medians of {}, {} here; a turn is one of one thread, a peak is that of the process",
        show::counted(report.runs, "run"),
        show::counted(report.processors, "processor"),
    ));
    lines
}

fn table(rows: &[Row], cell: fn(&Row) -> String) -> Vec<Vec<String>> {
    let mut allocators: Vec<&str> = Vec::new();
    for row in rows {
        if !allocators.contains(&row.allocator) {
            allocators.push(row.allocator);
        }
    }
    let mut table = vec![[""].iter().chain(&allocators).map(|&name| name.to_owned()).collect()];
    for of_program in rows.chunk_by(|left, right| left.number == right.number) {
        let mut names = NAME.wrapped(of_program[0].name, "", "  ");
        let last = names.pop().unwrap_or_default();
        table.extend(names.into_iter().map(|name| vec![name]));
        let cells = allocators.iter().map(|allocator| {
            let row = of_program.iter().find(|row| row.allocator == *allocator);
            row.map_or_else(|| "-".to_owned(), cell)
        });
        table.push([last].into_iter().chain(cells).collect());
    }
    table
}

fn cpu_and_peak(row: &Row) -> String {
    let peak = row.peak_rss_bytes.median / f64::from(1 << 20);
    format!("{} / {}", nanoseconds(row.cpu_ns.median), amount(peak))
}

fn wall_and_faults(row: &Row) -> String {
    let faults = row.faults.median;
    let decimals = if faults >= 10.0 { 0 } else { 2 };
    format!("{} / {faults:.decimals$}", nanoseconds(row.wall_ns.median))
}

fn nanoseconds(number: f64) -> String {
    show::thousands(number.round() as usize)
}

fn amount(mebibytes: f64) -> String {
    if mebibytes < 10.0 { format!("{mebibytes:.1}") } else { show::thousands(mebibytes.round() as usize) }
}

/// What Lowtide warned of.
fn warnings(row: &Row) -> Vec<String> {
    let warnings = row.lowtide.iter().flat_map(|served| &served.warnings);
    warnings.map(|warning| format!("{} in row {}: {}", row.allocator, row.number, show::escaped(warning))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::bench::malloc::program::PROGRAMS;
    use crate::verbs::bench::spread::Spread;

    fn row(number: usize, allocator: &'static str) -> Row {
        let of = |median| Spread { median, low: median, high: median };
        let mut row = Row::new(&PROGRAMS[number - 1], allocator, 1);
        (row.cpu_ns, row.wall_ns, row.faults) = (of(1234.4), of(617.6), of(2.0));
        row.peak_rss_bytes = of(9.26 * f64::from(1 << 20));
        row
    }

    #[test]
    fn a_long_name_is_broken_and_numbers_stand_beside_its_end() {
        let rows = [row(1, "glibc"), row(5, "glibc"), row(5, "lowtide")];
        let table = table(&rows, cpu_and_peak);
        assert_eq!(table[0], ["", "glibc", "lowtide"]);
        assert_eq!(table[1], ["1 thread, 33-41 KB, 20 blocks", "1,234 / 9.3", "-"]);
        assert_eq!(table[2], ["2 threads, 256 KiB-8 MiB, 40"]);
        assert_eq!(table[3], ["  blocks each", "1,234 / 9.3", "1,234 / 9.3"]);
    }

    #[test]
    fn a_table_of_five_allocators_fits_a_hundred_columns() {
        let allocators = ["glibc", "jemalloc-default", "tcmalloc", "mimalloc", "lowtide"];
        let rows: Vec<Row> = (1..=PROGRAMS.len()).flat_map(|number| allocators.map(|name| row(number, name))).collect();
        for cell in [cpu_and_peak as fn(&Row) -> String, wall_and_faults] {
            let lines = columns::aligned(&table(&rows, cell));
            assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 100), "{lines:#?}");
        }
    }
}
