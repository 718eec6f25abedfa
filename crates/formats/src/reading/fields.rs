//! One CSV record taken apart into its fields. Strict about quotes (RFC 4180), so that a record is complete
//! exactly when it holds an even number of them.

/// The fields of a record, unquoted, in storage that is used again for the next one.
#[derive(Default)]
pub(crate) struct Fields {
    text: String,
    ends: Vec<usize>,
}

/// A quote stands in the middle of a field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StrayQuote;

impl Fields {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The field at `index`, which must be below [`len`](Self::len).
    pub(crate) fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Replaces the fields by those of `record`, a line without its line break.
    pub(crate) fn split(&mut self, record: &str) -> Result<(), StrayQuote> {
        self.text.clear();
        self.ends.clear();
        let mut rest = record;
        loop {
            let after = match rest.strip_prefix('"') {
                Some(quoted) => self.unquote(quoted)?,
                None => self.plain(rest)?,
            };
            self.ends.push(self.text.len());
            match after {
                Some(next) => rest = next,
                None => return Ok(()),
            }
        }
    }

    /// Takes a field without quotes; returns what follows its comma.
    fn plain<'a>(&mut self, rest: &'a str) -> Result<Option<&'a str>, StrayQuote> {
        let (field, after) = match rest.bytes().position(|byte| byte == b',') {
            Some(comma) => (&rest[..comma], Some(&rest[comma + 1..])),
            None => (rest, None),
        };
        if field.bytes().any(|byte| byte == b'"') {
            return Err(StrayQuote);
        }
        self.text.push_str(field);
        Ok(after)
    }

    /// Takes a field whose opening quote is behind us; returns what follows its comma.
    fn unquote<'a>(&mut self, mut rest: &'a str) -> Result<Option<&'a str>, StrayQuote> {
        loop {
            let (inside, after) = rest.split_once('"').ok_or(StrayQuote)?;
            self.text.push_str(inside);
            rest = after;
            match rest.strip_prefix('"') {
                Some(more) => {
                    self.text.push('"');
                    rest = more;
                }
                None if rest.is_empty() => return Ok(None),
                None => return rest.strip_prefix(',').map(Some).ok_or(StrayQuote),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(record: &str) -> Result<Vec<String>, StrayQuote> {
        let mut fields = Fields::default();
        fields.split(record).map(|()| fields.iter().map(str::to_owned).collect())
    }

    #[test]
    fn quotes_protect_commas_line_breaks_and_quotes() {
        assert_eq!(split("a,,c,").unwrap(), ["a", "", "c", ""]);
        assert_eq!(split("\"a,\nb\",\"\",\"say \"\"x\"\"\"").unwrap(), ["a,\nb", "", "say \"x\""]);
        assert_eq!(split("").unwrap(), [""]);
    }

    #[test]
    fn a_quote_in_the_middle_of_a_field_is_refused() {
        for record in ["a\"b", "\"a\"b,c", "\"a", "a,\"b\" ,c"] {
            assert_eq!(split(record), Err(StrayQuote), "{record}");
        }
    }
}
