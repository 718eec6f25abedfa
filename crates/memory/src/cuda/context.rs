//! One device's primary context, which the program shares with every other user of the device. Calls run with it as the
//! thread's current context and leave the thread as it was.

#![expect(unsafe_code, reason = "calls the driver")]

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use lowtide_core::{Bytes, StreamId};

use crate::cuda::driver::{self, Code, Device, Driver, SUCCESS};
use crate::error::Error;

/// Attributes of a device.
const VIRTUAL_MEMORY: c_int = 102;
const REMOTE_ACCESS: c_int = 110;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;

#[derive(Debug)]
pub(super) struct Context {
    pub(super) driver: &'static Driver,
    pub(super) device: Device,
    ordinal: u32,
    handle: driver::Context,
}

// SAFETY: a context may be used by any thread; the pointer is the driver's and never read here.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(driver: &'static Driver, ordinal: u32) -> Result<Self, Error> {
        let device = device(driver, ordinal)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (driver.retain_context)(&raw mut handle, device) };
        driver.check("cuDevicePrimaryCtxRetain", code, None)?;
        Ok(Self { driver, device, ordinal, handle })
    }

    /// Makes the context current until the guard goes. Calls that other threads' captures of streams would forbid are
    /// allowed as long.
    pub(super) fn enter(&self) -> Result<Entered, Error> {
        let mut current = ptr::null_mut();
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.driver.current_context)(&raw mut current) };
        self.driver.check("cuCtxGetCurrent", code, None)?;
        let pushed = current != self.handle;
        if pushed {
            // SAFETY: the context is retained as long as `self` lives.
            let code = unsafe { (self.driver.push_context)(self.handle) };
            self.driver.check("cuCtxPushCurrent", code, None)?;
        }
        let mut entered = Entered { driver: self.driver, pushed, capture: None };
        let mut capture = RELAXED;
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.driver.exchange_capture)(&raw mut capture) };
        self.driver.check("cuThreadExchangeStreamCaptureMode", code, None)?;
        entered.capture = Some(capture);
        Ok(entered)
    }

    /// The device in words.
    pub(super) fn name(&self) -> String {
        let mut text = [0 as c_char; 128];
        // SAFETY: the driver writes at most the length that it is given, with a zero at the end.
        let code = unsafe { (self.driver.device_name)(text.as_mut_ptr(), text.len() as c_int - 1, self.device) };
        if code != SUCCESS {
            return format!("CUDA device {}", self.ordinal);
        }
        // SAFETY: the last byte is zero whatever the driver wrote.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) };
        format!("{}, device {}", name.to_string_lossy(), self.ordinal)
    }

    pub(super) fn total_memory(&self) -> Result<Bytes, Error> {
        let mut total = 0;
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.driver.device_memory)(&raw mut total, self.device) };
        self.driver.check("cuDeviceTotalMem", code, None)?;
        Ok(Bytes::new(total as u64))
    }

    pub(super) fn free_memory(&self) -> Result<Bytes, Error> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers live through the call.
        let code = unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) };
        self.driver.check("cuMemGetInfo", code, None)?;
        Ok(Bytes::new(free as u64))
    }

    /// Waits for all work of all streams.
    pub(super) fn drain(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: the call takes nothing; the context is current.
        let code = unsafe { (self.driver.drain)() };
        self.driver.check("cuCtxSynchronize", code, None)
    }

    /// Waits for the work of a stream.
    pub(super) fn finish(&self, stream: StreamId) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: the stream is one of the caller's.
        let code = unsafe { (self.driver.stream_finish)(driver::handle(stream)) };
        self.driver.check("cuStreamSynchronize", code, None)
    }

    /// Whether a stream is being captured; the context is entered.
    pub(super) fn is_captured(&self, _entered: &Entered, stream: StreamId) -> Result<bool, Error> {
        let mut status = 0;
        // SAFETY: the pointer lives through the call; the stream is one of the caller's.
        let code = unsafe { (self.driver.stream_capturing)(driver::handle(stream), &raw mut status) };
        self.driver.check("cuStreamIsCapturing", code, None)?;
        Ok(status != 0)
    }

    pub(super) fn maps_memory(&self) -> Result<bool, Error> {
        self.attribute(VIRTUAL_MEMORY)
    }

    pub(super) fn allows_remote_access(&self) -> Result<bool, Error> {
        self.attribute(REMOTE_ACCESS)
    }

    fn attribute(&self, attribute: c_int) -> Result<bool, Error> {
        let mut value = 0;
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.driver.device_attribute)(&raw mut value, attribute, self.device) };
        self.driver.check("cuDeviceGetAttribute", code, None)?;
        Ok(value != 0)
    }

    /// Another device that is to use this one's memory.
    pub(super) fn peer(&self, ordinal: u32) -> Result<Device, Error> {
        let peer = device(self.driver, ordinal)?;
        let mut can = 0;
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.driver.can_access_peer)(&raw mut can, peer, self.device) };
        self.driver.check("cuDeviceCanAccessPeer", code, None)?;
        if can != 0 || peer == self.device {
            return Ok(peer);
        }
        let why = format!("device {ordinal} cannot reach the memory of device {}", self.ordinal);
        Err(Error::Refused { call: "cuDeviceCanAccessPeer", why })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, released once; a call that fails releases nothing.
        settle(|| unsafe { (self.driver.release_context)(self.device) });
    }
}

/// The context is current while this lives.
#[must_use]
pub(super) struct Entered {
    driver: &'static Driver,
    pushed: bool,
    /// The thread's rule for captures before, where it has another now.
    capture: Option<c_int>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(mut capture) = self.capture {
            // SAFETY: the pointer lives through the call; the mode is the one that the driver gave.
            settle(|| unsafe { (self.driver.exchange_capture)(&raw mut capture) });
        }
        if self.pushed {
            let mut popped = ptr::null_mut();
            // SAFETY: what was pushed on this thread is popped on it: the guard holds the driver's pointer-free table
            // and never leaves the function that made it.
            settle(|| unsafe { (self.driver.pop_context)(&raw mut popped) });
        }
    }
}

/// A call that gives something back: one that is refused is tried once more, then left to the driver.
pub(super) fn settle(mut call: impl FnMut() -> Code) {
    if call() != SUCCESS {
        let _ = call();
    }
}

/// How many devices there are.
pub(super) fn count(driver: &Driver) -> Result<u32, Error> {
    let mut count = 0;
    // SAFETY: the pointer lives through the call.
    let code = unsafe { (driver.device_count)(&raw mut count) };
    driver.check("cuDeviceGetCount", code, None)?;
    Ok(u32::try_from(count).unwrap_or(0))
}

fn device(driver: &Driver, ordinal: u32) -> Result<Device, Error> {
    let there = count(driver)?;
    if ordinal >= there {
        let why = format!("there is no device {ordinal}; the driver finds {there}");
        return Err(if there == 0 { Error::NoDriver { why } } else { Error::Refused { call: "cuDeviceGet", why } });
    }
    let mut device = 0;
    // SAFETY: the pointer lives through the call.
    let code = unsafe { (driver.device)(&raw mut device, ordinal as c_int) };
    driver.check("cuDeviceGet", code, None)?;
    Ok(device)
}
