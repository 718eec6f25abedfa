//! What readers share: an input is opened and told apart (`open`, `decompress`), a table is taken apart into records,
//! fields and cells, and texts are kept once (`interner`).

pub(crate) mod cell;
pub(crate) mod decompress;
pub(crate) mod fields;
pub(crate) mod header;
pub(crate) mod interner;
pub(crate) mod open;
pub(crate) mod raw_rows;
pub(crate) mod records;

pub use decompress::{Decompressed, decompress};
