//! Where in the Python program an allocation was asked for: the innermost frame that is neither PyTorch's nor Lowtide's,
//! and what the memory is for, inferred from the names of frames as in a snapshot of PyTorch.

#![expect(unsafe_code, reason = "walks the frames of the interpreter")]

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::guard::RECORDER;
use crate::{system, threads};

/// How many frames are looked at, and how many of them beyond the place itself.
const DEEPEST: usize = 96;
const BEYOND: usize = 24;

/// Programs that make functions as they run have no end of them; beyond this many, nothing more is remembered.
const MOST: usize = 1 << 16;

/// Where an allocation was asked for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Site {
    /// `file:line function`, or nothing.
    pub(super) text: &'static str,
    early: Option<&'static str>,
    later: Option<&'static str>,
}

impl Site {
    /// The place of this thread. Takes the interpreter's lock where the thread is known to the interpreter.
    pub(super) fn here() -> Self {
        let found = Self::of_frames();
        if found.text.is_empty() { Self::of_backward() } else { found }
    }

    /// The place by the frames of this thread. To wait for the interpreter's lock may end the thread, which no guard
    /// may see.
    fn of_frames() -> Self {
        with_interpreter(|python| RECORDER.call(|| walk(python))).flatten().unwrap_or_default()
    }

    /// What the memory is for.
    pub(super) fn category(self, before_steps: bool) -> &'static str {
        if before_steps { self.early } else { self.later }.unwrap_or_default()
    }

    /// The place of whoever waits for a backward pass: its threads have none of their own.
    fn of_backward() -> Self {
        let text = backwards().last().map_or("", |&(_, text)| text);
        let category = (!text.is_empty()).then_some("backward");
        Self { text, early: category, later: category }
    }
}

/// The threads that wait for a backward pass, and where.
static BACKWARDS: Mutex<Vec<(u64, &'static str)>> = Mutex::new(Vec::new());

fn backwards() -> std::sync::MutexGuard<'static, Vec<(u64, &'static str)>> {
    BACKWARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread begins a backward pass.
#[pyfunction]
pub(crate) fn enter_backward() {
    let text = Site::of_frames().text;
    let text =
        if text.is_empty() || text.starts_with(BACKWARD_OF) { text } else { intern(format!("{BACKWARD_OF}{text}")) };
    backwards().push((threads::number(), text));
}

/// Ends what [`enter_backward`] began.
#[pyfunction]
pub(crate) fn leave_backward() {
    let mut backwards = backwards();
    if let Some(last) = backwards.iter().rposition(|&(thread, _)| thread == threads::number()) {
        backwards.remove(last);
    }
}

const BACKWARD_OF: &str = "backward of ";

/// What a function is, by its name and file.
#[derive(Clone, Copy, Debug)]
struct Code {
    file: &'static str,
    name: &'static str,
    /// Whether it belongs to PyTorch or Lowtide.
    inner: bool,
    /// What memory is for that it asks for, before the first step and later.
    early: Option<&'static str>,
    later: Option<&'static str>,
}

#[derive(Default)]
struct Known {
    /// By the address of the code object, which is kept alive.
    codes: FxHashMap<usize, Code>,
    /// By code, line, and whether it is a backward pass that was begun there.
    texts: FxHashMap<(usize, c_int, bool), &'static str>,
    interned: std::collections::HashSet<&'static str>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn with_known<T>(act: impl FnOnce(&mut Known) -> T) -> T {
    act(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// One copy of a text, for as long as the program.
fn intern(text: String) -> &'static str {
    with_known(|known| {
        if let Some(&text) = known.interned.get(text.as_str()) {
            return text;
        }
        let text: &'static str = text.leak();
        known.interned.insert(text);
        text
    })
}

/// The folders whose frames are skipped.
static INNER: OnceLock<Vec<String>> = OnceLock::new();

/// Learns where PyTorch and Lowtide are.
pub(super) fn learn_names(python: Python<'_>) -> PyResult<()> {
    if INNER.get().is_some() {
        return Ok(());
    }
    let mut folders = Vec::new();
    for module in ["torch", "lowtide", "contextlib", "functools", "importlib"] {
        let file: String = python.import(module)?.getattr("__file__")?.extract()?;
        folders.push(file.strip_suffix("__init__.py").unwrap_or(&file).to_owned());
    }
    INNER.get_or_init(|| folders);
    Ok(())
}

/// Runs `act` with the interpreter's lock, where this thread is known to it and it is not on its way out.
fn with_interpreter<T>(act: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: asks for this thread's own state.
    if is_finalizing() || unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
        return None;
    }
    // SAFETY: the interpreter is there; the lock is released below, by the same thread.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // SAFETY: the lock is held.
    let result = act(unsafe { Python::assume_attached() });
    // SAFETY: as above.
    unsafe { ffi::PyGILState_Release(state) };
    Some(result)
}

/// A function of the interpreter that is not part of its stable interface.
fn interpreter(symbol: &CStr) -> Option<*mut c_void> {
    system::find(symbol).map(NonNull::as_ptr)
}

fn is_finalizing() -> bool {
    type Ask = unsafe extern "C" fn() -> c_int;
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    let ask = ASK.get_or_init(|| {
        let function = interpreter(c"Py_IsFinalizing").or_else(|| interpreter(c"_Py_IsFinalizing"))?;
        // SAFETY: both are `int (void)`.
        Some(unsafe { mem::transmute::<*mut c_void, Ask>(function) })
    });
    // SAFETY: needs no lock.
    ask.is_some_and(|ask| unsafe { ask() } != 0)
}

/// A frame, as long as it is looked at.
struct Frame(NonNull<ffi::PyFrameObject>);

impl Frame {
    fn current() -> Option<Self> {
        // SAFETY: the lock is held; the frame is borrowed and kept by a count of its own.
        unsafe {
            let frame = ffi::PyEval_GetFrame();
            ffi::Py_XINCREF(frame.cast());
            NonNull::new(frame).map(Self)
        }
    }

    /// The frame that called this one.
    fn caller(&self) -> Option<Self> {
        type Back = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
        static BACK: OnceLock<Option<Back>> = OnceLock::new();
        let back = (*BACK.get_or_init(|| {
            // SAFETY: `PyFrameObject* PyFrame_GetBack(PyFrameObject*)`, which gives a count of its own.
            interpreter(c"PyFrame_GetBack").map(|function| unsafe { mem::transmute::<*mut c_void, Back>(function) })
        }))?;
        // SAFETY: the lock is held and the frame alive.
        NonNull::new(unsafe { back(self.0.as_ptr()) }).map(Self)
    }

    /// The address of its code, which lives at least as long as the frame.
    fn code(&self) -> *mut ffi::PyObject {
        // SAFETY: the lock is held and the frame alive; the frame keeps its code.
        unsafe {
            let code = ffi::PyFrame_GetCode(self.0.as_ptr()).cast::<ffi::PyObject>();
            ffi::Py_DECREF(code);
            code
        }
    }

    fn line(&self) -> c_int {
        // SAFETY: the lock is held and the frame alive.
        unsafe { ffi::PyFrame_GetLineNumber(self.0.as_ptr()) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: the lock is held; the count is this frame's own.
        unsafe { ffi::Py_DECREF(self.0.as_ptr().cast()) };
    }
}

/// The site of the frames of this thread.
fn walk(python: Python<'_>) -> Site {
    let mut site = Site::default();
    let (mut in_backward, mut beyond) = (false, 0);
    let mut next = Frame::current();
    for _ in 0..DEEPEST {
        let Some(frame) = next else { break };
        let object = frame.code();
        let code = known(python, object);
        if !site.text.is_empty() {
            beyond += 1;
        } else if code.inner {
            in_backward |= code.name.contains("_run_backward");
        } else {
            site.text = text(object as usize, code, frame.line(), in_backward);
        }
        site.early = site.early.or(code.early);
        site.later = site.later.or(code.later);
        if !site.text.is_empty() && (beyond >= BEYOND || (site.early.is_some() && site.later.is_some())) {
            break;
        }
        next = frame.caller();
    }
    site
}

fn text(object: usize, code: Code, line: c_int, in_backward: bool) -> &'static str {
    if let Some(text) = with_known(|known| known.texts.get(&(object, line, in_backward)).copied()) {
        return text;
    }
    let before = if in_backward { BACKWARD_OF } else { "" };
    let text = intern(format!("{before}{}:{line} {}", code.file, code.name));
    with_known(|known| {
        if known.codes.contains_key(&object) && known.texts.len() < MOST {
            known.texts.insert((object, line, in_backward), text);
        }
    });
    text
}

fn known(python: Python<'_>, object: *mut ffi::PyObject) -> Code {
    if let Some(code) = with_known(|known| known.codes.get(&(object as usize)).copied()) {
        return code;
    }
    // SAFETY: a code object of a frame that is alive.
    let bound = unsafe { Bound::from_borrowed_ptr(python, object) };
    let pending = PyErr::take(python);
    let word = |name: &str| bound.getattr(name).and_then(|value| value.extract::<String>()).unwrap_or_default();
    let (file, name) = (word("co_filename"), word("co_name"));
    // What could not be read is left empty; an exception that was on its way goes on.
    drop(PyErr::take(python));
    if let Some(pending) = pending {
        pending.restore(python);
    }
    let code = Code::new(intern(file), intern(name));
    with_known(|known| {
        if known.codes.len() < MOST {
            known.codes.insert(object as usize, code);
            // It stays alive, so that its address means nothing else.
            mem::forget(bound.unbind());
        }
    });
    code
}

impl Code {
    fn new(file: &'static str, name: &'static str) -> Self {
        let inner = file.starts_with("<frozen importlib")
            || INNER.get().is_some_and(|folders| folders.iter().any(|folder| file.starts_with(folder.as_str())));
        let own = file.rsplit('/').next().unwrap_or_default();
        let in_network = file.contains("/torch/nn/");
        let later = if file.contains("/torch/optim/") || (name == "step" && own.contains("optim")) {
            Some("optimizer")
        } else if name == "backward" || name.contains("_run_backward") {
            Some("backward")
        } else if name == "forward" || (in_network && name == "_call_impl") {
            Some("forward")
        } else {
            None
        };
        let makes = |names: &[&str]| names.contains(&name);
        let is_parameter = (in_network && makes(&["__init__", "_apply", "to", "cuda", "half", "float", "bfloat16"]))
            || makes(&["reset_parameters", "_init_weights", "from_pretrained", "load_state_dict"]);
        let decided = matches!(later, Some("optimizer" | "backward"));
        let early = if is_parameter && !decided { Some("parameter") } else { later };
        Self { file, name, inner, early, later }
    }
}
