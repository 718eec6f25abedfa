//! How something is shown: the same for every verb that has a text for people and an object for scripts.

use clap::{Args, ValueEnum};
use lowtide_report::{Ink, Sheet};

use crate::console::width;

/// How something is shown.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct View {
    /// Draw and write with plain ASCII characters
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    readers: Readers,
}

/// Who reads stdout.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Readers {
    /// What stdout gets
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

impl Readers {
    /// Whether they are scripts.
    pub fn are_scripts(self) -> bool {
        self.json || self.format == Format::Json
    }
}

/// What stdout gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// For people, as wide as the terminal
    #[default]
    Text,
    /// One object
    Json,
}

impl View {
    /// Whether scripts are to read it.
    pub fn is_json(self) -> bool {
        self.readers.are_scripts()
    }

    /// What text is written on.
    pub fn sheet(self) -> Sheet {
        Sheet::new(self.ink(), width())
    }

    /// What text is written with.
    pub fn ink(self) -> Ink {
        if self.ascii { Ink::Ascii } else { Ink::Unicode }
    }
}
