//! What clap has to say, said as everything else is: help to stdout, a mistake as one `error:` line with a `hint:`.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::arguments::numbers;
use crate::{Answer, Cli, Console, Failure};

/// Prints `error` about `arguments` and returns the exit code.
pub(crate) fn answer(error: &Error, arguments: &[OsString]) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Answer::Yes.code()
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Answer::TROUBLE
        }
        _ => {
            Console::of_process().report(&failure(error, arguments));
            Answer::TROUBLE
        }
    }
}

/// Clap's paragraphs are what is wrong, tips, how it is used, and where to read more.
fn failure(error: &Error, arguments: &[OsString]) -> Failure {
    let rendered = error.render().to_string();
    let mut paragraphs = rendered.split("\n\n").map(one_line);
    let message = paragraphs.next().unwrap_or_default();
    let rest: Vec<String> = paragraphs.collect();
    let tip = rest.iter().find_map(|paragraph| paragraph.strip_prefix("tip: "));
    let hint = match tip {
        Some(_) if is_about_a_negative_number(error) => {
            format!("numbers must not be negative; {}", read_more(arguments))
        }
        Some(tip) => tip.to_owned(),
        None => read_more(arguments),
    };
    Failure::usage(message.strip_prefix("error: ").unwrap_or(&message), hint)
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Clap takes a number below zero for an option, and would have it passed on as a file.
fn is_about_a_negative_number(error: &Error) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    matches!(argument, Some(ContextValue::String(text)) if numbers::is_negative(text))
}

/// The help of the verb that was asked for.
fn read_more(arguments: &[OsString]) -> String {
    let mut command = Cli::command();
    let mut words = vec!["lowtide".to_owned()];
    for argument in arguments.iter().skip(1) {
        if let Some(verb) = argument.to_str().and_then(|name| command.find_subcommand(name)).cloned() {
            words.push(verb.get_name().to_owned());
            command = verb;
        }
    }
    format!("see `{} --help`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Cli;

    fn told(arguments: &[&str]) -> (String, String) {
        let arguments: Vec<OsString> = [&["lowtide"], arguments].concat().into_iter().map(Into::into).collect();
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        let failure = failure(&error, &arguments);
        (failure.to_string(), failure.hint().to_owned())
    }

    #[test]
    fn a_mistake_is_one_line_and_a_hint() {
        let (message, hint) = told(&["check", "a.csv"]);
        assert_eq!(message, "the following required arguments were not provided: <PLAN>");
        assert_eq!(hint, "see `lowtide check --help`");
        let (message, hint) = told(&["plan", "--capacity", "much"]);
        assert!(message.starts_with("invalid value 'much' for '--capacity <SIZE>'"), "{message}");
        assert_eq!(hint, "see `lowtide plan --help`");
        let (_, hint) = told(&["--color", "never", "bench", "plan", "x", "--seed", "y"]);
        assert_eq!(hint, "see `lowtide bench plan --help`");
    }

    #[test]
    fn a_bad_value_is_told_what_is_expected() {
        for (option, value, words) in [
            ("--capacity", "-5", "it must not be negative"),
            ("--capacity=-5GiB", "x", "it must not be negative"),
            ("--align", "-8", "it must not be negative"),
            ("--time-limit", "-1", "it must not be negative"),
            ("--step", "-1", "it must not be negative"),
            ("--work", "many", "write a whole number from 0 to 2^64-1, such as 7"),
            ("--seed", "1.5", "write a whole number from 0 to 2^64-1, such as 7"),
            ("--threads", "0", "write a whole number from 1 on, such as 4"),
            ("--threads", "x", "write a whole number from 1 on, such as 4"),
        ] {
            let (message, hint) = told(&["plan", option, value]);
            assert!(message.ends_with(words), "{option} {value}: {message}");
            assert_eq!(hint, "see `lowtide plan --help`", "{option} {value}");
        }
        let (_, hint) = told(&["plan", "--capacity", "-5GiB"]);
        assert_eq!(hint, "numbers must not be negative; see `lowtide plan --help`");
    }

    #[test]
    fn a_tip_is_the_hint() {
        let (message, hint) = told(&["plan", "--capacty", "1"]);
        assert_eq!(message, "unexpected argument '--capacty' found");
        assert_eq!(hint, "a similar argument exists: '--capacity'");
    }
}
