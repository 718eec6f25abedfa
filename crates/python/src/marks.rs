//! Marks for `lowtide watch`: the end of an action, written to the FIFO that it names in `LOWTIDE_MARKS`.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

use lowtide_core::options::{MARK, MARKS};
use pyo3::prelude::*;

/// Ends an action called `name`: what was done since the mark before. Says whether anybody watches.
#[pyfunction]
#[pyo3(signature = (name = "mark"))]
pub(crate) fn mark(python: Python<'_>, name: &str) -> bool {
    python.detach(|| write(name))
}

/// Ends an action called `step`, where `lowtide watch --mark step` asked for that. Of processes that train together only
/// the first of a machine does.
pub(crate) fn step() {
    static WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = || {
        let is_first = env::var_os("LOCAL_RANK").is_none_or(|rank| rank.is_empty() || rank == "0");
        is_first && env::var_os(MARK.variable()).is_some_and(|what| what == "step")
    };
    if *WANTED.get_or_init(is_wanted) {
        write("step");
    }
}

fn write(name: &str) -> bool {
    static PATH: OnceLock<Option<OsString>> = OnceLock::new();
    let path = PATH.get_or_init(|| env::var_os(MARKS.variable()).filter(|path| !path.is_empty()));
    let Some(path) = path else { return false };
    // Without waiting: nobody may read it any more, or not fast enough.
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    let line = format!("{}\n", name.replace(['\n', '\r'], " "));
    file.is_ok_and(|mut file| file.write_all(line.as_bytes()).is_ok())
}
