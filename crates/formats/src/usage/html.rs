//! What a report carries: an HTML page has the usage it shows, one element for each run, and is read back by them.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lowtide_core::Usage;

use crate::{Error, ErrorKind, Run, limits, usage, write_usage};

/// What stands around each usage in a report: base64 of a usage file lies between them.
pub const USAGE_ELEMENT: [&str; 2] = ["<script type=\"application/x-lowtide-usage\">", "</script>"];

/// What a page about a program that was watched has instead.
const WATCH_ELEMENT: &str = "<script type=\"application/x-lowtide-watch\"";

/// How a report says who made it.
const GENERATOR: &str = "content=\"lowtide";

/// The element of a page that carries `usage` of the run called `name`, with what should be known of it.
pub fn usage_element(name: &str, notes: &[String], usage: &Usage) -> Result<String, Error> {
    let mut packed = Vec::new();
    write_usage(name, notes, usage, &mut packed)?;
    let [open, close] = USAGE_ELEMENT;
    Ok(format!("{open}{}{close}", STANDARD.encode(packed)))
}

/// The runs in the report that begins with `start` and goes on in `rest`.
pub(crate) fn read(start: Vec<u8>, rest: impl Read) -> Result<Vec<Run>, Error> {
    let mut page = start;
    rest.take(limits::REPORT + 1).read_to_end(&mut page).map_err(|error| Error::reading(error, None))?;
    if page.len() as u64 > limits::REPORT {
        return Err(Error::new(ErrorKind::FileTooLong { limit: limits::REPORT }));
    }
    let page = std::str::from_utf8(&page).map_err(|_| Error::new(ErrorKind::NotUtf8))?;
    let [open, close] = USAGE_ELEMENT;
    if !page.contains(GENERATOR) && !page.contains(open) {
        return Err(Error::new(ErrorKind::NoReport));
    }
    if page.contains(WATCH_ELEMENT) && !page.contains(open) {
        return Err(Error::new(ErrorKind::WatchPage));
    }
    // A run may be missing without a trace where the end is.
    if !page.trim_ascii_end().ends_with("</html>") {
        return Err(Error::new(ErrorKind::TruncatedReport));
    }
    if page.matches(open).count() > limits::RUNS {
        return Err(Error::new(ErrorKind::BadUsage(format!("the report has more than {} runs", limits::RUNS))));
    }
    let elements = page.split(open).skip(1).map(|behind| behind.split_once(close));
    let runs: Vec<Run> = elements
        .map(|element| {
            let (text, _) = element.ok_or_else(|| Error::new(ErrorKind::TruncatedReport))?;
            let packed = STANDARD.decode(text.trim_ascii());
            let packed = packed.map_err(|error| Error::new(ErrorKind::BadUsage(error.to_string())))?;
            usage::read(&*packed)
        })
        .collect::<Result<_, _>>()?;
    if runs.is_empty() { Err(Error::new(ErrorKind::TruncatedReport)) } else { Ok(runs) }
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Buffer, Bytes, Lifetime, Problem};

    use super::*;
    use crate::Input;

    fn page(runs: &[Run]) -> String {
        let elements = runs.iter().map(|run| usage_element(&run.name, &run.notes, &run.usage).unwrap());
        let head = "<!doctype html>\n<html><meta name=\"generator\" content=\"lowtide 0\">";
        format!("{head}{}<script>let x;</script></html>\n", elements.collect::<String>())
    }

    fn run(name: &str) -> Run {
        let buffer = Buffer::new(name, Lifetime { lower: 0, upper: 3 }, Bytes::new(7));
        Run { name: name.to_owned(), notes: Vec::new(), usage: Usage::of(Problem::new(vec![buffer])) }
    }

    #[test]
    fn a_report_gives_back_its_runs() {
        let runs = vec![run("before"), run("after")];
        match Input::read(page(&runs).as_bytes()).unwrap() {
            Input::Report(read) => assert_eq!(read, runs),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_pages_and_cut_ones_are_told_apart() {
        let error = |text: &str| Input::read(text.as_bytes()).unwrap_err().kind;
        assert!(matches!(error("<!doctype html><html><p>hello</html>"), ErrorKind::NoReport));
        let watched = page(&[]).replace("<script>", &format!("{WATCH_ELEMENT} id=\"scene\">"));
        assert!(matches!(error(&watched), ErrorKind::WatchPage));
        let whole = page(&[run("a")]);
        let named = whole.find(GENERATOR).unwrap() + GENERATOR.len();
        for end in 1..whole.len() - "</html>\n".len() {
            let kind = error(&whole[..end]);
            let is_expected = if end < named {
                matches!(kind, ErrorKind::NoReport)
            } else {
                matches!(kind, ErrorKind::TruncatedReport)
            };
            assert!(is_expected, "cut at {end}: {kind:?}");
        }
        assert!(matches!(error(&page(&[])), ErrorKind::TruncatedReport));
    }
}
