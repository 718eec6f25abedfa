//! The steps of the program: whoever serves or records memory is told when one is closed, the library that was loaded
//! before the program among them.

#![expect(unsafe_code, reason = "calls a function of another library")]

use std::ffi::c_void;
use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

use crate::{marks, system};

static LISTENERS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Calls `listener` at the end of every step from now on; the same one only once.
pub(crate) fn listen(listener: fn()) {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !listeners.iter().any(|&known| std::ptr::fn_addr_eq(known, listener)) {
        listeners.push(listener);
    }
}

/// Closes a step of the program.
#[pyfunction]
pub(crate) fn step(python: Python<'_>) {
    python.detach(|| {
        let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener();
        }
        marks::step();
        if let Some(step) = preloaded() {
            // SAFETY: the function takes nothing and may be called by any thread.
            unsafe { step() };
        }
    });
}

/// The function that closes a step in the library which `lowtide run` loads before a program; none without it.
fn preloaded() -> Option<unsafe extern "C" fn()> {
    static FOUND: OnceLock<Option<unsafe extern "C" fn()>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = system::find(c"lowtide_step")?;
        // SAFETY: whoever has a function of this name has it with this signature.
        Some(unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn()>(found.as_ptr()) })
    })
}
