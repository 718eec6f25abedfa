//! What the table says of an option, and by which names it is known.

use std::ffi::OsStr;

use super::kind::{Kind, Value};
use super::table::TABLE;

/// What an option is about. It decides who reads the option, and whether `lowtide run` has a flag for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The whole of a run.
    Run,
    /// Memory of the host.
    Host,
    /// Learning and planning, on the host and on devices.
    Learning,
    /// The underlying allocator of the host.
    Underlying,
    /// Memory of CUDA devices.
    Device,
    /// `lowtide record`.
    Recording,
    /// `lowtide watch`.
    Watching,
    /// Where programs, libraries and data are.
    Places,
    /// What Lowtide's parts say to each other; nothing for users.
    Internal,
}

impl Scope {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Run,
        Self::Host,
        Self::Learning,
        Self::Underlying,
        Self::Device,
        Self::Recording,
        Self::Watching,
        Self::Places,
        Self::Internal,
    ];

    /// Those whose options are flags of `lowtide run` and keys of `lowtide.toml`.
    pub const OF_RUN: [Self; 5] = [Self::Run, Self::Host, Self::Learning, Self::Underlying, Self::Device];

    /// As a heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Host => "Host memory",
            Self::Learning => "Learning",
            Self::Underlying => "Underlying allocator",
            Self::Device => "CUDA devices",
            Self::Recording => "Recording",
            Self::Watching => "Watching",
            Self::Places => "Places",
            Self::Internal => "Internal",
        }
    }

    /// Whether its options are flags of `lowtide run` and keys of `lowtide.toml`.
    pub fn is_of_run(self) -> bool {
        Self::OF_RUN.contains(&self)
    }
}

/// A name that an option had before, which is still understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Former {
    /// The name.
    pub name: &'static str,
    /// The variable.
    pub variable: &'static str,
}

/// What an older system has for an option, with the meaning that its documents give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Older {
    /// The system. Who sets one of its variables gets its defaults for the others.
    pub system: &'static str,
    /// Its variable, where it has one.
    pub variable: Option<&'static str>,
    /// What that can be.
    pub kind: Kind,
    /// The value where another variable of the system is set and this one is not.
    pub default: Option<&'static str>,
}

/// An option.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// In words joined by hyphens.
    pub name: &'static str,
    /// The variable that carries it to a program.
    pub variable: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// What it is where nobody says.
    pub default: Option<&'static str>,
    /// What it is about.
    pub scope: Scope,
    /// What it does, without a full stop.
    pub sentence: &'static str,
    /// Names that it had before.
    pub former: &'static [Former],
    /// What older systems have for it.
    pub older: &'static [Older],
}

/// The option of this name, or former name.
pub fn find(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == name || entry.former.iter().any(|former| former.name == name))
}

impl Entry {
    /// What is the same for most.
    pub(super) const USUAL: Self = Self {
        name: "",
        variable: "",
        kind: Kind::Text,
        default: None,
        scope: Scope::Internal,
        sentence: "",
        former: &[],
        older: &[],
    };

    /// The key in `lowtide.toml`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The flag of `lowtide run`, without hyphens in front. A switch that is on is switched off by its flag.
    pub fn flag(&self) -> String {
        if self.is_on() { format!("no-{}", self.name) } else { self.name.to_owned() }
    }

    /// Whether another library than Lowtide's reads its variable, in its own way.
    pub fn is_foreign(&self) -> bool {
        !self.variable.starts_with("LOWTIDE_")
    }

    /// Whether `variable` is one of those that set it.
    pub fn is_given_by(&self, variable: &str) -> bool {
        let former = self.former.iter().map(|former| former.variable);
        let older = self.older.iter().filter_map(|older| older.variable);
        former.chain(older).chain([self.variable]).any(|known| known == variable)
    }

    /// What a switch is set to by its flag; `None` for what is no switch, whose flag has a value.
    pub fn switched(&self) -> Option<Value> {
        matches!(self.kind, Kind::Switch).then(|| Value::Switch(!self.is_on()))
    }

    /// Whether it is a switch that is on where nobody says.
    fn is_on(&self) -> bool {
        matches!(self.kind, Kind::Switch) && self.default == Some("1")
    }

    /// The value that `text` is, which was given under the name `given`.
    pub fn parse(&self, given: &str, text: &OsStr) -> Result<Value, OptionError> {
        parse(&self.kind, given, text)
    }

    /// The value where nobody says.
    pub fn default_value(&self) -> Option<Value> {
        self.default.and_then(|text| self.kind.parse(OsStr::new(text)))
    }
}

pub(super) fn parse(kind: &Kind, given: &str, text: &OsStr) -> Result<Value, OptionError> {
    kind.parse(text).ok_or_else(|| OptionError {
        option: given.to_owned(),
        value: text.to_string_lossy().into_owned(),
        range: kind.to_string(),
    })
}

/// An option that cannot have the value it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}` cannot be `{value}`: it is {range}")]
pub struct OptionError {
    /// The option, by the name under which it was given: a flag, a variable or a key.
    pub option: String,
    /// The value as it was given.
    pub value: String,
    /// The values it can have, as the end of a sentence.
    pub range: String,
}
