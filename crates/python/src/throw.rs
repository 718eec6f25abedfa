//! PyTorch takes a null pointer for a block and fails much later, so that a shortage must be thrown, as the C++
//! exception that PyTorch turns into `torch.OutOfMemoryError`. What is needed for that is exported by PyTorch's own
//! libraries and by the C++ runtime under them.

#![expect(unsafe_code, reason = "throws C++ exceptions")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};

use crate::system;

/// Larger than any exception of PyTorch.
const EXCEPTION_BYTES: usize = 2048;

/// Where the table of a class's virtual functions begins, behind two words about the class.
const HEADER: usize = 2;

const C10: &CStr = c"libc10.so";
const RUNTIME: &CStr = c"libstdc++.so.6";

/// The libraries in which the class may be, by version.
const HOMES: [&CStr; 3] = [C10, c"libc10_cuda.so", c"libtorch_python.so"];

/// `c10::SourceLocation`.
#[repr(C)]
struct SourceLocation {
    function: *const c_char,
    file: *const c_char,
    line: u32,
}

/// `std::string` of libstdc++, its text outside.
#[repr(C)]
struct Text {
    start: *mut u8,
    length: usize,
    capacity: usize,
    unused: usize,
}

type New = unsafe extern "C" fn(usize) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);
type Construct = unsafe extern "C-unwind" fn(*mut c_void, SourceLocation, *mut Text);
type Throw = unsafe extern "C-unwind" fn(*mut c_void, *const c_void, *const c_void) -> !;
type Fail = unsafe extern "C-unwind" fn(*const c_char, *const c_char, u32, *const c_char) -> !;

struct Tools {
    allocate_exception: New,
    throw: Throw,
    new: New,
    delete: Delete,
    construct: Construct,
    class: NonNull<c_void>,
    functions: NonNull<c_void>,
}

impl Tools {
    fn find() -> Option<Self> {
        let anywhere = |symbol: &CStr| HOMES.iter().find_map(|library| system::find_in(library, symbol));
        let error = c"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
        // SAFETY: the symbols are functions of these types: the first four by the C++ runtime's interface, the last by
        // PyTorch's header.
        unsafe {
            Some(Self {
                allocate_exception: function(system::find_in(RUNTIME, c"__cxa_allocate_exception")?),
                throw: function(system::find_in(RUNTIME, c"__cxa_throw")?),
                new: function(system::find_in(RUNTIME, c"_Znwm")?),
                delete: function(system::find_in(RUNTIME, c"_ZdlPv")?),
                construct: function(system::find_in(C10, error)?),
                class: anywhere(c"_ZTIN3c1016OutOfMemoryErrorE")?,
                functions: anywhere(c"_ZTVN3c1016OutOfMemoryErrorE")?,
            })
        }
    }
}

/// A symbol as a function.
///
/// # Safety
/// `F` is the type of the function that the symbol is.
unsafe fn function<F: Copy>(symbol: NonNull<c_void>) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: both are pointers; the caller knows the type.
    unsafe { mem::transmute_copy(&symbol) }
}

/// Whether [`out_of_memory`] raises `torch.OutOfMemoryError`.
pub(crate) fn is_exact() -> bool {
    Tools::find().is_some()
}

/// Throws `torch.OutOfMemoryError`, or a `RuntimeError` where PyTorch does not have what is needed. Returns only where it
/// has not even that.
pub(crate) fn out_of_memory(message: &str) {
    let Some(tools) = Tools::find() else { return failure(message) };
    // SAFETY: the functions are what their names say. The text is made with the runtime's own `new`, so that whoever owns
    // it last can give it back; the exception is large enough for the object that is constructed in it, and its class and
    // functions are those of one class that adds nothing to the one constructed.
    unsafe {
        let start = (tools.new)(message.len() + 1).cast::<u8>();
        ptr::copy_nonoverlapping(message.as_ptr(), start, message.len());
        start.add(message.len()).write(0);
        let mut text = Text { start, length: message.len(), capacity: message.len(), unused: 0 };
        let exception = (tools.allocate_exception)(EXCEPTION_BYTES);
        ptr::write_bytes(exception.cast::<MaybeUninit<u8>>(), 0, EXCEPTION_BYTES);
        let location = SourceLocation { function: c"alloc".as_ptr(), file: c"lowtide".as_ptr(), line: 0 };
        (tools.construct)(exception, location, &raw mut text);
        let inside = (&raw mut text.capacity).cast::<u8>();
        if text.start != inside {
            (tools.delete)(text.start.cast());
        }
        let functions = tools.functions.cast::<*const c_void>().add(HEADER);
        exception.cast::<*const c_void>().write(functions.as_ptr().cast());
        // The first function is the destructor.
        (tools.throw)(exception, tools.class.as_ptr(), functions.read());
    }
}

/// Throws PyTorch's general exception, a `RuntimeError`. Returns only where there is none.
pub(crate) fn failure(message: &str) {
    let Some(symbol) = system::find_in(C10, c"_ZN3c106detail14torchCheckFailEPKcS2_jS2_") else { return };
    let message: Vec<u8> = message.bytes().filter(|&byte| byte != 0).chain([0]).collect();
    // SAFETY: the symbol is that function by PyTorch's header. It copies the texts, which end in zero.
    unsafe {
        let fail: Fail = function(symbol);
        fail(c"alloc".as_ptr(), c"lowtide".as_ptr(), 0, message.as_ptr().cast());
    }
}
