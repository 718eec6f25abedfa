//! Keys: an option together with the Rust type of its value, so that nobody looks one up by its name.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use super::choices::{ArenaUse, Pages};
use super::entry::Entry;
use super::kind::{Every, Type, Value};
use super::table::{ENTRIES, TABLE};
use crate::Bytes;

/// An option of the table whose value is a `T`.
#[derive(Debug)]
pub struct Key<T> {
    pub(super) index: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T: Typed> Key<T> {
    /// The key of the `index`th option. Does not compile where the table says that its values are of another type.
    pub(super) const fn new(index: usize, entry: &Entry) -> Self {
        assert!(entry.kind.of_type() as u8 == T::TYPE as u8, "the type of the key is not that of the entry");
        assert!(T::IS_OPTIONAL || entry.default.is_some(), "an option without a default is an `Option`");
        Self { index, of: PhantomData }
    }

    /// What the table says of it.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self.index]
    }

    /// The variable that carries it.
    pub const fn variable(self) -> &'static str {
        ENTRIES[self.index].variable
    }
}

/// A Rust type of an option's values.
pub trait Typed: Sized {
    /// The type in the table.
    const TYPE: Type;
    /// Whether it has a value for none.
    const IS_OPTIONAL: bool = false;

    /// The value; `None` where it is of another type, which a [`Key`] rules out.
    fn of(value: Option<&Value>) -> Option<Self>;
}

macro_rules! typed {
    ($($type:ty = $kind:ident;)+) => {
        $(impl Typed for $type {
            const TYPE: Type = Type::$kind;

            fn of(value: Option<&Value>) -> Option<Self> {
                if let Some(Value::$kind(value)) = value { Some(value.clone()) } else { None }
            }
        })+
    };
}

typed! {
    bool = Switch;
    u64 = Count;
    f64 = Number;
    Bytes = Size;
    Duration = Seconds;
    Every = SecondsOrStep;
    String = Text;
    PathBuf = Path;
}

macro_rules! chosen {
    ($($type:ty),+) => {
        $(impl Typed for $type {
            const TYPE: Type = Type::Choice;

            fn of(value: Option<&Value>) -> Option<Self> {
                let Some(Value::Choice(name)) = value else { return None };
                let super::kind::Kind::Choice(choices) = Self::KIND else { return None };
                choices.iter().zip(Self::ALL).find(|(choice, _)| choice.name == *name).map(|(_, chosen)| chosen)
            }
        })+
    };
}

chosen!(Pages, ArenaUse);

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
    const IS_OPTIONAL: bool = true;

    fn of(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            value => T::of(value).map(Some),
        }
    }
}
