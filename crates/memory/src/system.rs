//! The one place of this crate that calls the operating system.

pub(crate) mod numa;
pub(crate) mod pages;
pub mod process;
pub(crate) mod worker;
