//! The options of the table in `core` on the command line: flags, `lowtide.toml`, and what is in force when both and the
//! variables are taken together. Flags go before variables, variables before the file, the file before defaults.

mod file;
mod flags;

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use lowtide_core::options::{Options, Origin, Scope};

use crate::Failure;
use crate::console::show;
pub(crate) use flags::{Flags, HostFlags};

/// The file that is read where no other is named.
pub(crate) const FILE: &str = "lowtide.toml";

/// Options as they are given to a verb.
#[derive(Debug, Default, Args)]
pub(crate) struct OptionArguments {
    /// Read options from FILE [default: lowtide.toml in this folder, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub flags: Flags,
}

/// What is in force.
#[derive(Debug)]
pub(crate) struct InForce {
    pub options: Options,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

impl OptionArguments {
    /// What is in force in this folder and with the variables of this process.
    pub fn in_force(&self) -> Result<InForce, Failure> {
        let mut options = Options::default();
        let file = self.config.clone().or_else(|| Path::new(FILE).exists().then(|| PathBuf::from(FILE)));
        if let Some(path) = &file {
            for (entry, value, line) in file::read(path)? {
                options.set(entry, value, Origin::File { line });
            }
        }
        let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Internal).collect();
        let errors = options.read_variables(&scopes, |name| env::var_os(name));
        if let Some(error) = errors.first() {
            return Err(Failure::usage(error, format!("correct it, or `unset {}`", error.option)));
        }
        self.flags.add_to(&mut options);
        Ok(InForce { options, file })
    }
}

impl InForce {
    /// Where the value of a setting came from, in a word or two.
    pub fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::DefaultOf(system) => format!("default of {system}"),
            Origin::File { line } => {
                let file = self.file.as_deref().unwrap_or(Path::new(FILE));
                format!("{}:{line}", show::path(file))
            }
            Origin::Variable(name) => format!("variable {name}"),
            Origin::Flag => "flag".to_owned(),
        }
    }
}
