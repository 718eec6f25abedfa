//! Where input comes from: a file, or stdin for `-` and for no file at all.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::console::progress;

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

    /// What `read` makes of the contents.
    pub fn read<T>(&self, read: impl FnOnce(Box<dyn Read>) -> Result<T, lowtide_formats::Error>) -> Result<T, Failure> {
        let reader: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
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

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("<stdin>"),
            Self::File(path) => f.write_str(&crate::console::show::escaped(&path.to_string_lossy())),
        }
    }
}
