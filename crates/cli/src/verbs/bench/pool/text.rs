//! The benchmark of allocators in text: one table per part.

use super::{Report, curve, latency, plans, threads, traces};
use crate::console::{columns, show};

/// Where there is nothing to show.
const NOTHING: &str = "-";

/// All tables that there is something in.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let parts = [
        ("waste, and most driver calls of a step after the second", traces_table(&report.traces)),
        ("three rounds without a plan and with one, planning included", plans_table(&report.plans)),
        ("the arena's waste and those calls, by how many it may make", curve_table(&report.curve)),
        ("asking for a block and freeing one, one thread", latency_table(&report.latency)),
        ("pairs a second by threads", threads_table(&report.threads)),
    ];
    let mut lines = Vec::new();
    for (title, table) in parts {
        if table.len() > 1 {
            lines.extend((!lines.is_empty()).then(String::new));
            lines.push(title.to_owned());
            lines.extend(columns::aligned(&table).into_iter().map(|line| line.trim_end().to_owned()));
        }
    }
    lines.push(String::new());
    lines.push(format!("{} here", show::counted(report.processors, "processor")));
    lines
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn traces_table(rows: &[traces::Row]) -> Vec<Vec<String>> {
    let mut table =
        vec![cells(["run", "caching", "expandable", "arena", "calls", "planned", "from step 3", "calls", "reached"])];
    for row in rows {
        table.push(vec![
            row.trace.clone(),
            percent(row.caching_waste),
            percent(row.expandable_waste),
            percent(row.arena_waste),
            count(row.arena_calls),
            percent(row.planned_waste),
            row.planned_above_bound.map_or_else(nothing, percent),
            count(row.planned_calls),
            if row.met { "yes" } else { "no" }.to_owned(),
        ]);
        let target = row.target;
        table.push(vec![
            "  at most".to_owned(),
            String::new(),
            String::new(),
            percent(target.arena_waste),
            target.arena_calls.map(|calls| calls.to_string()).unwrap_or_default(),
            String::new(),
            target.planned_above_bound.map(percent).unwrap_or_default(),
            target.planned_calls.map(|calls| calls.to_string()).unwrap_or_default(),
        ]);
    }
    table
}

fn plans_table(rows: &[plans::Row]) -> Vec<Vec<String>> {
    let heads = ["run", "steps", "reserved", "planned", "calls", "planned", "ms", "planned", "no worse"];
    let mut table = vec![cells(heads)];
    for row in rows {
        let above = row.planned.reserved.ratio(row.arena.reserved) - 1.0;
        table.push(vec![
            row.trace.clone(),
            if row.marked { "marked" } else { "found" }.to_owned(),
            row.arena.reserved.to_string(),
            format!("{}{}", if above > 0.0 { "+" } else { "" }, percent(above)),
            show::thousands(row.arena.driver_calls as usize),
            show::thousands(row.planned.driver_calls as usize),
            format!("{:.0}", row.arena.milliseconds),
            format!("{:.0}", row.planned.milliseconds),
            if row.met { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn curve_table(rows: &[curve::Row]) -> Vec<Vec<String>> {
    let ration = |ration: u64| if ration == u64::MAX { "no limit".to_owned() } else { ration.to_string() };
    let mut table = vec![["run".to_owned()].into_iter().chain(curve::RATIONS.map(ration)).collect::<Vec<_>>()];
    for row in rows {
        let waste = row.points.iter().map(|point| percent(point.waste));
        table.push([row.trace.clone()].into_iter().chain(waste).collect());
        let calls = row.points.iter().map(|point| count(point.calls));
        table.push(["  calls".to_owned()].into_iter().chain(calls).collect());
    }
    table
}

fn latency_table(rows: &[latency::Row]) -> Vec<Vec<String>> {
    let mut table = vec![cells(["", "", "p50", "p99", "mean", "longest", "from the plan", "driver calls", "to reach"])];
    for row in rows {
        table.push(vec![
            row.program.name().to_owned(),
            row.server.name().to_owned(),
            format!("{} ns", row.p50_ns),
            format!("{} ns", row.p99_ns),
            format!("{:.0} ns", row.mean_ns),
            format!("{:.2} ms", row.longest_ns as f64 / 1e6),
            row.hit_rate.map_or_else(nothing, percent),
            count(row.driver_calls),
            row.target.map_or_else(nothing, latency_target),
        ]);
    }
    table
}

fn latency_target(target: latency::Target) -> String {
    let p99 = target.p99_ns.map(|p99| format!(", p99 {p99} ns")).unwrap_or_default();
    format!("p50 {} ns{p99}", target.p50_ns)
}

fn threads_table(rows: &[threads::Row]) -> Vec<Vec<String>> {
    let mut table = vec![cells(["", "threads", "pairs a second", "speed-up", "from the plan", "to reach"])];
    for row in rows {
        table.push(vec![
            row.server.name().to_owned(),
            row.threads.to_string(),
            show::thousands(row.pairs_per_second as usize),
            format!("{:.2}×", row.speedup),
            row.hit_rate.map_or_else(nothing, percent),
            row.target.map_or_else(nothing, |target| format!("{target:.1}×")),
        ]);
    }
    table
}

fn nothing() -> String {
    NOTHING.to_owned()
}

fn count(number: Option<u64>) -> String {
    number.map_or_else(nothing, |number| show::thousands(number as usize))
}

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let decimals = if percent.abs() >= 0.095 || percent == 0.0 { 1 } else { 3 };
    format!("{percent:.decimals$}%")
}
