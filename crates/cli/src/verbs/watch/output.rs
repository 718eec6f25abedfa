//! What `watch` shows in the end: the outcome as text or JSON, and the files that were asked for.

use std::ffi::OsStr;
use std::path::PathBuf;

use lowtide_watch::{Outcome, Reason, Verdict};

use crate::atomic_file::Target;
use crate::console::{Emphasis, columns, show};
use crate::{Answer, Console, Failure};

/// What to do about growth in a run that is too short.
const EARLY: &str =
    "watch for 30 s or longer, or say with `--warm-up SECONDS` when it has loaded: what grows after that is a leak";

/// What a file gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Page,
    Json,
}

/// Where to write what, by the ending of each name.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<(Target, Kind)>, Failure> {
    let file = |path: &PathBuf| {
        let target = Target::new(path, &[])?;
        let ending = path.extension().map(OsStr::to_ascii_lowercase);
        match ending.as_deref().and_then(OsStr::to_str) {
            Some("html" | "htm") => Ok((target, Kind::Page)),
            Some("json") => Ok((target, Kind::Json)),
            _ => {
                let message = format!("{} is neither a page nor JSON by its name", show::path(path));
                Err(Failure::usage(message, "give `-o` a name that ends in .html or .json"))
            }
        }
    };
    paths.iter().map(file).collect()
}

/// Prints the outcome and writes the files.
pub(super) fn show(
    outcome: &Outcome,
    files: &[(Target, Kind)],
    is_json: bool,
    console: &mut Console,
) -> Result<Answer, Failure> {
    if is_json {
        console.print_json(&outcome.numbers())?;
    } else {
        print(outcome, console)?;
    }
    // One file that cannot be written takes neither the verdict nor the other nor the program's code with it.
    let mut is_written = true;
    for (target, kind) in files {
        if let Err(failure) = write(outcome, target, *kind, console) {
            console.report(&failure);
            is_written = false;
        }
    }
    Ok(match outcome.exit_code {
        Some(code) if code != 0 => Answer::Ended(code),
        _ if !is_written => Answer::Ended(Answer::TROUBLE),
        _ => Answer::from_bool(outcome.verdict().is_fine()),
    })
}

fn write(outcome: &Outcome, target: &Target, kind: Kind, console: &mut Console) -> Result<(), Failure> {
    let (text, next) = match kind {
        Kind::Page => (outcome.page(), "; next: open it in a browser"),
        Kind::Json => {
            let numbers = serde_json::to_string(&outcome.whole_numbers());
            (numbers.map_err(|error| Failure::Fault(error.to_string()))? + "\n", "")
        }
    };
    target.write_bytes(text.as_bytes())?;
    console.say(format!("wrote {}{next}", show::path(target.path())));
    Ok(())
}

/// Stdout is the program's, where there is one.
fn print(outcome: &Outcome, console: &mut Console) -> Result<(), Failure> {
    let verdict = outcome.verdict();
    let emphasis = match verdict {
        Verdict::Stable => Emphasis::Good,
        Verdict::Warming => Emphasis::Strong,
        Verdict::Growing | Verdict::Leaking => Emphasis::Bad,
    };
    let verdict = console.paint(emphasis, verdict.words());
    let mut lines = vec![format!("{verdict} · {}", outcome.headline()), outcome.reason(), outcome.faults()];
    if !outcome.actions.is_empty() {
        lines.push(String::new());
        lines.extend(columns::aligned(&outcome.table()));
    }
    lines.extend(outcome.observed.notes.iter().map(|note| format!("note: {note}")));
    if outcome.subject.command.is_empty() {
        lines.into_iter().try_for_each(|line| console.print(line))?;
        console.finish()?;
    } else {
        for line in lines {
            console.say(line);
        }
    }
    if outcome.over_time.reason == Reason::Early && outcome.deciding().is_none() {
        console.hint(EARLY);
    }
    Ok(())
}
