//! A benchmark as a table in text: a row per instance, the totals last.

use lowtide_core::Bytes;

use super::report::{Report, Row, Totals};
use super::rival::Attempt;
use crate::console::{columns, show};

/// Where there is nothing to show.
const NOTHING: &str = "-";

/// The lines of the table. With `asked` the column is whether it fits, otherwise whether it is proved.
pub(super) fn lines(report: &Report, asked: bool) -> Vec<String> {
    let rivals: Vec<&str> = report.totals.rivals.iter().map(|rival| &*rival.name).collect();
    let mut cells = vec![header(&rivals, asked)];
    cells.extend(report.instances.iter().map(|row| row_cells(row, &rivals, asked)));
    cells.push(totals_cells(&report.totals, asked));
    columns::aligned(&cells)
}

fn header(rivals: &[&str], asked: bool) -> Vec<String> {
    let last = if asked { "fits" } else { "proved" };
    let own = ["file", "buffers", "peak", "bound", "ratio", last, "CPU s", "wall s"].map(str::to_owned);
    let of_rivals = rivals.iter().flat_map(|name| ["peak", "ratio", "CPU s"].map(|what| format!("{name} {what}")));
    own.into_iter().chain(of_rivals).collect()
}

fn row_cells(row: &Row, rivals: &[&str], asked: bool) -> Vec<String> {
    let summary = &row.summary;
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let own = [
        row.label.clone(),
        show::thousands(summary.buffers),
        amount(summary.peak),
        bytes(summary.lower_bound),
        summary.peak.map_or_else(nothing, |peak| show::ratio(peak, summary.lower_bound)),
        if asked { summary.fits.map_or_else(|| "unknown".to_owned(), yes_or_no) } else { yes_or_no(summary.proved) },
        seconds(row.cpu_seconds),
        seconds(Some(summary.seconds)),
    ];
    let of_rivals = rivals.iter().flat_map(|name| attempt_cells(row.attempt(name), summary.lower_bound));
    own.into_iter().chain(of_rivals).collect()
}

fn attempt_cells(attempt: Option<&Attempt>, bound: Bytes) -> [String; 3] {
    match attempt {
        None => [nothing(), nothing(), nothing()],
        Some(Attempt { peak: None, cpu_seconds, .. }) => ["none".to_owned(), nothing(), seconds(*cpu_seconds)],
        Some(Attempt { peak: Some(peak), cpu_seconds, .. }) => {
            [bytes(*peak), show::ratio(*peak, bound), seconds(*cpu_seconds)]
        }
    }
}

fn totals_cells(totals: &Totals, asked: bool) -> Vec<String> {
    let mean =
        |mean: Option<f64>| mean.map_or_else(nothing, |mean| show::ratio_value(mean, (mean - 1.0).abs() < 1e-12));
    let of = |count: usize| format!("{count} of {}", totals.instances);
    let own = [
        "geometric mean, totals".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        mean(totals.ratio_geometric_mean),
        of(if asked { totals.fit } else { totals.proved }),
        seconds(Some(totals.cpu_seconds)),
        seconds(Some(totals.seconds)),
    ];
    let of_rivals = totals
        .rivals
        .iter()
        .flat_map(|rival| [of(rival.planned), mean(rival.ratio_geometric_mean), seconds(Some(rival.cpu_seconds))]);
    own.into_iter().chain(of_rivals).collect()
}

fn nothing() -> String {
    NOTHING.to_owned()
}

fn amount(amount: Option<Bytes>) -> String {
    amount.map_or_else(nothing, bytes)
}

/// To the byte: benchmarks are compared by less than what a larger unit would show.
fn bytes(amount: Bytes) -> String {
    show::thousands(amount.get() as usize)
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(nothing, |seconds| format!("{seconds:.2}"))
}
