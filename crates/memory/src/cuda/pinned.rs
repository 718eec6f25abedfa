//! Host memory that a CUDA device copies from and to at full speed: pages of the machine, registered with the driver when
//! they are committed.

#![expect(unsafe_code, reason = "calls the driver")]

use std::sync::Arc;

use lowtide_core::Bytes;

use crate::cuda::context::Context;
use crate::cuda::driver::{self, Driver};
use crate::cuda::events::Events;
use crate::error::Error;
use crate::host::{HostOptions, HostPages};
use crate::mapper::{Backing, Mapper, source_by_mapper};
use crate::source::{Description, Span};
use crate::system::pages;

/// Every context of the program sees the registration, and devices may use the addresses.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;

/// Pinned host memory. Streams are those of [`CudaDevice`](crate::cuda::CudaDevice).
#[derive(Debug)]
pub struct CudaPinned {
    mapper: Mapper<Pinned>,
}

impl CudaPinned {
    /// Memory as `options` ask for it, pinned for device `ordinal`; see [`Host::new`](crate::Host::new).
    pub fn new(ordinal: u32, options: &HostOptions) -> Result<Self, Error> {
        Self::with_driver(driver::driver()?, ordinal, options)
    }

    pub(super) fn with_driver(driver: &'static Driver, ordinal: u32, options: &HostOptions) -> Result<Self, Error> {
        let context = Arc::new(Context::new(driver, ordinal)?);
        let events = Events::new(Arc::clone(&context));
        let name = context.name();
        Ok(Self { mapper: Mapper::new(Pinned { events, context, host: HostPages::new(options), name }) })
    }
}

source_by_mapper!(CudaPinned);

#[derive(Debug)]
struct Pinned {
    events: Events,
    context: Arc<Context>,
    host: HostPages,
    name: String,
}

impl Backing for Pinned {
    type Handle = ();
    type Queue = Events;

    fn describe(&self) -> Description {
        let host = self.host.describe();
        let name = format!("{}, pinned for {}", host.name, self.name);
        Description { name, aliases: false, relocates: false, queued: true, ..host }
    }

    fn queue(&self) -> &Events {
        &self.events
    }

    fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        self.host.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        self.host.release(span)
    }

    fn create(&self, _bytes: Bytes) -> Result<(), Error> {
        Ok(())
    }

    fn destroy(&self, (): (), _bytes: Bytes) -> Result<(), Error> {
        Ok(())
    }

    fn map(&self, (): (), span: Span) -> Result<(), Error> {
        self.host.map((), span)?;
        let registered = self.context.enter().and_then(|_entered| {
            let (start, length) = (pages::pointer(span), pages::length(span));
            // SAFETY: the pages were put there just now and stay until they are unregistered.
            let code = unsafe { (self.context.driver.register)(start, length, PORTABLE_AND_MAPPED) };
            self.context.driver.check("cuMemHostRegister", code, Some(span.bytes))
        });
        registered.inspect_err(|_| {
            let _ = self.host.unmap((), span);
        })
    }

    fn unmap(&self, (): (), span: Span) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the mapper unmaps what `map` registered, once.
        let code = unsafe { (self.context.driver.unregister)(pages::pointer(span)) };
        self.context.driver.check("cuMemHostUnregister", code, None)?;
        self.host.unmap((), span)
    }
}
