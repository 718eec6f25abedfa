//! From what stands on the command line to what is to be worked on: a file or stdin, read as a problem or as a recorded
//! run.

pub(crate) mod question;
pub(crate) mod recorded;
pub(crate) mod source;
