//! An explanation for the terminal: the moment first, then who is alive, what was late, and what would help.

use lowtide_core::{Alike, Explanation, Usage};

use super::words;
use crate::{Finding, Findings, Sheet, counted, thousands};

/// Rows of each part.
const ROWS: usize = 12;

/// `explanation` in lines as long as `sheet` is wide, where words are not longer than that.
pub fn explained(usage: &Usage, explanation: &Explanation, sheet: Sheet) -> Vec<String> {
    let findings = Findings::new(usage, explanation);
    let mut lines = alive(usage, explanation, sheet);
    lines.extend(late(&findings.late, sheet));
    lines.extend(remedies(&findings.remedies, sheet));
    lines.iter().map(|line| sheet.written(line)).collect()
}

/// The moment, as parts of a headline.
pub fn moment_parts(usage: &Usage, explanation: &Explanation) -> Vec<String> {
    let (moment, peak) = (explanation.moment, explanation.peak);
    let is_peak = moment.time == peak.time;
    let step = moment.step.map(|step| format!(" of step {step}")).unwrap_or_default();
    let after = usage.clock.as_ref().map(|clock| {
        let time = clock.at(moment.time).saturating_sub(clock.at(clock.first));
        format!(", {} after the start", words::duration(time))
    });
    let what = if is_peak { "peak" } else { "alive" };
    let after = after.unwrap_or_default();
    let now = format!("{what} {} at event {}{step}{after}", moment.live, words::event(moment.time));
    let highest = (!is_peak).then(|| format!("peak {} at event {}", peak.live, words::event(peak.time)));
    let planned = explanation.planned.map(|planned| format!("planned {planned}"));
    [Some(now), highest, planned].into_iter().flatten().collect()
}

fn alive(usage: &Usage, explanation: &Explanation, sheet: Sheet) -> Vec<String> {
    let total = explanation.moment.live.get().max(1);
    let count = explanation.alive.len();
    let mut lines = vec![format!("alive at this moment: {}, by size and place", counted(count, "buffer"))];
    lines.push(format!("  {:>10} {:>6} {:>11} {:>11}  {}", "bytes", "share", "since", "until", "what"));
    let (shown, rest) = explanation.alike.split_at(explanation.alike.len().min(ROWS));
    for Alike { buffers, bytes } in shown {
        let Some(&first) = buffers.first() else { continue };
        let lives = || buffers.iter().map(|&buffer| usage.problem.buffer(buffer).lifetime);
        let since = lives().map(|life| life.lower).min().unwrap_or_default();
        let until = lives().map(|life| life.upper).max().unwrap_or_default();
        let share = bytes.get() as f64 * 100.0 / total as f64;
        let what = match (buffers.len(), words::place(usage, first).map(|place| file_name(&place).to_owned())) {
            (1, Some(place)) => format!("{} {place}", words::id(usage, first)),
            (1, None) => words::id(usage, first),
            (count, Some(place)) => format!("{} × {place}", thousands(count)),
            (count, None) => format!("{} × {}", thousands(count), usage.problem.buffer(first).size),
        };
        lines.push(sheet.cut(&format!(
            "  {:>10} {share:>5.1}% {:>11} {:>11}  {what}",
            bytes.to_string(),
            words::event(since),
            words::event(until)
        )));
    }
    if !rest.is_empty() {
        let bytes: lowtide_core::Bytes = rest.iter().map(|alike| alike.bytes).sum();
        let buffers = rest.iter().map(|alike| alike.buffers.len()).sum();
        let share = bytes.get() as f64 * 100.0 / total as f64;
        let what = format!("+{} smaller", thousands(buffers));
        lines.push(format!("  {:>10} {share:>5.1}% {:>11} {:>11}  {what}", bytes.to_string(), "", ""));
    }
    lines
}

/// A place without its folders.
fn file_name(place: &str) -> &str {
    let (file, _) = place.split_once(' ').unwrap_or((place, ""));
    file.rfind('/').map_or(place, |slash| &place[slash + 1..])
}

fn late(late: &[String], sheet: Sheet) -> Vec<String> {
    if late.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "freed too late".to_owned()];
    lines.extend(late.iter().take(ROWS).flat_map(|text| sheet.wrapped(text, "  - ", "    ")));
    if late.len() > ROWS {
        lines.push(format!("  +{} more", thousands(late.len() - ROWS)));
    }
    lines
}

fn remedies(remedies: &[Finding], sheet: Sheet) -> Vec<String> {
    if remedies.is_empty() {
        return vec![String::new(), "no single change was found that lowers the peak".to_owned()];
    }
    let mut lines = vec![String::new(), "what would lower the peak, one change at a time".to_owned()];
    for (place, Finding { saves, leaves, text }) in remedies.iter().enumerate() {
        lines.extend(sheet.wrapped(&format!("−{saves}, to {leaves}: {text}"), &format!("{:>3}. ", place + 1), "     "));
    }
    lines
}
