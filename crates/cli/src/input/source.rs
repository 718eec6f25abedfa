//! Where input comes from: a file, or stdin for `-` and for no file at all.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::console::progress;
use crate::{Console, Failure};

/// Bytes that are read from a file at once.
const BLOCK: usize = 1 << 16;

/// Where input comes from; displayed as messages name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// The file, or stdin where there is none or it is `-`.
    pub fn new(path: Option<&Path>) -> Self {
        match path {
            Some(path) if path != Path::new("-") => Self::File(path.to_owned()),
            _ => Self::Stdin,
        }
    }

    /// What `read` makes of the contents. Whoever is to type them is told so.
    pub fn read<T>(
        &self,
        console: &mut Console,
        read: impl FnOnce(Box<dyn Read>) -> Result<T, lowtide_formats::Error>,
    ) -> Result<T, Failure> {
        if *self == Self::Stdin && io::stdin().is_terminal() {
            console.say("reading from the terminal; Ctrl-D ends it, and a file can be given instead");
        }
        let reader: Box<dyn Read> = match self {
            Self::Stdin => Box::new(UntilEnd { reader: io::stdin().lock(), ended: false }),
            Self::File(path) => {
                let file = File::open(path).map_err(|error| Failure::access(self, "open", error))?;
                let length = file.metadata().map_or(0, |metadata| metadata.len());
                let bar = progress::Reading::new(&self.short_name(), length);
                Box::new(BufReader::with_capacity(BLOCK, bar.watch(file)))
            }
        };
        read(reader).map_err(|error| Failure::contents(self, error))
    }

    /// The name without its folder.
    pub fn short_name(&self) -> String {
        let name = self.path().and_then(Path::file_name).map(|name| Self::File(name.into()));
        name.as_ref().unwrap_or(self).to_string()
    }

    /// As it can be typed again.
    pub fn typed(&self) -> String {
        self.path().map_or_else(|| "FILE".to_owned(), crate::console::show::path)
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::File(path) => Some(path),
        }
    }
}

/// Reads to the first end: on a terminal there is another after each Ctrl-D, and nobody types two.
struct UntilEnd<R> {
    reader: R,
    ended: bool,
}

impl<R: Read> Read for UntilEnd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let count = self.reader.read(buffer)?;
        self.ended = count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("<stdin>"),
            Self::File(path) => f.write_str(&crate::console::show::escaped(&path.to_string_lossy())),
        }
    }
}
