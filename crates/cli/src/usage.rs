//! What clap has to say, said as everything else is: help to stdout, a mistake as one `error:` line with a `hint:`.

use std::process::ExitCode;

use clap::error::{Error, ErrorKind};

use crate::{Answer, Console, Failure};

/// Prints `error` and returns the exit code.
pub(crate) fn answer(error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Answer::trouble()
        }
        _ => {
            Console::of_process().report(&failure(&error.render().to_string()));
            Answer::trouble()
        }
    }
}

/// Clap's paragraphs are what is wrong, tips, how it is used, and where to read more.
fn failure(rendered: &str) -> Failure {
    let mut paragraphs = rendered.split("\n\n").map(one_line);
    let message = paragraphs.next().unwrap_or_default();
    let rest: Vec<String> = paragraphs.collect();
    let tip = rest.iter().find_map(|paragraph| paragraph.strip_prefix("tip: "));
    let hint = tip.map_or_else(|| read_more(&rest), str::to_owned);
    Failure::usage(message.strip_prefix("error: ").unwrap_or(&message), hint)
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command whose usage is shown is the one to read about.
fn read_more(paragraphs: &[String]) -> String {
    let usage = paragraphs.iter().find_map(|paragraph| paragraph.strip_prefix("Usage: ")).unwrap_or("lowtide");
    let is_word = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase());
    let command: Vec<&str> = usage.split(' ').take_while(is_word).collect();
    format!("see `{} --help`", command.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Cli;

    fn told(arguments: &[&str]) -> (String, String) {
        let error = Cli::try_parse_from([&["lowtide"], arguments].concat()).unwrap_err();
        let failure = failure(&error.render().to_string());
        (failure.to_string(), failure.hint().to_owned())
    }

    #[test]
    fn a_mistake_is_one_line_and_a_hint() {
        let (message, hint) = told(&["check", "a.csv"]);
        assert_eq!(message, "the following required arguments were not provided: <PLAN>");
        assert_eq!(hint, "see `lowtide check --help`");
        let (message, hint) = told(&["plan", "--capacity", "much"]);
        assert!(message.starts_with("invalid value 'much' for '--capacity <SIZE>'"), "{message}");
        assert_eq!(hint, "see `lowtide --help`");
    }

    #[test]
    fn a_tip_is_the_hint() {
        let (message, hint) = told(&["plan", "--capacty", "1"]);
        assert_eq!(message, "unexpected argument '--capacty' found");
        assert_eq!(hint, "a similar argument exists: '--capacity'");
    }
}
