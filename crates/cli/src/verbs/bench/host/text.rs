//! The benchmark of the host in text: a table for each workload, and a line on where Lowtide stands.

use lowtide_core::Bytes;

use super::measure::{Row, Standing};
use super::{Report, Workload};
use crate::console::{columns, show};
use crate::verbs::bench::contestant::Allocator;
use crate::verbs::bench::paired::Ratio;
use crate::verbs::bench::spread::Spread;

const LOWTIDE: &str = "lowtide";

/// All tables.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for rows in report.rows.chunk_by(|left, right| left.workload == right.workload) {
        lines.push(rows[0].workload.to_owned());
        let header = ["", "CPU ms a step", "faults a step", "peak RSS", "wall ms"].map(str::to_owned).to_vec();
        let table: Vec<Vec<String>> = [header].into_iter().chain(rows.iter().map(cells)).collect();
        lines.extend(columns::aligned(&table).into_iter().map(|line| format!("  {}", line.trim_end())));
        lines.extend(rows.iter().filter_map(served));
        lines.extend(standing(rows));
        let ratios = report.ratios.iter().filter(|standing| standing.workload == rows[0].workload);
        lines.extend(ratios.map(ratio));
        lines.push(String::new());
    }
    for skipped in &report.missing {
        lines.push(format!("MISSING {}: {}", skipped.name, skipped.reason));
    }
    for skipped in &report.failed {
        lines.push(format!("FAILED {}: {}", skipped.name, skipped.reason));
    }
    lines.push(format!(
        "medians of {} (lowest–highest), {} steps after {}, {}, {} here",
        show::counted(report.runs, "run"),
        report.steps,
        report.warm_up,
        show::counted(report.threads, "thread"),
        show::counted(report.processors, "processor"),
    ));
    lines
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.allocator.to_owned(),
        time(row.cpu_ms),
        show::thousands(row.faults.median.round() as usize),
        Bytes::new(row.peak_rss_bytes.median as u64).to_string(),
        time(row.wall_ms),
    ]
}

fn time(Spread { median, low, high }: Spread) -> String {
    let decimals = usize::from(median < 100.0);
    format!("{median:.decimals$} ({low:.decimals$}–{high:.decimals$})")
}

/// How Lowtide served.
fn served(row: &Row) -> Option<String> {
    let served = row.lowtide.as_ref()?;
    let planned =
        served.planned_from_step.map_or_else(|| "no plan".to_owned(), |step| format!("planned from step {step}"));
    let hits = served.hit_rate.map(|rate| format!(" · {:.2}% hits", 100.0 * rate)).unwrap_or_default();
    let warnings = served.warnings.iter().map(|warning| format!(" · {}", show::escaped(warning)));
    let by = if served.steps_by == "none" { String::new() } else { format!(" by {}", served.steps_by) };
    let steps = show::counted(served.steps as usize, "step");
    Some(format!("  {LOWTIDE}: {steps}{by} · {planned}{hits}{}", warnings.collect::<String>()))
}

/// Lowtide beside the best of the others; what is paid where there is nothing to win, beside what programs have now.
fn standing(rows: &[Row]) -> Option<String> {
    let own = rows.iter().find(|row| row.allocator == LOWTIDE)?;
    if own.workload == Workload::Small.name() {
        let glibc = rows.iter().find(|row| row.allocator == Allocator::Glibc.name())?;
        let more = |number: fn(Spread) -> f64| 100.0 * (number(own.cpu_ms) / number(glibc.cpu_ms) - 1.0);
        let (median, lowest) = (more(|cpu| cpu.median), more(|cpu| cpu.low));
        return Some(format!("  {LOWTIDE} beside glibc: CPU {median:+.1}%, of the lowest {lowest:+.1}%"));
    }
    let best = |number: fn(&Row) -> f64| {
        let others = rows.iter().filter(|row| row.allocator != LOWTIDE);
        let best = others.min_by(|left, right| number(left).total_cmp(&number(right)))?;
        Some(format!("{:.3}× {}'s", number(own) / number(best), best.allocator))
    };
    let (cpu, peak) = (best(|row| row.cpu_ms.median)?, best(|row| row.peak_rss_bytes.median)?);
    Some(format!("  {LOWTIDE} beside the best: CPU {cpu}, peak {peak}"))
}

/// Lowtide's time to another's, as far as it can be trusted.
fn ratio(standing: &Standing) -> String {
    let Ratio { mean, low, high, rounds } = standing.cpu;
    let rounds = show::counted(rounds, "round");
    format!("  {LOWTIDE} to {}: CPU {mean:.3}× ({low:.3}–{high:.3}, 95% of {rounds})", standing.allocator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_spread() {
        assert_eq!(time(Spread { median: 593.2, low: 560.0, high: 626.0 }), "593 (560–626)");
        assert_eq!(time(Spread { median: 8.24, low: 8.0, high: 9.0 }), "8.2 (8.0–9.0)");
    }
}
