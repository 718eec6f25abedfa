//! Flags, made from the table of options.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use lowtide_core::options::{Entry, Kind, Options, Origin, Scope, TABLE, Value};

/// The options that were given as flags.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub given: Vec<(&'static Entry, Value)>,
}

/// Those about the host alone.
#[derive(Debug, Default)]
pub(crate) struct HostFlags(pub Flags);

/// What is about the host.
const OF_HOST: [Scope; 3] = [Scope::Host, Scope::Learning, Scope::Underlying];

impl Flags {
    /// Sets them in `options`.
    pub fn add_to(&self, options: &mut Options) {
        for (entry, value) in &self.given {
            options.set(entry, value.clone(), Origin::Flag);
        }
    }

    fn of(matches: &ArgMatches, scopes: &[Scope]) -> Self {
        let value = |entry: &Entry| match entry.switched() {
            Some(switched) => matches.get_flag(entry.name).then_some(switched),
            None => matches.get_one::<Value>(entry.name).cloned(),
        };
        let of_scopes = TABLE.iter().filter(|entry| scopes.contains(&entry.scope));
        Self { given: of_scopes.filter_map(|entry| Some((entry, value(entry)?))).collect() }
    }
}

fn with_flags(command: Command, scopes: &[Scope]) -> Command {
    let of_scopes = TABLE.iter().filter(|entry| scopes.contains(&entry.scope));
    of_scopes.fold(command, |command, entry| command.arg(argument(entry)))
}

fn argument(entry: &'static Entry) -> Arg {
    let argument = Arg::new(entry.name)
        .long(entry.flag())
        .aliases(entry.former.iter().map(|former| former.name))
        .help(help(entry))
        .help_heading((entry.scope != Scope::Run).then(|| entry.scope.heading()));
    match entry.kind {
        Kind::Switch => argument.action(ArgAction::SetTrue),
        Kind::Choice(choices) => {
            let values = choices.iter().map(|choice| PossibleValue::new(choice.name).help(choice.meaning));
            let parser = PossibleValuesParser::new(values).try_map(|text| entry.parse(entry.name, OsStr::new(&text)));
            argument.value_name(entry.name.to_uppercase()).value_parser(parser)
        }
        kind => argument
            .value_name(kind.placeholder())
            .allow_negative_numbers(true)
            .value_parser(move |text: &str| kind.parse(OsStr::new(text)).ok_or_else(|| format!("it is {kind}"))),
    }
}

/// The sentence, turned round for a flag that switches something off, and the default.
fn help(entry: &Entry) -> String {
    match (entry.switched(), entry.default) {
        (Some(Value::Switch(false)), _) => format!("Do not {}", lower(entry.sentence)),
        (None, Some(default)) => format!("{} [default: {default}]", entry.sentence),
        _ => entry.sentence.to_owned(),
    }
}

fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self::of(matches, &Scope::OF_RUN))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.given.extend(Self::from_arg_matches(matches)?.given);
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        with_flags(command, &Scope::OF_RUN)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for HostFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(Flags::of(matches, &OF_HOST)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.given.extend(Self::from_arg_matches(matches)?.0.given);
        Ok(())
    }
}

impl Args for HostFlags {
    fn augment_args(command: Command) -> Command {
        with_flags(command, &OF_HOST)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lowtide_core::options::{DECAY, LEARN, TRIM_UNDERLYING, UNDERLYING};

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let command = Flags::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let mut options = Options::default();
        Flags::from_arg_matches(&matches).unwrap().add_to(&mut options);
        Ok(options)
    }

    #[test]
    fn every_option_of_a_run_has_a_flag() {
        for entry in TABLE.iter().filter(|entry| entry.scope.is_of_run()) {
            let flag = format!("--{}", entry.flag());
            let value = match entry.kind {
                Kind::Switch => None,
                Kind::Choice(choices) => Some(choices[0].name),
                Kind::Text | Kind::Names | Kind::Path => Some("text"),
                _ => Some("7"),
            };
            let arguments: Vec<&str> = [flag.as_str()].into_iter().chain(value).collect();
            let options = parse(&arguments).unwrap();
            let set: Vec<&str> = options
                .iter()
                .filter(|(_, setting)| setting.origin == Origin::Flag)
                .map(|(entry, _)| entry.name)
                .collect();
            assert_eq!(set, [entry.name]);
        }
    }

    #[test]
    fn former_names_are_understood() {
        let options = parse(&["--below", "mimalloc", "--trim-below", "step", "--no-learn", "--decay", "0.5"]).unwrap();
        assert_eq!((options.get(UNDERLYING).as_str(), options.get(LEARN)), ("mimalloc", false));
        assert_eq!(options.get(DECAY), Duration::from_millis(500));
        assert!(options.get(TRIM_UNDERLYING).is_some());
    }

    #[test]
    fn a_bad_value_is_refused_with_its_range() {
        for (arguments, words) in [
            (["--decay", "-1"], "a number of seconds from 0 on"),
            (["--pages", "4K"], "transparent"),
            (["--limit", "much"], "an amount of memory"),
            (["--arena-max", "0"], "a whole number from 1 to"),
        ] {
            let error = parse(&arguments).unwrap_err();
            assert!(error.contains(words) && error.contains(arguments[0]) && error.contains(arguments[1]), "{error}");
        }
    }
}
