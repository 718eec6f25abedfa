//! Why something cannot be watched.

use std::io;
use std::path::PathBuf;

/// Why something cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process is there and may not be read; watch one's own, or as another user.
    #[error("process {pid} cannot be read: {source}")]
    Unreadable {
        /// Its number.
        pid: i32,
        /// What the system said.
        source: io::Error,
    },
    /// The FIFO for marks cannot be made there; name another place.
    #[error("{}: cannot make a FIFO: {source}", .path.display())]
    Fifo {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
