//! The values that are in force, and where each came from.

use std::ffi::{OsStr, OsString};

use super::entry::{self, Entry, OptionError, Scope};
use super::key::{Key, Typed};
use super::kind::{Kind, Value};
use super::table::{ARENA, TABLE};

/// Where this is switched off, `DeepRec` leaves memory to the C library: there is no arena either, unless somebody asks for one.
const OPTIMIZATION: &str = "ENABLE_MEMORY_OPTIMIZATION";
const NEVER: Value = Value::Choice("never");

/// Where a value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Nobody says.
    Default,
    /// A variable of this older system is set, and this is the default of that.
    DefaultOf(&'static str),
    /// A line of `lowtide.toml`.
    File {
        /// Counted from one.
        line: usize,
    },
    /// A variable of this name.
    Variable(&'static str),
    /// A flag of the command line.
    Flag,
}

/// A value and its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The value; `None` where there is none, or where a variable has what only its reader understands.
    pub value: Option<Value>,
    /// Where it came from.
    pub origin: Origin,
}

/// The values of all options. What is set later goes before what was set earlier: set what a file says, then read the
/// variables, then set what flags say.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// In the order of the table.
    settings: Vec<Setting>,
}

impl Default for Options {
    fn default() -> Self {
        let setting = |entry: &Entry| Setting { value: entry.default_value(), origin: Origin::Default };
        Self { settings: TABLE.iter().map(setting).collect() }
    }
}

impl Options {
    /// The options of `scopes` as the variables have them that `lookup` knows, and whatever is wrong with those: such
    /// an option keeps its default.
    pub fn from_variables(scopes: &[Scope], lookup: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<OptionError>) {
        let mut options = Self::default();
        let errors = options.read_variables(scopes, lookup);
        (options, errors)
    }

    /// Sets the options of `scopes` to what the variables say that `lookup` knows. An empty variable says nothing. An
    /// option's own variable goes before a former name of it, and that before those of older systems. Of a variable that
    /// another library reads in its own way, nothing is wrong here.
    pub fn read_variables(&mut self, scopes: &[Scope], lookup: impl Fn(&str) -> Option<OsString>) -> Vec<OptionError> {
        let mut errors = Vec::new();
        let mut systems: Vec<&'static str> = Vec::new();
        let lookup = |name: &str| lookup(name).filter(|text| !text.is_empty());
        for (entry, setting) in TABLE.iter().zip(&mut self.settings) {
            if !scopes.contains(&entry.scope) {
                continue;
            }
            let Some(found) = Found::of(entry, lookup, &mut systems) else { continue };
            match found.value {
                Ok(value) => *setting = Setting { value, origin: Origin::Variable(found.variable) },
                Err(error) => errors.push(error),
            }
        }
        self.take_defaults_of(&systems);
        let is_off = || lookup(OPTIMIZATION).and_then(|text| Kind::Switch.parse(&text)) == Some(Value::Switch(false));
        if scopes.contains(&ARENA.entry().scope) && self.setting(ARENA).origin == Origin::Default && is_off() {
            self.settings[ARENA.index] = Setting { value: Some(NEVER), origin: Origin::Variable(OPTIMIZATION) };
        }
        errors
    }

    /// Gives options that nobody has set the defaults of these older systems.
    fn take_defaults_of(&mut self, systems: &[&'static str]) {
        for (entry, setting) in TABLE.iter().zip(&mut self.settings) {
            let older = entry.older.iter().find(|older| systems.contains(&older.system));
            if let Some(older) = older
                && let Some(default) = older.default
                && setting.origin == Origin::Default
            {
                let value = older.kind.parse(OsStr::new(default));
                *setting = Setting { value, origin: Origin::DefaultOf(older.system) };
            }
        }
    }

    /// Sets an option of the table.
    pub fn set(&mut self, entry: &Entry, value: Value, origin: Origin) {
        if let Some((_, setting)) = TABLE.iter().zip(&mut self.settings).find(|(known, _)| known.name == entry.name) {
            *setting = Setting { value: Some(value), origin };
        }
    }

    /// The value of an option.
    pub fn get<T: Typed>(&self, key: Key<T>) -> T {
        let value = T::of(self.settings[key.index].value.as_ref());
        value.unwrap_or_else(|| unreachable!("a key has the type of its entry"))
    }

    /// The value of an option that somebody has set.
    pub fn given<T: Typed>(&self, key: Key<T>) -> Option<T> {
        (self.setting(key).origin != Origin::Default).then(|| self.get(key))
    }

    /// The value of an option, and where it came from.
    pub fn setting<T: Typed>(&self, key: Key<T>) -> &Setting {
        &self.settings[key.index]
    }

    /// All options, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Entry, &Setting)> {
        TABLE.iter().zip(&self.settings)
    }

    /// What flags and a file say, as variables have it that hand it on; a program inherits the others anyway.
    pub fn handed_on(&self) -> impl Iterator<Item = (&'static Entry, OsString)> {
        self.iter().filter_map(|(entry, setting)| match setting.origin {
            Origin::Flag | Origin::File { .. } => Some((entry, setting.value.as_ref()?.text())),
            Origin::Default | Origin::DefaultOf(_) | Origin::Variable(_) => None,
        })
    }
}

/// A variable that is set, and what it says.
struct Found {
    variable: &'static str,
    /// None where it is for another to understand.
    value: Result<Option<Value>, OptionError>,
}

impl Found {
    /// The first variable of `entry` that `lookup` knows. Adds the older systems of which one is set.
    fn of(entry: &Entry, lookup: impl Fn(&str) -> Option<OsString>, systems: &mut Vec<&'static str>) -> Option<Self> {
        let mut own = [entry.variable].into_iter().chain(entry.former.iter().map(|former| former.variable));
        let mut found = own.find_map(|variable| Some((variable, &entry.kind, lookup(variable)?)));
        for older in entry.older {
            if let Some(variable) = older.variable
                && let Some(text) = lookup(variable)
            {
                systems.push(older.system);
                found.get_or_insert((variable, &older.kind, text));
            }
        }
        let (variable, kind, text) = found?;
        let value = match kind.parse(&text) {
            None if entry.is_foreign() => Ok(None),
            _ => entry::parse(kind, variable, &text).map(Some),
        };
        Some(Self { variable, value })
    }
}
