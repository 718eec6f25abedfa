//! Writes down what PyTorch allocates and frees: the stand-ins for its allocators tell, and rows go to disk as the
//! program runs, so that memory stays bounded and a program that dies leaves what it had done up to its last step.

mod files;
mod site;
mod writer;

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lowtide_formats::TraceRow;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;

use crate::guard::RECORDER;
use crate::{cpu, cuda, steps, threads};
use files::Files;
use site::Site;
pub(crate) use site::{enter_backward, leave_backward};

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// CPU tensors.
    Cpu,
    /// Memory of CUDA devices.
    Cuda,
}

/// Where on a device a block was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) device: u32,
    /// The driver's handle of the stream.
    pub(crate) stream: u64,
}

/// Whether a recording runs; where not, nothing here costs more than to look.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// CPU blocks that are smaller are left out.
static LEAST: AtomicUsize = AtomicUsize::new(0);

/// How many were.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

struct Recording {
    start: Instant,
    files: Files,
    live: FxHashMap<usize, Block>,
    /// The numbers of streams, by their handles; the first of a device is zero.
    streams: FxHashMap<u64, u64>,
    next: u64,
    steps: u64,
    events: u64,
    held: [Held; 2],
}

struct Block {
    id: u64,
    bytes: u64,
    kind: Kind,
    device: Option<u32>,
}

/// What blocks of one kind hold.
#[derive(Clone, Copy, Default)]
struct Held {
    bytes: u64,
    peak: u64,
}

pub(crate) fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed) && !threads::is_forked() && !RECORDER.is_broken()
}

fn with_recording(act: impl FnOnce(&mut Recording)) {
    if let Some(recording) = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(recording);
    }
}

/// A block was handed out. The caller holds no lock: the place in the program may have to be asked of the interpreter.
pub(crate) fn allocated(kind: Kind, bytes: usize, block: *mut c_void, place: Option<Place>) {
    if !is_running() || block.is_null() {
        return;
    }
    if kind == Kind::Cpu && bytes < LEAST.load(Ordering::Relaxed) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let site = Site::here();
    RECORDER.call(|| with_recording(|recording| recording.alloc(kind, bytes as u64, block as usize, place, site)));
}

/// A block is about to be given back.
pub(crate) fn freed(block: *mut c_void) {
    if is_running() {
        RECORDER.call(|| with_recording(|recording| recording.free(block as usize)));
    }
}

/// A block is used on another stream.
pub(crate) fn used(block: *mut c_void, stream: u64) {
    if is_running() {
        RECORDER.call(|| with_recording(|recording| recording.record(block as usize, stream)));
    }
}

/// Notes an allocation that ends by an exception.
pub(crate) struct Watch {
    kind: Kind,
    bytes: usize,
}

impl Watch {
    pub(crate) fn new(kind: Kind, bytes: usize) -> Self {
        Self { kind, bytes }
    }

    /// It did not.
    pub(crate) fn served(self) {
        std::mem::forget(self);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if is_running() {
            let Self { kind, bytes } = *self;
            RECORDER.call(|| with_recording(|recording| recording.out_of_memory(kind, bytes as u64)));
        }
    }
}

impl Recording {
    fn row(&self, event: &'static str, id: Option<u64>) -> TraceRow<'static> {
        TraceRow {
            event,
            id,
            bytes: None,
            stream: None,
            time_ns: self.start.elapsed().as_nanos() as u64,
            device: None,
            thread: threads::number(),
            category: "",
            site: "",
        }
    }

    fn write(&mut self, kind: Kind, row: &TraceRow<'_>) {
        self.events += 1;
        self.files.push(kind, row);
    }

    fn alloc(&mut self, kind: Kind, bytes: u64, block: usize, place: Option<Place>, site: Site) {
        let id = self.next;
        self.next += 1;
        let stream = place.map_or(0, |place| self.stream(place.stream));
        let device = place.map(|place| place.device);
        let category = site.category(self.steps == 0);
        let row = TraceRow {
            bytes: Some(bytes),
            stream: Some(stream),
            device,
            category,
            site: site.text,
            ..self.row("alloc", Some(id))
        };
        // A block that was there was given back in a way that nobody told of.
        self.free(block);
        self.write(kind, &row);
        self.live.insert(block, Block { id, bytes, kind, device });
        let held = &mut self.held[kind as usize];
        held.bytes += bytes;
        held.peak = held.peak.max(held.bytes);
    }

    fn free(&mut self, block: usize) {
        // Two kinds of memory never have the same address.
        let Some(Block { id, bytes, kind, device }) = self.live.remove(&block) else { return };
        let row = TraceRow { device, ..self.row("free", Some(id)) };
        self.write(kind, &row);
        self.held[kind as usize].bytes -= bytes;
    }

    fn record(&mut self, block: usize, stream: u64) {
        let stream = self.stream(stream);
        let Some(&Block { id, kind, device, .. }) = self.live.get(&block) else { return };
        let row = TraceRow { stream: Some(stream), device, ..self.row("record", Some(id)) };
        self.write(kind, &row);
    }

    fn out_of_memory(&mut self, kind: Kind, bytes: u64) {
        let row = TraceRow { bytes: Some(bytes), ..self.row("oom", None) };
        self.write(kind, &row);
    }

    fn step(&mut self) {
        self.steps += 1;
        let row = self.row("step", Some(self.steps));
        for kind in [Kind::Cpu, Kind::Cuda] {
            if self.files.has(kind) {
                self.write(kind, &row);
            }
        }
        self.files.flush();
    }

    fn stream(&mut self, handle: u64) -> u64 {
        if handle == 0 {
            return 0;
        }
        let next = self.streams.len() as u64 + 1;
        *self.streams.entry(handle).or_insert(next)
    }
}

/// Records from now on: CUDA memory to `path`, and CPU tensors of at least `least` bytes beside it, or to `path` where in
/// the end there is nothing else. Files are made when there is something to write. Where `list` is given, the name of
/// each new file is added to that file.
#[pyfunction]
#[pyo3(signature = (path, least = 0, list = None))]
pub(crate) fn start_recording(python: Python<'_>, path: PathBuf, least: usize, list: Option<PathBuf>) -> PyResult<()> {
    if RECORDER.is_broken() {
        return Err(PyRuntimeError::new_err("nothing can be recorded any more: it failed by a defect of Lowtide"));
    }
    cpu::stand_in().map_err(|refusal| refusal.raise(python))?;
    site::learn_names(python)?;
    {
        let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
        if recording.is_some() {
            return Err(PyRuntimeError::new_err("a recording runs already\nhint: end it first"));
        }
        *recording = Some(Recording {
            start: Instant::now(),
            files: Files::new(path, list).map_err(|error| PyOSError::new_err(error.to_string()))?,
            live: FxHashMap::default(),
            streams: FxHashMap::default(),
            next: 0,
            steps: 0,
            events: 0,
            held: [Held::default(); 2],
        });
    }
    LEAST.store(least, Ordering::Relaxed);
    LEFT_OUT.store(0, Ordering::Relaxed);
    steps::listen(|| {
        if is_running() {
            RECORDER.call(|| with_recording(Recording::step));
        }
    });
    RUNNING.store(true, Ordering::Relaxed);
    Ok(())
}

/// Records CUDA memory too, from now on; to be called when CUDA was initialised.
#[pyfunction]
pub(crate) fn record_cuda(python: Python<'_>) -> PyResult<()> {
    // Before that, to ask for a block would throw. PyTorch says that it is initialised only when this has returned, where
    // it calls this itself.
    let torch = python.import("torch.cuda")?;
    let starts =
        torch.getattr("_tls")?.getattr("is_initializing").is_ok_and(|starts| starts.is_truthy().unwrap_or(false));
    if !starts && !torch.call_method0("is_initialized")?.extract::<bool>()? {
        return Err(PyRuntimeError::new_err("CUDA is not initialised\nhint: call this after torch.cuda.init()"));
    }
    cuda::stand_in().map_err(|refusal| refusal.raise(python))
}

/// Ends the recording and tells of it: its `files` by kind, how many `events`, `steps` and blocks `left_out` there were,
/// and the `peak` of each kind in bytes. `None` where none runs, also in a forked child.
#[pyfunction]
pub(crate) fn stop_recording(python: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    if threads::is_forked() {
        return Ok(None);
    }
    RUNNING.store(false, Ordering::Relaxed);
    let ended = python.detach(|| {
        let recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let Recording { files, steps, events, held, .. } = recording;
        Some((files.finish(), steps, events, held))
    });
    let Some((files, steps, events, held)) = ended else { return Ok(None) };
    if RECORDER.is_broken() {
        return Err(PyRuntimeError::new_err("the recording is not whole: it failed by a defect of Lowtide"));
    }
    let files = files.map_err(|error| PyOSError::new_err(format!("the recording is not whole: {error}")))?;
    let dict = PyDict::new(python);
    let (names, peaks) = (PyDict::new(python), PyDict::new(python));
    for (kind, name, path) in files {
        names.set_item(name, path)?;
        peaks.set_item(name, held[kind as usize].peak)?;
    }
    dict.set_item("files", names)?;
    dict.set_item("peak", peaks)?;
    dict.set_item("events", events)?;
    dict.set_item("steps", steps)?;
    dict.set_item("left_out", LEFT_OUT.load(Ordering::Relaxed))?;
    Ok(Some(dict))
}
