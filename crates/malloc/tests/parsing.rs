//! What can be tested of the library without running under it: it is not linked, its files are read again.

#[expect(dead_code, reason = "only its parsing is tested")]
#[path = "../src/service/pressure.rs"]
mod pressure;
