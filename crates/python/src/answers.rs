//! A question that PyTorch asks of its own allocator and refuses to ask of another: how large a workspace may be, on
//! which `torch.backends.cudnn.benchmark` depends. The object that stands for Lowtide's allocator is taught to answer.

#![expect(unsafe_code, reason = "stands in for a function of a C++ object")]

use std::ffi::c_void;

use pyo3::prelude::*;

use crate::c10::{Mangled, Object, Original, Refusal, cuda_slot, patch};
use crate::fleet::fleet;
use crate::guard::DEVICES;

const CACHE_INFO: Mangled = c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9cacheInfoEaPm";

/// Lets PyTorch ask how large a workspace may be. Lowtide's is PyTorch's allocator by now.
#[pyfunction]
pub(crate) fn answer_workspaces(python: Python<'_>) -> PyResult<()> {
    teach().map_err(|refusal| refusal.raise(python))
}

fn teach() -> Result<(), Refusal> {
    let object = Object::cuda()?;
    let slot = cuda_slot(CACHE_INFO)?;
    patch(object, Original::of(object), &[(slot, cache_info as *const c_void)]);
    Ok(())
}

/// Stands in for `void cacheInfo(DeviceIndex device, size_t* largest)`: what the device has and the program does not
/// hold.
extern "C" fn cache_info(_this: *mut c_void, device: i8, largest: *mut usize) {
    let room = fleet().zip(u32::try_from(device).ok()).and_then(|(fleet, device)| {
        let (capacity, stats) = DEVICES.call(|| (fleet.capacity(device).ok().flatten(), fleet.stats(device)))?;
        let allocated = stats.map(|stats| stats.allocated).unwrap_or_default();
        Some(capacity?.saturating_sub(allocated).get() as usize)
    });
    if !largest.is_null() {
        // SAFETY: PyTorch passes a word of its own, in which it has put what it knows.
        unsafe { largest.write(largest.read().max(room.unwrap_or(0))) };
    }
}
