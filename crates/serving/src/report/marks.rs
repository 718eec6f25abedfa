//! Moments that the program names: reported to `lowtide watch` where that asks by `LOWTIDE_MARKS`, and written down
//! with the time since the program began.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::process::start;
use crate::settings::Settings;

/// The most that are kept.
const MOST: usize = 4096;

/// A named moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mark {
    name: String,
    seconds: f64,
}

static MARKS: Mutex<Vec<Mark>> = Mutex::new(Vec::new());
/// Those that came when there was no room, or while another was being written down.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Writes one down. Nobody waits for it: in a forked child, the lock may be held by a thread that is gone.
pub(crate) fn add(name: &CStr) {
    report(&name.to_string_lossy());
    let mark = Mark { name: name.to_string_lossy().into_owned(), seconds: start::elapsed().as_secs_f64() };
    match MARKS.try_lock() {
        Ok(mut marks) if marks.len() < MOST => marks.push(mark),
        _ => {
            MISSED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reports it to whoever watches, without waiting: nobody may read it any more, or not fast enough.
fn report(name: &str) {
    let Some(path) = Settings::get().and_then(|settings| settings.marks.as_ref()) else { return };
    if let Ok(mut file) = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
        let _ = file.write_all(format!("{}\n", name.replace(['\n', '\r'], " ")).as_bytes());
    }
}

/// Whether there are any.
pub(crate) fn are_any() -> bool {
    MISSED.load(Ordering::Relaxed) > 0 || MARKS.try_lock().is_ok_and(|marks| !marks.is_empty())
}

/// All of them, and how many were missed.
pub(crate) fn all() -> (Vec<Mark>, u64) {
    (MARKS.try_lock().map(|marks| marks.clone()).unwrap_or_default(), MISSED.load(Ordering::Relaxed))
}

/// A forked child has none yet.
pub(crate) fn forget() {
    if let Ok(mut marks) = MARKS.try_lock() {
        marks.clear();
    }
    MISSED.store(0, Ordering::Relaxed);
}
