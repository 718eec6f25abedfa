//! The driver's functions, found in its library when the program runs: nothing of CUDA is needed to build this crate.
//! They are a plain table, so that tests can put functions of their own in it.

#![expect(unsafe_code, reason = "loads the driver's library")]

use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;
use lowtide_core::options::CUDA_DRIVER;
use lowtide_core::{Bytes, StreamId};

use crate::error::Error;

/// What a driver call says of itself.
pub(super) type Code = c_int;
pub(super) type Device = c_int;
pub(super) type Context = *mut c_void;
pub(super) type Stream = *mut c_void;
pub(super) type Event = *mut c_void;
pub(super) type Address = c_ulonglong;
pub(super) type Handle = c_ulonglong;

pub(super) const SUCCESS: Code = 0;
pub(super) const OUT_OF_MEMORY: Code = 2;
pub(super) const NO_DEVICE: Code = 100;

/// A variable that names another library than the system's `libcuda.so.1`.
pub(super) const VARIABLE: &str = CUDA_DRIVER.variable();

/// A stream's number is its handle.
pub(super) fn handle(stream: StreamId) -> Stream {
    ptr::without_provenance_mut(stream.0 as usize)
}

/// Where memory is: `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

impl Location {
    pub(super) fn device(device: Device) -> Self {
        Self { kind: 1, id: device }
    }
}

/// What a handle is made of: `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties {
    kind: c_int,
    exported: c_int,
    location: Location,
    windows: usize,
    compressed: u8,
    remote_access: u8,
    usage: u16,
    reserved: [u8; 4],
}

impl Properties {
    /// Memory of a device; other machines' network cards may read it where the device can let them.
    pub(super) fn device(device: Device, remote_access: bool) -> Self {
        Self {
            kind: 1,
            exported: 0,
            location: Location::device(device),
            windows: 0,
            compressed: 0,
            remote_access: u8::from(remote_access),
            usage: 0,
            reserved: [0; 4],
        }
    }
}

/// Who may use an address: `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    location: Location,
    flags: c_int,
}

impl Access {
    /// A device that may read and write.
    pub(super) fn by(device: Device) -> Self {
        Self { location: Location::device(device), flags: 3 }
    }
}

macro_rules! driver {
    ($($field:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions that this crate calls.
        #[derive(Debug)]
        pub(crate) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> Code,)*
        }

        impl Driver {
            fn resolve(library: &Library) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the driver's header declares the symbol with these arguments.
                    $($field: *unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> Code>($symbol) }
                        .map_err(|_| format!("its library has no `{}`, so it is too old or no driver", $symbol))?,)*
                })
            }
        }
    };
}

driver! {
    init = "cuInit" (c_uint);
    error_string = "cuGetErrorString" (Code, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device = "cuDeviceGet" (*mut Device, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, Device);
    device_memory = "cuDeviceTotalMem_v2" (*mut usize, Device);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, Device);
    can_access_peer = "cuDeviceCanAccessPeer" (*mut c_int, Device, Device);
    retain_context = "cuDevicePrimaryCtxRetain" (*mut Context, Device);
    release_context = "cuDevicePrimaryCtxRelease_v2" (Device);
    current_context = "cuCtxGetCurrent" (*mut Context);
    push_context = "cuCtxPushCurrent_v2" (Context);
    pop_context = "cuCtxPopCurrent_v2" (*mut Context);
    drain = "cuCtxSynchronize" ();
    exchange_capture = "cuThreadExchangeStreamCaptureMode" (*mut c_int);
    memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    granularity = "cuMemGetAllocationGranularity" (*mut usize, *const Properties, c_int);
    reserve = "cuMemAddressReserve" (*mut Address, usize, usize, Address, c_ulonglong);
    release = "cuMemAddressFree" (Address, usize);
    create = "cuMemCreate" (*mut Handle, usize, *const Properties, c_ulonglong);
    destroy = "cuMemRelease" (Handle);
    map = "cuMemMap" (Address, usize, usize, Handle, c_ulonglong);
    unmap = "cuMemUnmap" (Address, usize);
    set_access = "cuMemSetAccess" (Address, usize, *const Access, usize);
    event_create = "cuEventCreate" (*mut Event, c_uint);
    event_destroy = "cuEventDestroy_v2" (Event);
    event_record = "cuEventRecord" (Event, Stream);
    event_query = "cuEventQuery" (Event);
    event_wait = "cuEventSynchronize" (Event);
    stream_wait = "cuStreamWaitEvent" (Stream, Event, c_uint);
    stream_finish = "cuStreamSynchronize" (Stream);
    stream_capturing = "cuStreamIsCapturing" (Stream, *mut c_int);
    register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    unregister = "cuMemHostUnregister" (*mut c_void);
    copy_in = "cuMemcpyHtoD_v2" (Address, *const c_void, usize);
    copy_out = "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
}

/// The driver of this machine, which is loaded once and stays.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let loaded = load(named.as_deref())?;
    Ok(DRIVER.get_or_init(|| loaded))
}

fn load(named: Option<&OsStr>) -> Result<Driver, Error> {
    let no_driver = |error: String| Error::NoDriver {
        why: match named {
            Some(path) => format!("{error}; {VARIABLE} names `{}`", path.display()),
            None => format!("{error}; set {VARIABLE} if it is elsewhere"),
        },
    };
    let path = named.unwrap_or(OsStr::new("libcuda.so.1"));
    // SAFETY: loading runs the library's own set-up; the library is the driver or what the user named in its place.
    let library = unsafe { Library::new(path) }.map_err(|error| no_driver(reason(&error)))?;
    let driver = Driver::resolve(&library).map_err(no_driver)?;
    // The functions of the table are valid as long as the library is loaded: it never goes.
    std::mem::forget(library);
    driver.start()?;
    Ok(driver)
}

/// An error and what caused it.
fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {}", reason(cause)))
}

impl Driver {
    /// Starts the driver.
    pub(super) fn start(&self) -> Result<(), Error> {
        // SAFETY: the call takes no pointers.
        match unsafe { (self.init)(0) } {
            SUCCESS => Ok(()),
            NO_DEVICE => Err(Error::NoDriver { why: "it is there and finds no device".to_owned() }),
            code => Err(self.refusal("cuInit", code)),
        }
    }

    /// A code as an error; the lack of memory is one only where `asked` says for what.
    pub(super) fn check(&self, call: &'static str, code: Code, asked: Option<Bytes>) -> Result<(), Error> {
        match (code, asked) {
            (SUCCESS, _) => Ok(()),
            (OUT_OF_MEMORY, Some(asked)) => Err(Error::OutOfMemory { asked }),
            _ => Err(self.refusal(call, code)),
        }
    }

    fn refusal(&self, call: &'static str, code: Code) -> Error {
        let mut text = ptr::null();
        // SAFETY: the pointer lives through the call.
        let found = unsafe { (self.error_string)(code, &raw mut text) };
        let why = if found == SUCCESS && !text.is_null() {
            // SAFETY: the driver gave a constant C string.
            format!("{} (error {code})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
        } else {
            format!("error {code}")
        };
        Error::Refused { call, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(path: &str) -> String {
        match load(Some(path.as_ref())) {
            Err(Error::NoDriver { why }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let why = why("/nowhere/libcuda.so.1");
        assert!(why.contains("/nowhere/libcuda.so.1: cannot open") && why.contains(VARIABLE), "{why}");
    }

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no library").unwrap();
        let path = file.path().to_str().unwrap();
        let why = why(path);
        assert!(why.contains(&format!("{path}: ")) && why.contains(VARIABLE), "{why}");
    }

    #[test]
    fn a_library_that_is_no_driver_names_what_is_missing() {
        let why = why("libc.so.6");
        assert!(why.contains("`cuInit`"), "{why}");
    }

    #[test]
    fn structs_are_laid_out_as_the_driver_reads_them() {
        assert_eq!(size_of::<Properties>(), 32);
        assert_eq!(size_of::<Access>(), 12);
        assert_eq!(std::mem::offset_of!(Properties, remote_access), 25);
        assert_eq!(std::mem::offset_of!(Properties, location), 8);
    }
}
