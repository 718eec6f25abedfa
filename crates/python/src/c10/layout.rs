//! Whether an allocator is laid out as expected: its class by the type information of C++, the places of its functions
//! by functions and tables that PyTorch's libraries export, and what it hands out by asking for a block.

use std::ffi::{CStr, c_void};
use std::ptr;

use super::patch::{Original, Slot};
use super::{Device, Mangled, Object, Refusal};
use crate::system::find_in;

/// What an allocator is expected to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// In words.
    pub(crate) what: &'static str,
    /// The class that it is of, or derived from, by its mangled name.
    pub(crate) class: Mangled,
    /// The kind of device of its blocks.
    pub(crate) device: i8,
    /// How many bytes to ask for when it is tried; with none, no memory is taken.
    pub(crate) trial: usize,
}

impl Family {
    pub(crate) const CPU: Self = Self { what: "a CPU allocator", class: c"N3c109AllocatorE", device: 0, trial: 64 };
    pub(crate) const CUDA: Self = Self {
        what: "a CUDA allocator",
        class: c"N3c104cuda20CUDACachingAllocator13CUDAAllocatorE",
        device: Device::CUDA,
        trial: 0,
    };
    pub(crate) const PINNED: Self =
        Self { what: "an allocator of pinned memory", class: c"N2at13HostAllocatorE", device: 0, trial: 0 };

    /// Looks at an object, and refuses one that is not of this family.
    pub(crate) fn check(&self, object: Object) -> Result<Original, Refusal> {
        check_slots(self.what)?;
        let original = Original::of(object);
        let unexpected = |why: String| Err(Refusal::unexpected(self.what, why));
        if original.offset_to_top() != 0 {
            return unexpected(format!("its table is {} bytes from its start", original.offset_to_top()));
        }
        let classes = classes(original);
        for class in [c"N3c109AllocatorE", self.class] {
            if !classes.contains(&class) {
                let found: Vec<_> = classes.iter().map(|class| class.to_string_lossy()).collect();
                return unexpected(format!("{} is none of its classes: {}", class.to_string_lossy(), found.join(", ")));
            }
        }
        if original.slots() < Slot::FIRST_OF_SUBCLASSES {
            return unexpected(format!("its table has only {} functions", original.slots()));
        }
        Ok(original)
    }

    /// Asks a checked object for a block and gives it back: whether the block is what its own functions say.
    pub(crate) fn try_out(&self, object: Object, original: Original) -> Result<(), Refusal> {
        let deleter = original.raw_deleter(object);
        let block = original.allocate(object, self.trial);
        let alike = block.data == block.context && (block.data.is_null() == (self.trial == 0));
        let freed = deleter.is_some_and(|deleter| {
            block.deleter.is_some_and(|own| ptr::fn_addr_eq(own, deleter)) || block.data.is_null()
        });
        if !alike || !freed || block.device.kind != self.device {
            let why = format!("a block of {} bytes is {block:?}, and its deleter is {deleter:?}", self.trial);
            return Err(Refusal::unexpected(self.what, why));
        }
        if let Some(deleter) = deleter
            && !block.data.is_null()
        {
            // SAFETY: the block is its own context, and this is the function that frees it.
            unsafe { deleter(block.context) };
        }
        Ok(())
    }
}

/// The functions that all allocators have stand where they are expected: the table of the common class says so.
fn check_slots(what: &'static str) -> Result<(), Refusal> {
    let table = find_in(c"libc10.so", c"_ZTVN3c109AllocatorE").ok_or(Refusal::NotLoaded)?;
    let simple =
        find_in(c"libc10.so", c"_ZNK3c109Allocator18is_simple_data_ptrERKNS_7DataPtrE").ok_or(Refusal::NotLoaded)?;
    // SAFETY: a table of C++ has two words before its functions, and this class has at least four of them.
    let words = unsafe { std::slice::from_raw_parts(table.as_ptr().cast::<*const c_void>(), 2 + 6) };
    let (allocate, between, copy) = (words[2 + 2], words[2 + 3], words[2 + 5]);
    if between != simple.as_ptr().cast_const() || allocate != copy || allocate == between {
        return Err(Refusal::unexpected(what, "`is_simple_data_ptr` is not the fourth function of `c10::Allocator`"));
    }
    Ok(())
}

/// Where `symbol`, a function of the one class of CUDA's allocators whose functions are exported, stands in their tables.
pub(crate) fn cuda_slot(symbol: Mangled) -> Result<usize, Refusal> {
    let missing = || format!("no function `{}` is exported", symbol.to_string_lossy());
    slot_of(symbol).ok_or_else(|| Refusal::unexpected(Family::CUDA.what, missing()))
}

fn slot_of(symbol: Mangled) -> Option<usize> {
    const MOST: usize = 96;
    const LIBRARY: &CStr = c"libtorch_cuda.so";
    const TABLE: Mangled = c"_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE";
    let function = find_in(LIBRARY, symbol)?;
    let table = find_in(LIBRARY, TABLE)?.as_ptr().cast::<*const c_void>();
    // SAFETY: the table of a class begins with two words, and goes on to its last function. The loop ends at the function
    // that is looked for, or at a word of zero, which is the first of whatever table is behind it.
    (0..MOST)
        .map(|slot| (slot, unsafe { table.add(2 + slot).read() }))
        .take_while(|(_, word)| !word.is_null())
        .find_map(|(slot, word)| (word == function.as_ptr().cast_const()).then_some(slot))
}

/// The mangled names of the class of an object and of those that it is derived from, the first base of each.
fn classes(original: Original) -> Vec<&'static CStr> {
    /// A class with one base; of one without, the last field is not its own.
    #[repr(C)]
    struct TypeInfo {
        table: *const c_void,
        name: *const libc::c_char,
        base: *const TypeInfo,
    }
    let derived = find_in(c"libstdc++.so.6", c"_ZTVN10__cxxabiv120__si_class_type_infoE");
    let mut names = Vec::new();
    let mut next = original.type_info().cast::<TypeInfo>();
    while !next.is_null() && names.len() < 16 {
        // SAFETY: the word before a table of functions points to type information, and its base to another.
        let (table, name) = unsafe { ((*next).table, (*next).name) };
        // SAFETY: the name of a type is a text that ends in zero and lives as long as the library. The compiler marks the
        // names of local types by a star.
        let name = unsafe { CStr::from_ptr(name.add(usize::from(*name == b'*'.cast_signed()))) };
        names.push(name);
        // The words of a type begin with the address behind the first two of the table of its own class.
        let has_base =
            derived.is_some_and(|derived| table == derived.as_ptr().cast::<*const c_void>().wrapping_add(2).cast());
        // SAFETY: a class with one base has the field.
        next = if has_base { unsafe { (*next).base } } else { ptr::null() };
    }
    names
}
