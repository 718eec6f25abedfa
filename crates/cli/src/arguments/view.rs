//! How something is shown: the same for every verb that has a text for people and an object for scripts.

use clap::{Args, ValueEnum};
use lowtide_report::Ink;

/// How something is shown.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct View {
    /// Draw and write with plain ASCII characters
    #[arg(long)]
    ascii: bool,
    /// What stdout gets
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

/// What stdout gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// For people, in eighty columns
    #[default]
    Text,
    /// One object
    Json,
}

impl View {
    /// Whether scripts are to read it.
    pub fn is_json(self) -> bool {
        self.json || self.format == Format::Json
    }

    /// What text is written with.
    pub fn ink(self) -> Ink {
        if self.ascii { Ink::Ascii } else { Ink::Unicode }
    }
}
