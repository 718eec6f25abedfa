//! How wide the terminal is that reads stdout.

use std::env;
use std::io;

use terminal_size::{Width, terminal_size_of};

/// The columns that text on stdout has: those of `COLUMNS`, or of the terminal; `None` where a file or a program reads it.
pub(crate) fn width() -> Option<usize> {
    let named = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    named
        .filter(|&columns| columns > 0)
        .or_else(|| terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns.into()))
}
