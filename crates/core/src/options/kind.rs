//! What the value of an option can be, how it is read and how it is written.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::choices::Choice;
use crate::Bytes;

/// What an option can be: a type, and a range of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A whole number.
    Count {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// Any number.
    Number {
        /// The smallest.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// An amount of memory.
    Size {
        /// What a number without a unit counts.
        unit: Bytes,
        /// The smallest.
        least: Bytes,
    },
    /// A time.
    Seconds,
    /// A time that is not zero, or every step.
    SecondsOrStep,
    /// One of several words.
    Choice(&'static [Choice]),
    /// Any text.
    Text,
    /// Names of programs, separated by commas.
    Names,
    /// A file, a folder or a program.
    Path,
}

/// A kind without its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the variants of `Kind`")]
pub enum Type {
    Switch,
    Count,
    Number,
    Size,
    Seconds,
    SecondsOrStep,
    Choice,
    Text,
    Path,
}

/// The value of an option.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "they are the variants of `Kind`")]
pub enum Value {
    Switch(bool),
    Count(u64),
    Number(f64),
    Size(Bytes),
    Seconds(Duration),
    SecondsOrStep(Every),
    Choice(&'static str),
    Text(String),
    Path(PathBuf),
}

/// How often something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Every {
    /// Whenever this much time has passed.
    Time(Duration),
    /// After each step of the program.
    Step,
}

/// The word for every step.
const STEP: &str = "step";

/// A thousand years; clocks count no further.
const MOST_SECONDS: f64 = 3.2e10;

impl Kind {
    /// Any whole number from `least` on.
    pub const fn count(least: u64) -> Self {
        Self::Count { least, most: u64::MAX }
    }

    /// Any amount of memory.
    pub const SIZE: Self = Self::Size { unit: Bytes::new(1), least: Bytes::ZERO };

    /// Its type.
    pub const fn of_type(&self) -> Type {
        match self {
            Self::Switch => Type::Switch,
            Self::Count { .. } => Type::Count,
            Self::Number { .. } => Type::Number,
            Self::Size { .. } => Type::Size,
            Self::Seconds => Type::Seconds,
            Self::SecondsOrStep => Type::SecondsOrStep,
            Self::Choice(_) => Type::Choice,
            Self::Text | Self::Names => Type::Text,
            Self::Path => Type::Path,
        }
    }

    /// The value that `text` is; `None` where it is none of this kind.
    pub fn parse(&self, text: &OsStr) -> Option<Value> {
        if let Self::Path = self {
            let is_path = !text.is_empty() && !text.as_encoded_bytes().contains(&0);
            return is_path.then(|| Value::Path(text.into()));
        }
        let text = text.to_str()?;
        let trimmed = text.trim();
        match self {
            Self::Switch => switch(trimmed).map(Value::Switch),
            Self::Count { least, most } => {
                let number = trimmed.parse().ok().filter(|number| (least..=most).contains(&number));
                number.map(Value::Count)
            }
            Self::Number { least, most } => {
                let number = trimmed.parse().ok().filter(|number| (least..=most).contains(&number));
                number.map(Value::Number)
            }
            Self::Size { unit, least } => size(trimmed, *unit).filter(|size| size >= least).map(Value::Size),
            Self::Seconds => seconds(trimmed).map(Value::Seconds),
            Self::SecondsOrStep if trimmed == STEP => Some(Value::SecondsOrStep(Every::Step)),
            Self::SecondsOrStep => {
                let time = seconds(trimmed).filter(|time| !time.is_zero());
                time.map(|time| Value::SecondsOrStep(Every::Time(time)))
            }
            Self::Choice(choices) => {
                let choice = choices.iter().find(|choice| choice.name == trimmed);
                choice.map(|choice| Value::Choice(choice.name))
            }
            Self::Names => {
                let is_name = |name: &str| !name.trim().is_empty() && !name.contains(['/', '\0']);
                text.split(',').all(is_name).then(|| Value::Text(text.to_owned()))
            }
            Self::Text | Self::Path => (!text.is_empty() && !text.contains('\0')).then(|| Value::Text(text.to_owned())),
        }
    }

    /// What stands for the value in a help text.
    pub fn placeholder(&self) -> String {
        match self {
            Self::Switch => "0|1".to_owned(),
            Self::Count { .. } | Self::Number { .. } => "N".to_owned(),
            Self::Size { .. } => "SIZE".to_owned(),
            Self::Seconds => "SECONDS".to_owned(),
            Self::SecondsOrStep => "SECONDS|step".to_owned(),
            Self::Choice(choices) => choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join("|"),
            Self::Text => "TEXT".to_owned(),
            Self::Names => "NAMES".to_owned(),
            Self::Path => "PATH".to_owned(),
        }
    }
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn size(text: &str, unit: Bytes) -> Option<Bytes> {
    match text.parse::<u64>() {
        Ok(number) => number.checked_mul(unit.get()).map(Bytes::new),
        Err(_) => text.parse().ok(),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=MOST_SECONDS).contains(seconds));
    seconds.map(Duration::from_secs_f64)
}

impl fmt::Display for Kind {
    /// The range, as the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("`1` or `true`, `0` or `false`"),
            Self::Count { least, most: u64::MAX } => write!(f, "a whole number from {least} to 2^64-1"),
            Self::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Size { unit, least } => {
                let plain = if unit.get() == 1 { "bytes" } else { "a number of them" };
                f.write_str("an amount of memory")?;
                if *least > Bytes::ZERO {
                    write!(f, " from {least} on")?;
                }
                if unit.get() > 1 {
                    write!(f, " in units of {unit}")?;
                }
                write!(f, ": {plain}, or such as `40GiB`")
            }
            Self::Seconds => f.write_str("a number of seconds from 0 on, such as `0.5`"),
            Self::SecondsOrStep => f.write_str("a number of seconds above 0, or `step`"),
            Self::Choice(choices) => {
                for (index, choice) in choices.iter().enumerate() {
                    let before = match index {
                        0 => "",
                        _ if index + 1 == choices.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}`{}`", choice.name)?;
                }
                Ok(())
            }
            Self::Text => f.write_str("a text"),
            Self::Names => f.write_str("names of programs without folders, such as `gcc,ld`"),
            Self::Path => f.write_str("a path"),
        }
    }
}

impl Value {
    /// As a variable has it, which reads as the same value again.
    pub fn text(&self) -> OsString {
        let seconds = |time: &Duration| time.as_secs_f64().to_string();
        match self {
            Self::Switch(on) => if *on { "1" } else { "0" }.into(),
            Self::Count(number) => number.to_string().into(),
            Self::Number(number) => number.to_string().into(),
            Self::Size(size) => size.get().to_string().into(),
            Self::Seconds(time) | Self::SecondsOrStep(Every::Time(time)) => seconds(time).into(),
            Self::SecondsOrStep(Every::Step) => STEP.into(),
            Self::Choice(name) => (*name).into(),
            Self::Text(text) => text.into(),
            Self::Path(path) => path.into(),
        }
    }
}

impl fmt::Display for Value {
    /// For people: `on`, `40.0 GiB`, `0.5 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Size(size) => size.fmt(f),
            Self::Seconds(time) | Self::SecondsOrStep(Every::Time(time)) => write!(f, "{} s", time.as_secs_f64()),
            other => f.write_str(&other.text().to_string_lossy()),
        }
    }
}
