//! The run-time options of Lowtide: one table, from which come the flags of `lowtide run`, the variables that the
//! libraries read, the keys of `lowtide.toml`, `lowtide config` and the reference page.
//!
//! An option is one entry of `options/table.rs`, which makes a typed [`Key`] of it; everything else follows. Nothing here
//! reads the environment: whoever does hands over how to look a variable up.
//!
//! ```
//! use lowtide_core::options::{DECAY, Options, PAGES, Pages, Scope};
//! use std::time::Duration;
//!
//! let environment = [("LOWTIDE_PAGES", "2M"), ("LOWTIDE_DECAY", "soon")];
//! let lookup = |name: &str| environment.iter().find(|known| known.0 == name).map(|known| known.1.into());
//! let mut options = Options::default();
//! let errors = options.read_variables(&[Scope::Host], lookup);
//!
//! assert_eq!(options.get(PAGES), Pages::Huge2M);
//! assert_eq!(options.get(DECAY), Duration::from_secs(10), "what cannot be read leaves the default");
//! let said = "`LOWTIDE_DECAY` cannot be `soon`: it is a number of seconds from 0 on, such as `0.5`";
//! assert_eq!(errors[0].to_string(), said);
//! ```

mod choices;
mod entry;
mod key;
mod kind;
mod table;
mod values;

pub use choices::{ArenaUse, Choice, Pages};
pub use entry::{Entry, Former, Older, OptionError, Scope, find};
pub use key::{Key, Typed};
pub use kind::{Every, Kind, Type, Value};
pub use table::*;
pub use values::{Options, Origin, Setting};
