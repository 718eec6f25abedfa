//! The two streams of a command: data to stdout, talk to stderr. Whoever reads stdout may stop at any time; what is
//! written after that is dropped and nobody is told.

pub(crate) mod columns;
pub(crate) mod progress;
pub(crate) mod show;
mod width;

pub(crate) use width::width;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::Failure;

/// Where a command writes.
pub struct Console {
    data: Data,
    talk: Box<dyn Write>,
    colors: Colors,
}

#[derive(Clone, Copy)]
struct Colors {
    data: bool,
    talk: bool,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emphasis {
    /// The first thing to read.
    Strong,
    /// A yes.
    Good,
    /// A no.
    Bad,
    /// Something beside the point.
    Faint,
}

impl Emphasis {
    const fn style(self) -> Style {
        match self {
            Self::Strong => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Faint => Style::new().dimmed(),
        }
    }
}

impl Console {
    /// The streams of this process.
    pub fn of_process() -> Self {
        let colored = |choice| choice != anstream::ColorChoice::Never;
        let colors = Colors {
            data: colored(AutoStream::choice(&io::stdout())),
            talk: colored(AutoStream::choice(&io::stderr())),
        };
        Self { data: Data::new(Box::new(io::stdout())), talk: Box::new(io::stderr()), colors }
    }

    /// The stream for data.
    pub fn data(&mut self) -> &mut Data {
        &mut self.data
    }

    /// A line of data.
    pub fn print(&mut self, line: impl Display) -> Result<(), Failure> {
        writeln!(self.data, "{line}").map_err(Failure::stdout)
    }

    /// `value` as one line of JSON.
    pub fn print_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.data, value).map_err(|error| Failure::stdout(error.into()))?;
        self.print("")
    }

    /// A line of talk. That it cannot be written is no reason to stop.
    pub fn say(&mut self, line: impl Display) {
        let _ = writeln!(self.talk, "{line}");
    }

    /// `text` for stdout, in colour where that is wanted.
    pub fn paint(&self, emphasis: Emphasis, text: impl Display) -> String {
        paint(self.colors.data, emphasis, text)
    }

    /// `error:` line, causes and `hint:` line.
    pub fn report(&mut self, failure: &Failure) {
        let _ = self.data.flush();
        let label = paint(self.colors.talk, Emphasis::Bad, "error:");
        self.say(format!("{label} {failure}"));
        for cause in failure.causes() {
            self.say(format!("  caused by: {cause}"));
        }
        self.hint(failure.hint());
    }

    /// A `hint:` line.
    pub fn hint(&mut self, hint: impl Display) {
        let label = paint(self.colors.talk, Emphasis::Strong, "hint:");
        self.say(format!("{label} {hint}"));
    }

    /// Everything written so far reaches stdout, before talk that should stand behind it.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.data.flush().map_err(Failure::stdout)
    }
}

fn paint(colored: bool, emphasis: Emphasis, text: impl Display) -> String {
    let style = emphasis.style();
    if colored { format!("{style}{text}{style:#}") } else { text.to_string() }
}

/// Stdout, for as long as somebody reads it.
pub struct Data {
    stream: BufWriter<Box<dyn Write>>,
    closed: bool,
}

impl Data {
    fn new(stream: Box<dyn Write>) -> Self {
        Self { stream: BufWriter::new(stream), closed: false }
    }

    /// Takes a reader that went away for one that has read everything.
    fn unless_closed<T>(&mut self, result: io::Result<T>, otherwise: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(otherwise)
            }
            other => other,
        }
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        self.unless_closed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stream.flush();
        self.unless_closed(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let mut data = Data::new(Box::new(Failing(io::ErrorKind::BrokenPipe)));
        for _ in 0..3 {
            data.write_all(&[b'x'; 10_000]).unwrap();
            data.flush().unwrap();
        }
    }

    #[test]
    fn a_full_disk_is_one() {
        let mut data = Data::new(Box::new(Failing(io::ErrorKind::StorageFull)));
        assert!(data.write_all(b"x").and_then(|()| data.flush()).is_err());
    }
}
