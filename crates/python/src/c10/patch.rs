//! Replaces functions of one object: its table is copied, the copy is changed, and the object is pointed at the copy.
//! Other objects of its class are not touched.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{DataPtr, Deleter, Object};
use crate::system::is_in_a_library;

/// What a table of C++ begins with, before its functions: an offset and the type.
const BEFORE: usize = 2;

/// The most functions that are copied.
const MOST: usize = 256;

/// The places of functions that all allocators have.
pub(crate) struct Slot;

impl Slot {
    pub(crate) const ALLOCATE: usize = 2;
    pub(crate) const RAW_DELETER: usize = 4;
    /// How many of them there are; those of derived classes follow.
    pub(crate) const FIRST_OF_SUBCLASSES: usize = 6;
    /// `HostAllocator::record_event`.
    pub(crate) const RECORD_EVENT: usize = 6;
    /// `HostAllocator::empty_cache`.
    pub(crate) const EMPTY_CACHE: usize = 7;
}

/// The table that an object had before it was changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original(*const *const c_void);

// SAFETY: tables are constants of a library, or copies of them that nobody changes.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

impl Original {
    /// The table of an object now.
    pub(crate) fn of(object: Object) -> Self {
        Self(table(object).load(Ordering::Acquire).cast())
    }

    /// The function at `slot`, which the table has.
    pub(crate) fn function(self, slot: usize) -> *const c_void {
        // SAFETY: the caller knows the class of the object.
        unsafe { self.0.add(slot).read() }
    }

    /// `allocate`. Throws what the allocator throws.
    pub(crate) fn allocate(self, object: Object, bytes: usize) -> DataPtr {
        type Allocate = unsafe extern "C-unwind" fn(*mut c_void, usize) -> DataPtr;
        // SAFETY: the third function of every allocator. Results of more than 16 bytes are returned in the same way by C
        // and C++.
        let allocate: Allocate = unsafe { std::mem::transmute(self.function(Slot::ALLOCATE)) };
        // SAFETY: the object is one of the class that the table is of.
        unsafe { allocate(object.pointer(), bytes) }
    }

    /// `raw_deleter`.
    pub(crate) fn raw_deleter(self, object: Object) -> Option<Deleter> {
        type RawDeleter = unsafe extern "C-unwind" fn(*mut c_void) -> Option<Deleter>;
        // SAFETY: the fifth function of every allocator.
        let get: RawDeleter = unsafe { std::mem::transmute(self.function(Slot::RAW_DELETER)) };
        // SAFETY: as in `allocate`.
        unsafe { get(object.pointer()) }
    }

    pub(super) fn offset_to_top(self) -> isize {
        // SAFETY: every table of C++ has this word.
        unsafe { self.0.sub(2).cast::<isize>().read() }
    }

    pub(super) fn type_info(self) -> *const c_void {
        // SAFETY: every table of C++ has this word.
        unsafe { self.0.sub(1).read() }
    }

    /// How many functions follow, or a few more: up to the first word that is not in a library.
    pub(super) fn slots(self) -> usize {
        (0..MOST).find(|&slot| !is_in_a_library(self.function(slot))).unwrap_or(MOST)
    }
}

/// Points `object` at a copy of its table in which `functions` stand at their places.
pub(crate) fn patch(object: Object, original: Original, functions: &[(usize, *const c_void)]) {
    let length = BEFORE + original.slots();
    // SAFETY: that many words were looked at just now.
    let words = unsafe { std::slice::from_raw_parts(original.0.sub(BEFORE), length) };
    let mut copy = words.to_vec();
    for &(slot, function) in functions {
        copy[BEFORE + slot] = function;
    }
    // The copy may be copied in turn: its end has to be seen.
    copy.push(std::ptr::null());
    // The copy is in use as long as the object, which is as long as the program.
    let copy = copy.leak().as_mut_ptr();
    // SAFETY: the words before the functions are part of the copy.
    table(object).store(unsafe { copy.add(BEFORE) }.cast(), Ordering::Release);
}

/// The first word of an object with virtual functions.
fn table(object: Object) -> &'static AtomicPtr<c_void> {
    // SAFETY: the object lives as long as the program, and begins with the pointer to its table.
    unsafe { &*object.pointer().cast::<AtomicPtr<c_void>>() }
}
