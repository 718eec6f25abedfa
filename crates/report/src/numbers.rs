//! How counts read in text.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_their_nouns_agree() {
        assert_eq!(counted(1, "buffer"), "1 buffer");
        assert_eq!(counted(28_526, "buffer"), "28,526 buffers");
        assert_eq!(thousands(1_000_000), "1,000,000");
    }
}
