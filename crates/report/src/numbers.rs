//! How counts and times read in text.

/// `1 buffer`, `28,526 buffers`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(count))
}

/// `28,526`.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `0.4 s`, `12.3 s`; below a tenth in milliseconds.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        0.1.. => format!("{seconds:.1} s"),
        0.01.. => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{:.1} ms", seconds * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_their_nouns_agree() {
        assert_eq!(counted(1, "buffer"), "1 buffer");
        assert_eq!(counted(28_526, "buffer"), "28,526 buffers");
        assert_eq!(thousands(1_000_000), "1,000,000");
    }

    #[test]
    fn short_times_are_milliseconds() {
        assert_eq!([12.34, 0.4, 0.0238, 0.0012].map(seconds), ["12.3 s", "0.4 s", "24 ms", "1.2 ms"]);
    }
}
