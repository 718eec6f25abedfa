//! What the loader knows: which function a name means for those who come after this library, and where one lies.

#![expect(unsafe_code, reason = "asks the loader")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;

/// What `name` means for those who come after this library; null for nothing. The loader may allocate.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    next_of(name.as_ptr())
}

/// The same, for other libraries. The loader looks at where the call to it comes from: it is made here, and not left for a jump.
pub(crate) extern "C" fn next_of(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's word: the name ends in zero.
    black_box(unsafe { libc::dlsym(libc::RTLD_NEXT, name) })
}

/// Whether a function lies in the C library itself. Names do not tell: tcmalloc and mimalloc define those that begin with
/// `__libc` too.
pub(crate) fn is_in_c_library(function: *mut c_void) -> bool {
    lie_together(function, libc::gnu_get_libc_version as *mut c_void)
}

/// Whether two functions lie in the same library or program.
pub(crate) fn lie_together(one: *mut c_void, other: *mut c_void) -> bool {
    const APART: c_int = 1;
    const TOGETHER: c_int = 2;
    unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, pair: *mut c_void) -> c_int {
        // SAFETY: the loader's word: the object has these headers; and the pair is the caller's below.
        let (base, parts, [one, other]) = unsafe {
            let object = &*object;
            let parts = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
            (object.dlpi_addr, parts, pair.cast::<[u64; 2]>().read())
        };
        let holds = |address: u64| {
            let starts = |part: &libc::Elf64_Phdr| base.wrapping_add(part.p_vaddr);
            parts.iter().any(|part| part.p_type == libc::PT_LOAD && address.wrapping_sub(starts(part)) < part.p_memsz)
        };
        match (holds(one), holds(other)) {
            (false, false) => 0,
            (true, true) => TOGETHER,
            _ => APART,
        }
    }
    let mut pair = [one as u64, other as u64];
    // SAFETY: the function is called for one object after the other, and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut pair).cast()) == TOGETHER }
}
