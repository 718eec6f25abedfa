//! The queue of a device's work, with marks as the driver's events. An event is made once and used for one mark after
//! the other.

#![expect(unsafe_code, reason = "calls the driver")]

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_core::StreamId;

use crate::cuda::context::{Context, settle};
use crate::cuda::driver::{self, SUCCESS};
use crate::error::Error;
use crate::mapper::Queue;
use crate::slots::Slots;
use crate::source::Mark;

/// An event without a time, which is cheaper.
const DISABLE_TIMING: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Event(driver::Event);

// SAFETY: an event may be used by any thread; the pointer is the driver's and never read here.
unsafe impl Send for Event {}

#[derive(Debug, Default)]
struct Marks {
    events: Slots<Event>,
    idle: Vec<Event>,
    all: Vec<Event>,
}

#[derive(Debug)]
pub(super) struct Events {
    context: Arc<Context>,
    marks: Mutex<Marks>,
}

impl Events {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, marks: Mutex::default() }
    }

    fn create(&self, marks: &mut Marks) -> Result<Event, Error> {
        let mut event = ptr::null_mut();
        // SAFETY: the pointer lives through the call.
        let code = unsafe { (self.context.driver.event_create)(&raw mut event, DISABLE_TIMING) };
        self.context.driver.check("cuEventCreate", code, None)?;
        marks.all.push(Event(event));
        Ok(Event(event))
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Events {
    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        let entered = self.context.enter()?;
        // A mark there would become a part of the graph, and never pass.
        if self.context.is_captured(&entered, stream)? {
            return Err(Error::Refused { call: "cuEventRecord", why: "the stream is being captured".to_owned() });
        }
        let mut marks = self.lock();
        let event = match marks.idle.pop() {
            Some(event) => event,
            None => self.create(&mut marks)?,
        };
        // SAFETY: the event is alive until `self` goes; the stream is one of the caller's.
        let code = unsafe { (self.context.driver.event_record)(event.0, driver::handle(stream)) };
        match self.context.driver.check("cuEventRecord", code, None) {
            Ok(()) => Ok(marks.events.insert(event)),
            Err(error) => {
                marks.idle.push(event);
                Err(error)
            }
        }
    }

    fn passed(&self, mark: Mark) -> bool {
        let mut marks = self.lock();
        let Some(&mut event) = marks.events.get_mut(mark) else { return true };
        let Ok(_entered) = self.context.enter() else { return false };
        // SAFETY: the event is alive until `self` goes.
        unsafe { (self.context.driver.event_query)(event.0) == SUCCESS }
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        let mut marks = self.lock();
        let Some(&mut event) = marks.events.get_mut(mark) else { return Ok(()) };
        let _entered = self.context.enter()?;
        // SAFETY: the event is alive until `self` goes; the stream is one of the caller's.
        let code = unsafe { (self.context.driver.stream_wait)(driver::handle(stream), event.0, 0) };
        self.context.driver.check("cuStreamWaitEvent", code, None)
    }

    fn wait(&self, mark: Mark) -> Result<Option<u64>, Error> {
        let Some(event) = self.lock().events.get_mut(mark).copied() else { return Ok(None) };
        let _entered = self.context.enter()?;
        // SAFETY: the event is alive until `self` goes. Should another thread forget the mark meanwhile, the event may be
        // recorded again, and this waits longer.
        let code = unsafe { (self.context.driver.event_wait)(event.0) };
        self.context.driver.check("cuEventSynchronize", code, None).map(|()| None)
    }

    fn forget(&self, mark: Mark) {
        let mut marks = self.lock();
        if let Some(event) = marks.events.remove(mark) {
            marks.idle.push(event);
        }
    }

    fn drain(&self) -> Result<(), Error> {
        self.context.drain()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter().or_else(|_| self.context.enter()) else { return };
        for event in std::mem::take(&mut self.lock().all) {
            // SAFETY: made once, destroyed once; a call that fails destroys nothing.
            settle(|| unsafe { (self.context.driver.event_destroy)(event.0) });
        }
    }
}
