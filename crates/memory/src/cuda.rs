//! Memory of CUDA devices, and host memory pinned for them. The driver is loaded when it is first asked for; without one,
//! every call here is [`Error::NoDriver`] and the rest of the crate works.

mod context;
mod device;
mod driver;
mod events;
mod pinned;
#[cfg(test)]
mod tests;

use lowtide_core::StreamId;

use crate::error::Error;

pub use device::CudaDevice;
pub use pinned::CudaPinned;

/// The devices, other than `ordinal` itself, that can reach its memory.
pub fn peers_of(ordinal: u32) -> Result<Vec<u32>, Error> {
    let driver = driver::driver()?;
    let context = context::Context::new(driver, ordinal)?;
    let others = (0..context::count(driver)?).filter(|&other| other != ordinal);
    Ok(others.filter(|&other| context.peer(other).is_ok()).collect())
}

/// Whether `stream` of device `ordinal` is being captured.
pub fn is_captured(ordinal: u32, stream: StreamId) -> Result<bool, Error> {
    let context = context::Context::new(driver::driver()?, ordinal)?;
    let entered = context.enter()?;
    context.is_captured(&entered, stream)
}

/// Waits for all work that is queued on `stream` of device `ordinal`.
pub fn finish(ordinal: u32, stream: StreamId) -> Result<(), Error> {
    context::Context::new(driver::driver()?, ordinal)?.finish(stream)
}

/// How many devices the driver finds.
pub fn device_count() -> Result<u32, Error> {
    context::count(driver::driver()?)
}
