//! The arguments of `cargo xtask soak`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// What `--help` prints.
pub(super) const HELP: &str = "\
Run thirteen programs at once, again and again, in a control group with little more memory than they need

Usage: cargo xtask soak [--minutes N] [--plain]

  --minutes N   How long, all in all; a part of a minute is one too [default: 10]
  --plain       Without Lowtide all the time: what the limit itself does to them

The first pass measures what the programs need and prints. A tenth of the time they run within that and 10% without
Lowtide, the rest under `lowtide run`, with the variables of Lowtide that are set. Exit 1: some program was killed, failed or
printed something else under Lowtide, and not without.
";

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Help,
    Soak(Options),
}

/// How to soak.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    /// From the first pass to the last that is begun.
    pub(super) length: Duration,
    /// Never under Lowtide.
    pub(super) is_plain: bool,
}

/// Reads the arguments after `soak`.
pub(super) fn parse(arguments: &[&str]) -> Result<Request> {
    let mut options = Options { length: Duration::from_mins(10), is_plain: false };
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument.split_once('=').unwrap_or((argument, "")) {
            ("-h" | "--help", "") => return Ok(Request::Help),
            ("--plain", "") => options.is_plain = true,
            ("--minutes", "") => options.length = minutes(rest.next().copied().unwrap_or_default())?,
            ("--minutes", value) => options.length = minutes(value)?,
            _ => bail!("`soak` has no argument `{argument}`\nhint: `cargo xtask soak --help` lists them"),
        }
    }
    Ok(Request::Soak(options))
}

fn minutes(text: &str) -> Result<Duration> {
    let number = text.parse().ok().filter(|&minutes: &f64| minutes > 0.0);
    let length = number.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok());
    length.with_context(|| {
        format!("`--minutes` is `{text}`, which is not a time\nhint: write a number above 0, such as `--minutes 10`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(seconds: u64, is_plain: bool) -> Request {
        Request::Soak(Options { length: Duration::from_secs(seconds), is_plain })
    }

    #[test]
    fn arguments_come_in_any_order_and_have_defaults() {
        for (arguments, request) in [
            (&[][..], soak(600, false)),
            (&["--minutes", "2"], soak(120, false)),
            (&["--plain", "--minutes=0.5"], soak(30, true)),
            (&["--minutes", "60", "--help"], Request::Help),
        ] {
            assert_eq!(parse(arguments).unwrap(), request, "{arguments:?}");
        }
    }

    #[test]
    fn what_is_no_time_and_what_is_not_known_is_refused() {
        for arguments in [
            &["--minutes"][..],
            &["--minutes", "-1"],
            &["--minutes=1e300"],
            &["--minutes=NaN"],
            &["--plain=1"],
            &["10"],
        ] {
            assert!(parse(arguments).unwrap_err().to_string().contains("\nhint: "), "{arguments:?}");
        }
    }
}
