//! The devices of a process as a framework's allocator hooks see them: an arena for each, private pools for what is
//! captured in graphs, exact counts, a short history, and words for a shortage. Nothing here knows the framework.

mod captures;
mod counts;
mod device;
mod failed_frees;
mod history;
mod shortage;
mod still;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use lowtide_core::{Bytes, StepIndex, StreamId, Trace};
use lowtide_memory::{Error as SourceError, Source};

use crate::arena::{ArenaOptions, LiveBlock};
use crate::error::Error;
use crate::pool::{Address, Pool, Request};

pub use captures::Capture;
use device::Device;
pub use device::DeviceStats;
pub use failed_frees::FailedFrees;
pub use shortage::Shortage;

/// The most devices that a process can have.
const MOST: usize = 64;

/// Makes the source of a device's memory when the device is first used.
pub type Opener = Box<dyn Fn(u32) -> Result<Arc<dyn Source>, SourceError> + Send + Sync>;

/// Makes the pool that serves what is allocated while a graph is captured. A block of it may be used again only by the stream
/// that freed it, which the graph keeps in order.
pub type CapturePool = fn(Arc<dyn Source>) -> Box<dyn Pool>;

/// What all devices of a fleet have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct FleetOptions {
    /// How their arenas work.
    pub arena: ArenaOptions,
    /// The most memory that is taken of each; all there is, where there is none.
    pub limit: Option<Bytes>,
    /// How many requests between two steps are kept for [`Fleet::history`]; with zero, none are.
    pub history: usize,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { arena: ArenaOptions::default(), limit: None, history: 1 << 17 }
    }
}

/// The devices, each opened when it is first used. Every call may come from any thread.
pub struct Fleet {
    devices: Box<[OnceLock<Device>]>,
    open: Opener,
    capture_pool: CapturePool,
    opening: Mutex<()>,
    options: FleetOptions,
    /// Frees on devices that were never used.
    strays: FailedFrees,
    /// Whether a step is over and waits for the next allocation to be closed.
    over: AtomicBool,
    steps: AtomicU64,
}

impl Fleet {
    /// A fleet of no device yet.
    pub fn new(open: Opener, capture_pool: CapturePool, options: FleetOptions) -> Self {
        Self {
            devices: (0..MOST).map(|_| OnceLock::new()).collect(),
            open,
            capture_pool,
            opening: Mutex::new(()),
            options,
            strays: FailedFrees::default(),
            over: AtomicBool::new(false),
            steps: AtomicU64::new(0),
        }
    }

    /// A block on `device`. Where there is no room, whatever can be given back is, and it is tried once more.
    pub fn alloc(&self, device: u32, request: &Request) -> Result<Address, Error> {
        self.alloc_in(device, request, self.capture_of(device, request.stream))
    }

    /// The capture under way that blocks for `stream` belong to. It asks the filters that [`begin_capture`](Self::begin_capture)
    /// was given and does nothing else: where one unwinds, by a panic or an exception, nothing has changed.
    pub fn capture_of(&self, device: u32, stream: StreamId) -> Option<Capture> {
        self.opened(device)?.captures.belonging(stream)
    }

    /// As [`alloc`](Self::alloc), for whoever has asked [`capture_of`](Self::capture_of) before: no filter is asked.
    pub fn alloc_in(&self, device: u32, request: &Request, capture: Option<Capture>) -> Result<Address, Error> {
        if self.over.load(Ordering::Relaxed) {
            self.end_step();
        }
        self.device(device)?.alloc(request, capture)
    }

    /// Takes a block of `device` back. An error is counted in [`DeviceStats::failed_frees`] and said in
    /// [`warnings`](Self::warnings) too: who frees may have nobody to give it to.
    pub fn free(&self, device: u32, address: Address, bytes: Bytes) -> Result<(), Error> {
        if let Some(device) = self.opened(device) {
            return device.free(address, bytes);
        }
        let error = Error::ForeignAddress { address };
        self.strays.note(&error);
        Err(error)
    }

    /// Says that work on `stream` uses a block as well, whichever device it is on.
    pub fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        let foreign = Err(Error::ForeignAddress { address });
        self.all().map(|device| device.record(address, stream)).find(|outcome| *outcome != foreign).unwrap_or(foreign)
    }

    /// The program's step is over. It is closed with the next allocation: what the program lets go until then still
    /// belongs to it. What would make the program wait later is done now where its devices are at work.
    pub fn step(&self) {
        /// For all devices together: some programs have little work queued, and would wait.
        const LONGEST: Duration = Duration::from_millis(10);
        if !self.is_recording() {
            let share = LONGEST / self.all().count().max(1) as u32;
            self.all().for_each(|device| device.work_ahead(share));
        }
        self.over.store(true, Ordering::Relaxed);
    }

    /// How many steps were closed.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Gives back whatever can be given back, on all devices, and says how much. An error on one leaves no other out.
    pub fn trim(&self) -> Result<Bytes, Error> {
        let outcomes: Vec<Result<Bytes, Error>> = self.all().map(Device::trim).collect();
        outcomes.into_iter().sum()
    }

    /// From now on blocks whose stream `belongs` come from a pool of their own: a graph that is captured will use
    /// their addresses again and again.
    pub fn begin_capture(
        &self,
        device: u32,
        capture: Capture,
        belongs: impl Fn(StreamId) -> bool + Send + 'static,
    ) -> Result<(), Error> {
        self.device(device)?.captures.begin(capture, Box::new(belongs));
        Ok(())
    }

    /// The capture is over; its pool stays.
    pub fn end_capture(&self, device: u32, capture: Capture) {
        if let Some(device) = self.opened(device) {
            device.end_capture(capture);
        }
    }

    /// One graph less uses the pool of a capture; without any, its memory goes back once its blocks are freed.
    pub fn release_capture(&self, device: u32, capture: Capture) {
        if let Some(device) = self.opened(device) {
            device.captures.release(capture);
        }
    }

    /// Takes at most `limit` of a device from now on.
    pub fn set_limit(&self, device: u32, limit: Option<Bytes>) -> Result<(), Error> {
        self.device(device)?.source.set_limit(limit);
        Ok(())
    }

    /// The limit that devices have when they are opened, where there is one.
    pub fn usual_limit(&self) -> Option<Bytes> {
        self.options.limit
    }

    /// The memory that a device has, where that is known.
    pub fn capacity(&self, device: u32) -> Result<Option<Bytes>, Error> {
        Ok(self.device(device)?.source.describe().capacity)
    }

    /// What a device holds and did; nothing where it was not used yet.
    pub fn stats(&self, device: u32) -> Option<DeviceStats> {
        self.opened(device).map(Device::stats)
    }

    /// Lets the peaks of a device begin at what is there now.
    pub fn reset_peaks(&self, device: u32) {
        if let Some(device) = self.opened(device) {
            device.reset_peaks();
        }
    }

    /// The block in use in which `address` lies, on whichever device; those of captures are not found.
    pub fn block_at(&self, address: Address) -> Option<LiveBlock> {
        self.all().find_map(|device| {
            let blocks = device.arena.blocks();
            let before = blocks.partition_point(|block| block.address <= address).checked_sub(1)?;
            Some(blocks[before]).filter(|block| address.0 < block.address.0 + block.bytes.get())
        })
    }

    /// What there is to say of a request that a device refused.
    pub fn shortage(&self, device: u32, asked: Bytes) -> Option<Shortage> {
        self.opened(device).map(|opened| Shortage::new(opened, asked))
    }

    /// The last requests of all devices, from a few steps back: blocks that were in use before come first.
    pub fn history(&self) -> Trace {
        history::trace(self.all().map(|device| (device.number, &device.history)))
    }

    /// What went wrong since the last call, in the learners and in frees, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let of_devices = self.all().flat_map(|device| {
            let failed = device.failed_frees.warning();
            device.arena.warnings().into_iter().chain(failed.map(|text| format!("device {}: {text}", device.number)))
        });
        of_devices.chain(self.strays.warning()).collect()
    }

    /// Closes the step that is over, unless a capture is under way: streams may not be waited for then.
    #[cold]
    fn end_step(&self) {
        if self.is_recording() || !self.over.swap(false, Ordering::Relaxed) {
            return;
        }
        let step = StepIndex(self.steps.fetch_add(1, Ordering::Relaxed) + 1);
        for device in self.all() {
            device.close_step(step);
        }
    }

    /// Whether a capture is under way: streams may neither be waited for nor marked then.
    fn is_recording(&self) -> bool {
        self.all().any(|device| device.captures.is_recording())
    }

    fn all(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter_map(OnceLock::get)
    }

    fn opened(&self, number: u32) -> Option<&Device> {
        self.devices.get(number as usize).and_then(OnceLock::get)
    }

    fn device(&self, number: u32) -> Result<&Device, Error> {
        match self.opened(number) {
            Some(device) => Ok(device),
            None => self.first_use(number),
        }
    }

    #[cold]
    fn first_use(&self, number: u32) -> Result<&Device, Error> {
        let _one_at_a_time = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.devices.get(number as usize).ok_or_else(|| {
            let why = format!("device {number} is beyond the {MOST} that a process can have");
            Error::Source(SourceError::Refused { call: "open", why })
        })?;
        if let Some(device) = place.get() {
            return Ok(device);
        }
        let source = (self.open)(number).map_err(Error::Source)?;
        let device = Device::new(number, source, self.capture_pool, &self.options)?;
        Ok(place.get_or_init(|| device))
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("options", &self.options).field("steps", &self.steps).finish_non_exhaustive()
    }
}
