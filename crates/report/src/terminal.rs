//! The report in the columns of a terminal: what was alive over time, a strip of the memory at the peak, and who is alive there.

use lowtide_core::{Alive, Bytes, Layout, Moment, Origin, Usage};

use crate::{Curve, Group, Grouping, Ink, Sheet, alive_at, counted, group, peak, thousands};

const LABEL: usize = 10;
const CURVE_ROWS: usize = 6;
const STRIP_ROWS: usize = 6;
/// Groups that have a letter and a row of the table.
const LETTERS: &[u8] = b"ABCDEFGHIJKL";

/// The view of `usage`, line by line, none longer than `sheet` is wide. Letters are the groups of the table.
pub fn terminal(usage: &Usage, live: &Curve, by: Grouping, sheet: Sheet) -> Vec<String> {
    let moment = peak(usage, live);
    let alive = alive_at(usage, moment.time);
    let groups = group(usage, &alive, by);
    let mut lines = curve(usage, live, moment, sheet);
    for layout in &usage.layouts {
        if matches!(layout.origin, Origin::Recorded | Origin::Planned) {
            lines.push(String::new());
            lines.extend(strip(usage, layout, (moment.time, &alive), by, &groups, sheet));
        }
    }
    lines.push(String::new());
    lines.extend(table(&groups, moment, alive.len(), by, sheet));
    lines.iter().map(|line| sheet.cut(line)).collect()
}

/// `text` in at most `width` characters, without anything that steers a terminal.
fn cut(text: &str, width: usize, ink: Ink) -> String {
    let plain = |letter: char| match (letter.is_control(), ink, letter.is_ascii()) {
        (true, ..) | (false, Ink::Ascii, false) => '?',
        _ => letter,
    };
    let mut letters: Vec<char> = text.chars().map(plain).collect();
    if letters.len() > width {
        letters.truncate(width.saturating_sub(1));
        letters.push(if ink == Ink::Ascii { '~' } else { '…' });
    }
    letters.into_iter().collect()
}

/// What was alive over time, the peak marked under it.
fn curve(usage: &Usage, live: &Curve, moment: Moment, sheet: Sheet) -> Vec<String> {
    let ink = sheet.ink;
    let span = usage.span();
    let columns = sheet.width - LABEL - 1;
    let length = span.end.abs_diff(span.start).max(1);
    let column_of = |time: i64| (u128::from(time.abs_diff(span.start)) * columns as u128 / u128::from(length)) as usize;
    let mut highest = vec![Bytes::ZERO; columns];
    let ends = live.points.iter().skip(1).map(|point| point.0).chain([span.end]);
    for (&(start, bytes), end) in live.points.iter().zip(ends) {
        let first = column_of(start).min(columns - 1);
        let last = column_of(end).saturating_sub(1).clamp(first, columns - 1);
        for column in &mut highest[first..=last] {
            *column = (*column).max(bytes);
        }
    }
    let top = moment.live.get().max(1);
    let steps: &[char] = match ink {
        Ink::Unicode => &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        Ink::Ascii => &[' ', '.', ':', '#'],
    };
    let full = steps.len() - 1;
    let mut lines: Vec<String> = (0..CURVE_ROWS)
        .rev()
        .map(|row| {
            let label = if row == CURVE_ROWS - 1 { moment.live.to_string() } else { String::new() };
            let filled = highest.iter().map(|bytes| {
                let level = (u128::from(bytes.get()) * (CURVE_ROWS * full) as u128).div_ceil(u128::from(top)) as usize;
                steps[level.saturating_sub(row * full).min(full)]
            });
            format!("{label:>LABEL$} {}", filled.collect::<String>()).trim_end().to_owned()
        })
        .collect();
    let at = column_of(moment.time).min(columns - 1);
    let mark = if ink == Ink::Ascii { '^' } else { '▲' };
    let step = moment.step.map(|step| format!(", step {step}")).unwrap_or_default();
    let words = format!("peak at event {}{step}", crate::explained::words::event(moment.time));
    let line = if at + 2 + words.chars().count() <= columns {
        format!("{:LABEL$} {:at$}{mark} {words}", "", "")
    } else {
        format!("{:LABEL$} {words:>at$} {mark}", "", at = at.saturating_sub(1))
    };
    lines.push(line);
    lines
}

/// The memory at the peak, a letter for the group that holds most of each stretch.
fn strip(
    usage: &Usage,
    layout: &Layout,
    (time, alive): (i64, &[Alive]),
    by: Grouping,
    groups: &[Group],
    sheet: Sheet,
) -> Vec<String> {
    let ink = sheet.ink;
    let columns = sheet.width - LABEL - 1;
    let total = layout.plan.peak().get();
    let cells = columns * STRIP_ROWS;
    let per_cell = total.div_ceil(cells as u64).max(1);
    let floors = layout.plan.floors();
    let used = total.div_ceil(per_cell) as usize;
    let mut held = vec![[0_u64; LETTERS.len() + 1]; used];
    for one in alive {
        let key = by.key(usage, one.buffer);
        let letter = groups.iter().position(|group| group.key == key).unwrap_or(LETTERS.len()).min(LETTERS.len());
        let placement = layout.plan.placement(one.buffer);
        let start = (floors[placement.pool.get()] + placement.offset).get();
        let end = (start + usage.problem.buffer(one.buffer).size.get()).min(total);
        let mut at = start;
        while at < end {
            let cell = (at / per_cell) as usize;
            let next = ((cell as u64 + 1) * per_cell).min(end);
            held[cell][letter] += next - at;
            at = next;
        }
    }
    let free = if ink == Ink::Ascii { '.' } else { '·' };
    let letter = |(cell, shares): (usize, &[u64; LETTERS.len() + 1])| {
        let size = per_cell.min(total - cell as u64 * per_cell);
        let taken: u64 = shares.iter().sum();
        let most = shares.iter().enumerate().max_by_key(|&(place, share)| (*share, std::cmp::Reverse(place)));
        match most {
            // Mostly free.
            Some(_) if taken * 2 < size => free,
            Some((place, _)) => LETTERS.get(place).map_or('+', |&letter| letter as char),
            None => free,
        }
    };
    let letters: Vec<char> = held.iter().enumerate().map(letter).collect();
    let (name, total) = (layout.origin.name(), Bytes::new(total));
    let reserved = Curve::reserved(usage);
    let amount = if layout.origin == Origin::Recorded && !reserved.points.is_empty() {
        format!("{} reserved ({total} at most)", reserved.at(time))
    } else {
        format!("{total} in all")
    };
    let key = format!("each letter is {}, {free} is unused", Bytes::new(per_cell));
    let mut lines = vec![format!("memory at the peak, {name}: {amount}"), key];
    lines.extend(letters.chunks(columns).enumerate().map(|(row, letters)| {
        let label = Bytes::new((row * columns) as u64 * per_cell).to_string();
        format!("{label:>LABEL$} {}", letters.iter().collect::<String>())
    }));
    lines
}

/// The groups alive at the peak.
fn table(groups: &[Group], moment: Moment, count: usize, by: Grouping, sheet: Sheet) -> Vec<String> {
    let total = moment.live.get().max(1);
    let row = |letter: char, bytes: Bytes, count: usize, key: &str| {
        let share = bytes.get() as f64 * 100.0 / total as f64;
        let line = format!("  {letter}  {:>10}  {share:>5.1}%  {:>9}  ", bytes.to_string(), thousands(count));
        let key = cut(key, sheet.width.saturating_sub(line.chars().count()), sheet.ink);
        format!("{line}{key}")
    };
    let mut lines = vec![
        format!("alive at the peak: {} in {}", moment.live, counted(count, "buffer")),
        format!("     {:>10}  {:>6}  {:>9}  {}", "bytes", "share", "buffers", by.name()),
    ];
    let known = groups.len().min(LETTERS.len());
    for (group, &letter) in groups.iter().zip(LETTERS) {
        let key = if group.key.is_empty() { "(unknown)" } else { &group.key };
        lines.push(row(letter as char, group.bytes, group.count, key));
    }
    if let Some(rest) = groups.get(known..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|group| group.bytes).sum();
        let count = rest.iter().map(|group| group.count).sum();
        lines.push(row('+', bytes, count, &format!("+{} smaller", thousands(rest.len()))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Buffer, Label, Lifetime, Placement, Plan, PoolIndex, Problem, TextIndex};
    use proptest::prelude::*;

    fn usage(shapes: &[(i64, i64, u64)]) -> Usage {
        let buffers = shapes.iter().enumerate().map(|(n, &(lower, length, size))| {
            Buffer::new(format!("m{}/{n}", n % 20), Lifetime { lower, upper: lower + length }, Bytes::new(size))
        });
        let mut usage = Usage::of(Problem::new(buffers.collect()));
        let mut height = 0;
        let placements = shapes.iter().map(|shape| {
            height += shape.2;
            Placement { pool: PoolIndex::default(), offset: Bytes::new(height - shape.2) }
        });
        let placements = placements.collect();
        let plan = Plan { placements, heights: vec![Bytes::new(height)], lower_bound: Bytes::ZERO, proved: false };
        usage.layouts.push(Layout { origin: Origin::Planned, plan });
        usage
    }

    /// The bytes alive, counted naively.
    fn live(usage: &Usage) -> Curve {
        let lives = || usage.problem.buffers.iter().map(|buffer| (buffer.lifetime, buffer.size));
        let mut times: Vec<i64> = lives().flat_map(|(life, _)| [life.lower, life.upper]).collect();
        times.sort_unstable();
        times.dedup();
        let at =
            |time: i64| lives().filter(|(life, _)| life.lower <= time && time < life.upper).map(|(_, size)| size).sum();
        Curve { points: times.into_iter().map(|time| (time, at(time))).collect() }
    }

    #[test]
    fn few_events_leave_no_holes_in_the_curve() {
        let usage = usage(&[(0, 2, 100), (1, 2, 100)]);
        let lines = terminal(&usage, &live(&usage), Grouping::Size, Sheet::new(Ink::Ascii, None));
        assert!(lines[CURVE_ROWS - 1].trim_start().chars().all(|letter| letter == '#'), "{lines:#?}");
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_the_terminal_is_wide(
            shapes in prop::collection::vec((-1_000_000_i64..1_000_000, 0_i64..1_000_000, 0_u64..1 << 40), 0..60),
            width in 1_usize..120,
        ) {
            for (by, ink) in [(Grouping::Module, Ink::Unicode), (Grouping::Size, Ink::Ascii)] {
                let usage = usage(&shapes);
                let sheet = Sheet::new(ink, Some(width));
                let lines = terminal(&usage, &live(&usage), by, sheet);
                prop_assert!(lines.iter().all(|line| line.chars().count() <= sheet.width), "{:#?}", lines);
                prop_assert!(ink == Ink::Unicode || lines.iter().all(|line| line.is_ascii()), "{:#?}", lines);
            }
        }
    }

    #[test]
    fn letters_of_the_strip_are_those_of_the_table() {
        let mut usage = usage(&[(0, 10, 600), (0, 5, 300), (5, 10, 300), (2, 6, 100)]);
        usage.texts = vec!["weights\u{1b}[31m".into(), "activation".into()];
        for (label, category) in usage.labels.iter_mut().zip([0, 1, 1, 1]) {
            *label = Label { category: Some(TextIndex(category)), ..Label::default() };
        }
        let lines = terminal(&usage, &live(&usage), Grouping::Category, Sheet::new(Ink::Ascii, None));
        let text = lines.join("\n");
        assert!(text.contains("  A       600 B   60.0%          1  weights?[31m"), "{text}");
        assert!(text.contains("  B       400 B   40.0%          2  activation"), "{text}");
        let behind_title = lines.iter().skip_while(|line| !line.contains("each letter")).skip(1);
        let strip: String = behind_title.take_while(|line| !line.is_empty()).map(|line| &line[LABEL + 1..]).collect();
        assert!(strip.starts_with("AAAA"));
        assert_eq!(strip.matches('A').count(), 150);
        assert_eq!(strip.matches('B').count(), 100, "{strip}");
    }
}
