//! Bars in text: one line per amount, the longest as long as there is room.

use lowtide_core::Bytes;
use lowtide_report::{Ink, Sheet};

/// One line of a chart.
pub(super) struct Bar {
    pub label: &'static str,
    pub amount: Bytes,
}

/// What is left free around a line.
const MARGIN: usize = 4;

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The lines of a chart.
pub(super) fn lines(bars: &[Bar], sheet: Sheet) -> Vec<String> {
    let widest = |width: fn(&Bar) -> usize| bars.iter().map(width).max().unwrap_or(0);
    let label = widest(|bar| bar.label.chars().count());
    let amount = widest(|bar| bar.amount.to_string().chars().count());
    let room = sheet.width.saturating_sub(MARGIN + label + amount + 4);
    let most = bars.iter().map(|bar| bar.amount).max().unwrap_or_default();
    let line = |bar: &Bar| {
        let drawn = draw(bar.amount, most, room, sheet.ink);
        format!("{:label$}  {:>amount$}  {drawn}", bar.label, bar.amount.to_string())
    };
    bars.iter().map(|bar| line(bar).trim_end().to_owned()).collect()
}

/// At least a sliver for whatever is not nothing.
fn draw(amount: Bytes, most: Bytes, room: usize, ink: Ink) -> String {
    let share = if most == Bytes::ZERO { 0.0 } else { amount.ratio(most) };
    let eighths = (share * room as f64 * 8.0).round().max(f64::from(u8::from(amount > Bytes::ZERO))) as usize;
    match ink {
        Ink::Unicode => "█".repeat(eighths / 8) + EIGHTHS[eighths % 8],
        Ink::Ascii => "#".repeat(eighths.div_ceil(8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_fit_a_terminal() {
        let bar = |label, amount| Bar { label, amount: Bytes::new(amount) };
        let bars = [bar("all", 1000), bar("half", 500), bar("little", 1), bar("none", 0)];
        for width in [60, 80] {
            let lines = lines(&bars, Sheet::new(Ink::Ascii, Some(width)));
            let hashes: Vec<usize> = lines.iter().map(|line| line.matches('#').count()).collect();
            assert!(lines.iter().all(|line| line.chars().count() < width));
            assert_eq!(hashes[0].div_ceil(2), hashes[1]);
            assert_eq!(hashes[2..], [1, 0]);
        }
    }
}
