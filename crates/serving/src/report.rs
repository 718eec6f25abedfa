//! What the library reports: lines on standard error while the program runs, and a summary when it ends.

pub(crate) mod faults;
pub(crate) mod marks;
pub(crate) mod notice;
pub(crate) mod summary;
