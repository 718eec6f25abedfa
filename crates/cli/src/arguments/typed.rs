//! Values that are repeated in a command to type next, as their user wrote them: `11GiB` and not 11811160064.

use crate::console::show;

/// A value, and how it was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Typed<T> {
    value: T,
    text: String,
}

impl<T: Copy> Typed<T> {
    /// What `parse` makes of `text`.
    pub(crate) fn parse<E>(text: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { value: parse(text)?, text: text.trim().to_owned() })
    }

    pub(crate) fn value(&self) -> T {
        self.value
    }

    /// As one word of a shell.
    pub(crate) fn word(&self) -> String {
        show::path(self.text.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_repeated_as_it_was_typed() {
        let typed = |text| Typed::parse(text, str::parse::<lowtide_core::Bytes>).unwrap();
        assert_eq!((typed("11GiB").value().get(), typed("11GiB").word()), (11 << 30, "11GiB".to_owned()));
        assert_eq!(typed("1.5 GiB").word(), "'1.5 GiB'");
    }
}
