//! Where a program marks its actions: a FIFO, whose path it finds in `LOWTIDE_MARKS`. Each line is a mark and its name.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use lowtide_report::name_within;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::{Error, Event};

/// The most of a name that is kept, in letters.
const NAME: usize = 60;
/// The most of a line that is read at once.
const LINE: u64 = 4096;
/// What a mark without a name is called.
const UNNAMED: &str = "mark";
/// What this process writes itself, behind every mark that was made before.
const END: &[u8] = b"\0\0end\n";

/// A FIFO that goes with this.
#[derive(Debug)]
pub struct Marks {
    path: PathBuf,
    file: File,
    _folder: Option<TempDir>,
    is_given: bool,
}

impl Marks {
    /// A FIFO at `path`, or one in a folder of its own.
    pub fn new(path: Option<&Path>) -> Result<Self, Error> {
        let (folder, path) = if let Some(path) = path {
            (None, path.to_owned())
        } else {
            let made = tempfile::Builder::new().prefix("lowtide-watch-").tempdir();
            let folder = made.map_err(|source| Error::Fifo { path: std::env::temp_dir(), source })?;
            let path = folder.path().join("marks");
            (Some(folder), path)
        };
        let failed = |source| Error::Fifo { path: path.clone(), source };
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        mkfifo(&path, mode).map_err(|error| failed(error.into()))?;
        // Held open for writing too: it does not end when the last program that marks goes.
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        Ok(Self { is_given: folder.is_none(), path, file, _folder: folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends every mark from now on.
    pub fn listen(&self, events: Sender<Event>) -> io::Result<()> {
        let mut lines = BufReader::new(self.file.try_clone()?);
        std::thread::spawn(move || {
            while let Ok(line) = next_line(&mut lines) {
                let sent = match line.strip_suffix(END) {
                    Some([]) => events.send(Event::CaughtUp),
                    // The program ended within a line.
                    Some(begun) => events.send(Event::Mark(name(begun))).and_then(|()| events.send(Event::CaughtUp)),
                    None => events.send(Event::Mark(name(&line))),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Has [`Event::CaughtUp`] sent once every mark that was made before is.
    pub fn catch_up(&self) -> io::Result<()> {
        (&self.file).write_all(END)
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        if self.is_given {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A line, or as much of it as fits; the rest of a longer one is passed over.
fn next_line(lines: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    lines.by_ref().take(LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() != Some(&b'\n') {
        lines.skip_until(b'\n')?;
    }
    Ok(line)
}

fn name(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.trim() {
        "" => UNNAMED.to_owned(),
        text => name_within(text, NAME),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_line_is_a_mark() {
        let marks = Marks::new(None).unwrap();
        let (sender, events) = mpsc::channel();
        marks.listen(sender).unwrap();
        for text in ["load\n", "compile", " it \n\n", "a\u{1b}[1m\n"] {
            OpenOptions::new().write(true).open(marks.path()).unwrap().write_all(text.as_bytes()).unwrap();
        }
        let next = || match events.recv().unwrap() {
            Event::Mark(name) => name,
            _ => unreachable!(),
        };
        assert_eq!([next(), next(), next(), next()], ["load", "compile it", UNNAMED, "a\\u{1b}[1m"]);
    }

    #[test]
    fn every_mark_is_sent_before_the_end() {
        let marks = Marks::new(None).unwrap();
        let (sender, events) = mpsc::channel();
        marks.listen(sender).unwrap();
        OpenOptions::new().write(true).open(marks.path()).unwrap().write_all(b"a\nb").unwrap();
        for expected in [vec!["a", "b"], vec![]] {
            marks.catch_up().unwrap();
            for name in expected {
                assert_eq!(events.recv().unwrap(), Event::Mark(name.to_owned()));
            }
            assert_eq!(events.recv().unwrap(), Event::CaughtUp);
        }
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let text = [vec![b'x'; 100_000], b"\nshort\n".to_vec()].concat();
        let mut lines = BufReader::new(&text[..]);
        assert_eq!(name(&next_line(&mut lines).unwrap()).chars().count(), NAME);
        assert_eq!(next_line(&mut lines).unwrap(), b"short\n");
        assert!(next_line(&mut lines).is_err());
    }

    #[test]
    fn a_given_path_is_made_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        let marks = Marks::new(Some(&path)).unwrap();
        assert!(path.exists() && Marks::new(Some(&path)).is_err());
        drop(marks);
        assert!(!path.exists());
    }
}
