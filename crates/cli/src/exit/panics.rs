//! The last line of defence: a panic anywhere becomes a short internal error instead of a trace on the terminal.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use crate::{Answer, Failure};

/// What the first panic said, and where; it may have been on another thread than the one that is caught.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs `command`; a panic in it is a [`Failure::Fault`]. With `RUST_BACKTRACE` set, it is also told in full.
pub(crate) fn guard(command: impl FnOnce() -> Result<Answer, Failure>) -> Result<Answer, Failure> {
    let default = panic::take_hook();
    let in_full = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("a panic without words");
        let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| format!("{}{place}", text.replace('\n', " ")));
        drop(first);
        if in_full {
            default(info);
        }
    }));
    panic::catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| {
        let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(Failure::Fault(first.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_any_thread_is_an_internal_error_on_one_line() {
        let failure = guard(|| {
            std::thread::scope(|scope| scope.spawn(|| panic!("it\nbroke")).join().expect("it does not"));
            Ok(Answer::Yes)
        });
        let text = failure.unwrap_err().to_string();
        assert!(text.starts_with("internal error: it broke (") && !text.contains('\n'), "{text}");
    }
}
