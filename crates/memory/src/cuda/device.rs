//! The memory of a CUDA device, by the driver's virtual memory: addresses are reserved once and handles mapped into them,
//! at several addresses where that is asked for.

#![expect(unsafe_code, reason = "calls the driver")]

use std::sync::Arc;

use lowtide_core::Bytes;

use crate::cuda::context::{Context, settle};
use crate::cuda::driver::{self, Access, Driver, Handle, Properties};
use crate::cuda::events::Events;
use crate::error::Error;
use crate::mapper::{Backing, Mapper, source_by_mapper};
use crate::source::{Description, Span};

/// The memory of one device. A [`StreamId`](lowtide_core::StreamId) is the value of a stream's handle (`CUstream`) in the
/// device's primary context, of a stream that is alive; 0 is the default stream.
#[derive(Debug)]
pub struct CudaDevice {
    mapper: Mapper<DeviceMemory>,
}

impl CudaDevice {
    /// The memory of device `ordinal`, which the devices `peers` may use as well. `granularity` is a power of two that
    /// the device's own divides; without one, the device's own is taken.
    pub fn new(ordinal: u32, granularity: Option<Bytes>, peers: &[u32]) -> Result<Self, Error> {
        Self::with_driver(driver::driver()?, ordinal, granularity, peers)
    }

    pub(super) fn with_driver(
        driver: &'static Driver,
        ordinal: u32,
        granularity: Option<Bytes>,
        peers: &[u32],
    ) -> Result<Self, Error> {
        let context = Arc::new(Context::new(driver, ordinal)?);
        if !context.maps_memory()? {
            return Err(Error::Unsupported { what: "mapping memory to chosen addresses", by: context.name() });
        }
        let properties = Properties::device(context.device, context.allows_remote_access()?);
        let granularity = settle_granularity(&context, &properties, granularity)?;
        let mut access = vec![Access::by(context.device)];
        for &peer in peers {
            let peer = context.peer(peer)?;
            if peer != context.device {
                access.push(Access::by(peer));
            }
        }
        let capacity = context.total_memory()?;
        let name = context.name();
        let events = Events::new(Arc::clone(&context));
        let memory = DeviceMemory { events, context, properties, access, granularity, capacity, name };
        Ok(Self { mapper: Mapper::new(memory) })
    }

    /// What the device has left for anyone, by its driver.
    pub fn free_memory(&self) -> Result<Bytes, Error> {
        self.mapper.backing().context.free_memory()
    }

    /// Copies bytes to committed addresses, and waits for it.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let context = self.backed(Span::new(address, Bytes::new(bytes.len() as u64)))?;
        let _entered = context.enter()?;
        // SAFETY: the slice is as long as it says, and the addresses are backed by device memory.
        let code = unsafe { (context.driver.copy_in)(address, bytes.as_ptr().cast(), bytes.len()) };
        context.driver.check("cuMemcpyHtoD", code, None)
    }

    /// Copies bytes from committed addresses.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let context = self.backed(Span::new(address, Bytes::new(bytes.len() as u64)))?;
        let _entered = context.enter()?;
        // SAFETY: the slice is as long as it says, and the addresses are backed by device memory.
        let code = unsafe { (context.driver.copy_out)(bytes.as_mut_ptr().cast(), address, bytes.len()) };
        context.driver.check("cuMemcpyDtoH", code, None)
    }

    /// The context, where there is memory under all of `span`.
    fn backed(&self, span: Span) -> Result<&Context, Error> {
        if self.mapper.is_backed(span) {
            Ok(&self.mapper.backing().context)
        } else {
            Err(Error::BadSpan { span, why: "have no memory in some place" })
        }
    }
}

source_by_mapper!(CudaDevice);

fn settle_granularity(context: &Context, properties: &Properties, asked: Option<Bytes>) -> Result<Bytes, Error> {
    let mut own = 0;
    // SAFETY: both pointers live through the call; 0 asks for the smallest.
    let code = unsafe { (context.driver.granularity)(&raw mut own, properties, 0) };
    context.driver.check("cuMemGetAllocationGranularity", code, None)?;
    let own = Bytes::new(own as u64);
    match asked {
        None => Ok(own),
        Some(asked) if asked.get().is_power_of_two() && asked >= own => Ok(asked),
        Some(asked) => Err(Error::Refused {
            call: "cuMemGetAllocationGranularity",
            why: format!("a granularity of {asked} is no power of two of at least {own}"),
        }),
    }
}

#[derive(Debug)]
struct DeviceMemory {
    events: Events,
    context: Arc<Context>,
    properties: Properties,
    access: Vec<Access>,
    granularity: Bytes,
    capacity: Bytes,
    name: String,
}

impl Backing for DeviceMemory {
    type Handle = Handle;
    type Queue = Events;

    fn describe(&self) -> Description {
        Description {
            name: self.name.clone(),
            granularity: self.granularity,
            capacity: Some(self.capacity),
            aliases: true,
            relocates: true,
            host_visible: false,
            queued: true,
            fallbacks: Vec::new(),
        }
    }

    fn queue(&self) -> &Events {
        &self.events
    }

    fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        let _entered = self.context.enter()?;
        let mut address = 0;
        let align = size(self.granularity);
        // SAFETY: the pointer lives through the call; the driver chooses the addresses.
        let code = unsafe { (self.context.driver.reserve)(&raw mut address, size(bytes), align, 0, 0) };
        self.context.driver.check("cuMemAddressReserve", code, Some(bytes)).map_err(|error| match error {
            Error::OutOfMemory { asked } => Error::OutOfAddresses { asked },
            other => other,
        })?;
        Ok(address)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the mapper releases only what `reserve` gave, once, with nothing mapped in it.
        let code = unsafe { (self.context.driver.release)(span.start, size(span.bytes)) };
        self.context.driver.check("cuMemAddressFree", code, None)
    }

    fn create(&self, bytes: Bytes) -> Result<Handle, Error> {
        let _entered = self.context.enter()?;
        let mut handle = 0;
        // SAFETY: both pointers live through the call.
        let code = unsafe { (self.context.driver.create)(&raw mut handle, size(bytes), &raw const self.properties, 0) };
        self.context.driver.check("cuMemCreate", code, Some(bytes))?;
        Ok(handle)
    }

    fn destroy(&self, handle: Handle, _bytes: Bytes) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the mapper gives a handle back once, when it has no address any more.
        let code = unsafe { (self.context.driver.destroy)(handle) };
        self.context.driver.check("cuMemRelease", code, None)
    }

    fn map(&self, handle: Handle, span: Span) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        let driver = self.context.driver;
        // SAFETY: the mapper maps live handles of this size at its own vacant addresses.
        let code = unsafe { (driver.map)(span.start, size(span.bytes), 0, handle, 0) };
        driver.check("cuMemMap", code, Some(span.bytes))?;
        // SAFETY: the list lives through the call; the handle was mapped there just now.
        let code =
            unsafe { (driver.set_access)(span.start, size(span.bytes), self.access.as_ptr(), self.access.len()) };
        driver.check("cuMemSetAccess", code, Some(span.bytes)).inspect_err(|_| {
            // SAFETY: nobody knows of the mapping yet.
            settle(|| unsafe { (driver.unmap)(span.start, size(span.bytes)) });
        })
    }

    fn unmap(&self, _handle: Handle, span: Span) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the mapper unmaps only what it mapped.
        let code = unsafe { (self.context.driver.unmap)(span.start, size(span.bytes)) };
        self.context.driver.check("cuMemUnmap", code, None)
    }
}

fn size(bytes: Bytes) -> usize {
    bytes.get() as usize
}
