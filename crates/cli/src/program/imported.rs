//! Whether any process of a program has imported PyTorch: what serves tensors waits for that, and waits in vain where it
//! never happens.

use std::fs;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::Failure;

/// A file to which every process that imports PyTorch adds a byte.
#[derive(Debug)]
pub(crate) struct Imported(NamedTempFile);

impl Imported {
    pub fn new() -> Result<Self, Failure> {
        NamedTempFile::new().map(Self).map_err(|error| Failure::access("<temporary file>", "write", error))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Whether a process has.
    pub fn is_seen(&self) -> bool {
        fs::metadata(self.path()).is_ok_and(|metadata| metadata.len() > 0)
    }
}
