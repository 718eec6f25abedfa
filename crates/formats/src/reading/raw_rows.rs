//! The rows of a table as they stood in their file, one behind the other in one text, so that a file of a
//! million rows can be written again without a million allocations.

/// Rows in order, each with its physical line.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawRows {
    text: String,
    ends: Vec<usize>,
    /// Where line numbers do not simply go on: the place of a row, and its line.
    jumps: Vec<(usize, u64)>,
}

impl RawRows {
    pub(crate) fn push(&mut self, raw: &str, line: u64) {
        let place = self.ends.len();
        if place == 0 || self.line(place) != line {
            self.jumps.push((place, line));
        }
        self.text.push_str(raw);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The line of the row at `place`.
    pub(crate) fn line(&self, place: usize) -> u64 {
        let after = self.jumps.partition_point(|&(from, _)| from <= place);
        match after.checked_sub(1).map(|before| self.jumps[before]) {
            Some((from, line)) => line + (place - from) as u64,
            None => 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let row = &self.text[start..end];
            start = end;
            row
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_text_and_line() {
        let mut rows = RawRows::default();
        for (text, line) in [("a", 2), ("b", 3), ("", 7), ("c", 8)] {
            rows.push(text, line);
        }
        assert_eq!(rows.iter().collect::<Vec<_>>(), ["a", "b", "", "c"]);
        assert_eq!((0..4).map(|place| rows.line(place)).collect::<Vec<_>>(), [2, 3, 7, 8]);
        assert_eq!(rows.jumps.len(), 2, "lines that follow each other cost nothing");
    }
}
