//! Why a command could not be carried out: where, what, and what to do about it. A failure is exit code 2, except where a
//! program cannot be started: then it is the shell's own.

use std::error::Error;
use std::fmt::Display;
use std::io;

use lowtide_core::ProblemError;
use lowtide_formats::ErrorKind;
use lowtide_plan::SolveError;

use crate::Answer;

/// Why a command could not be carried out.
///
/// Displays as one line, `FILE:ROW: message` where it is about a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command line asks for something that there is not; change it.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A file cannot be opened, or nothing can be written beside it; change the path or its permissions.
    #[error("{file}: cannot {attempt}: {source}")]
    Access {
        /// The file.
        file: String,
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file's contents were refused, or they could not be written; mend the file.
    #[error("{}: {source}", place(.file, .source.row))]
    Contents {
        /// The file.
        file: String,
        /// Why, and on which row.
        source: lowtide_formats::Error,
    },
    /// A file is in order, but it is not one that this can be asked of; ask otherwise.
    #[error("{file}: {message}")]
    Unfit {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The program that was to be run cannot be started; check its name and its permissions.
    #[error("cannot run {program}: {message}")]
    Start {
        /// The program, as it was given.
        program: String,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
        /// Whether there is such a program at all.
        exists: bool,
    },
    /// The program is wrong; report it.
    #[error("internal error: {0}")]
    Fault(String),
}

fn place(file: &str, row: Option<u64>) -> String {
    row.map_or_else(|| file.to_owned(), |row| format!("{file}:{row}"))
}

impl Failure {
    pub(crate) fn usage(message: impl Display, hint: impl Display) -> Self {
        Self::Usage { message: message.to_string(), hint: hint.to_string() }
    }

    pub(crate) fn unfit(file: &str, message: impl Display, hint: impl Display) -> Self {
        Self::Unfit { file: file.to_owned(), message: message.to_string(), hint: hint.to_string() }
    }

    pub(crate) fn access(file: impl Display, attempt: &'static str, source: io::Error) -> Self {
        Self::Access { file: file.to_string(), attempt, source }
    }

    pub(crate) fn contents(file: impl Display, source: lowtide_formats::Error) -> Self {
        Self::Contents { file: file.to_string(), source }
    }

    /// The same failure, with another hint where it is about a file's contents.
    pub(crate) fn with_hint(self, hint: impl Display) -> Self {
        match self {
            Self::Unfit { file, message, .. } => Self::unfit(&file, message, hint),
            Self::Contents { file, source } => Self::unfit(&place(&file, source.row), source, hint),
            other => other,
        }
    }

    /// Stdout cannot be written.
    pub(crate) fn stdout(source: io::Error) -> Self {
        Self::access("<stdout>", "write", source)
    }

    /// A problem from `file` that makes no sense, at `row` where that is known.
    pub(crate) fn problem(file: &str, row: Option<u64>, error: ProblemError) -> Self {
        Self::contents(file, lowtide_formats::Error { row, kind: ErrorKind::BadProblem(error) })
    }

    /// A solve of the problem from `file` that came to nothing.
    pub(crate) fn solve(file: &str, error: SolveError) -> Self {
        match error {
            SolveError::Problem(error) => Self::problem(file, None, error),
            SolveError::InvalidPlan(verdict) => {
                Self::Fault(format!("{file}: a plan was found that does not hold ({})", verdict.name()))
            }
        }
    }

    /// The exit code: 2, or as a shell has it where a program cannot be started.
    pub fn code(&self) -> u8 {
        match self {
            Self::Start { exists: false, .. } => 127,
            Self::Start { exists: true, .. } => 126,
            _ => Answer::TROUBLE,
        }
    }

    /// What to do about it, in one line.
    pub fn hint(&self) -> &str {
        match self {
            Self::Usage { hint, .. } | Self::Unfit { hint, .. } | Self::Start { hint, .. } => hint,
            Self::Access { attempt: "open", .. } => "check the path; `-` reads from stdin",
            Self::Access { .. } => "check that the folder is there, can be written and has room",
            Self::Contents { source, .. } => source.hint(),
            Self::Fault(_) => "this is a fault of Lowtide; please report it with the command and its input",
        }
    }

    /// What is behind it, as far as its own line does not say so.
    pub(crate) fn causes(&self) -> Vec<String> {
        let mut said = self.to_string();
        let mut causes = Vec::new();
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !said.contains(&text) {
                said.push_str(&text);
                causes.push(text);
            }
            next = cause.source();
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_file_and_row() {
        let error = lowtide_formats::Input::read("id,lower,upper,size\na,0,1,x\n".as_bytes()).unwrap_err();
        let failure = Failure::contents("in.csv", error);
        assert_eq!(failure.to_string(), "in.csv:2: `size` is `x`, which is not a whole number");
        assert!(failure.causes().is_empty() && !failure.hint().is_empty());
    }

    #[test]
    fn a_fault_is_called_one_once() {
        let error = SolveError::InvalidPlan(lowtide_plan::Verdict::BelowBound);
        let failure = Failure::solve("in.csv", error);
        let said = format!("{failure} {}", failure.hint());
        assert_eq!(said.matches("fault of Lowtide").count(), 1, "{said}");
        assert!(
            said.starts_with("internal error: in.csv: a plan was found that does not hold (below-bound)"),
            "{said}"
        );
    }

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let failure = Failure::access("x.csv", "open", io::ErrorKind::NotFound.into());
        assert_eq!(failure.to_string(), "x.csv: cannot open: entity not found");
        assert!(failure.causes().is_empty());
    }
}
