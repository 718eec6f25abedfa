//! `lowtide config`: the options that are in force here, and where the value of each came from.

mod reference;

use std::env;

use clap::Args;
use lowtide_core::options::{Entry, Origin, Scope, Setting};
use serde::Serialize;

use crate::console::show;
use crate::options::{InForce, OptionArguments};
use crate::{Answer, Console, Failure};

/// What to show.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Print one object of JSON
    #[arg(long)]
    json: bool,
    /// Print the reference of all options instead, as `docs/options.md` has it
    #[arg(long, conflicts_with = "json")]
    reference: bool,
    #[command(flatten)]
    options: OptionArguments,
}

const EXAMPLES: &str = "\
Examples:
  lowtide config                     what `lowtide run` would do in this folder
  lowtide config --pages 2M          and with this flag
  lowtide config --config job.toml   and with this file
  lowtide config --json              for a script

Flags go before variables, variables before lowtide.toml, and that before
defaults. A value that is out of its range is exit code 2.";

/// Shows the options in force.
pub fn run(arguments: &Arguments, console: &mut Console) -> Result<Answer, Failure> {
    if arguments.reference {
        console.print(reference::page().trim_end())?;
        return Ok(Answer::Yes);
    }
    let in_force = arguments.options.in_force()?;
    if arguments.json {
        console.print_json(&Report::new(&in_force))?;
    } else {
        for line in lines(&in_force) {
            console.print(line)?;
        }
    }
    Ok(Answer::Yes)
}

/// The options that are for users.
fn shown(in_force: &InForce) -> impl Iterator<Item = (&'static Entry, &Setting)> {
    in_force.options.iter().filter(|(entry, _)| entry.scope != Scope::Internal)
}

fn lines(in_force: &InForce) -> Vec<String> {
    let mut cells = Vec::new();
    for scope in Scope::ALL {
        for (entry, setting) in shown(in_force).filter(|(entry, _)| entry.scope == scope) {
            cells.push([entry.name.to_owned(), value(setting), in_force.origin(&setting.origin)]);
        }
    }
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (name, value) = (width(0), width(1));
    cells.iter().map(|row| format!("{:name$}  {:value$}  {}", row[0], row[1], row[2])).collect()
}

/// The value for people.
fn value(setting: &Setting) -> String {
    match (&setting.value, &setting.origin) {
        (Some(value), _) => show::escaped(&value.to_string()).into_owned(),
        // What only its reader understands.
        (None, Origin::Variable(name)) => inherited(name).unwrap_or_default(),
        (None, _) => "-".to_owned(),
    }
}

fn inherited(variable: &str) -> Option<String> {
    env::var_os(variable).map(|text| show::escaped(&text.to_string_lossy()).into_owned())
}

/// What `--json` prints. Fields are added, never removed.
#[derive(Serialize)]
struct Report {
    version: u64,
    /// The file that was read.
    file: Option<String>,
    options: Vec<Reported>,
}

#[derive(Serialize)]
struct Reported {
    name: &'static str,
    variable: &'static str,
    /// As the variable has it.
    value: Option<String>,
    /// `flag`, `variable`, `file` or `default`.
    origin: &'static str,
    /// The variable, the line of the file, or the older system whose default it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    default: Option<&'static str>,
}

impl Report {
    fn new(in_force: &InForce) -> Self {
        let file = in_force.file.as_ref().map(|path| path.to_string_lossy().into_owned());
        Self {
            version: 1,
            file,
            options: shown(in_force).map(|(entry, setting)| Reported::new(entry, setting)).collect(),
        }
    }
}

impl Reported {
    fn new(entry: &'static Entry, setting: &Setting) -> Self {
        let (origin, source) = match &setting.origin {
            Origin::Default => ("default", None),
            Origin::DefaultOf(system) => ("default", Some((*system).to_owned())),
            Origin::File { line } => ("file", Some(line.to_string())),
            Origin::Variable(name) => ("variable", Some((*name).to_owned())),
            Origin::Flag => ("flag", None),
        };
        let value = match (&setting.value, &setting.origin) {
            (Some(value), _) => Some(value.text().to_string_lossy().into_owned()),
            (None, Origin::Variable(name)) => env::var_os(name).map(|text| text.to_string_lossy().into_owned()),
            (None, _) => None,
        };
        Self { name: entry.name, variable: entry.variable, value, origin, source, default: entry.default }
    }
}
