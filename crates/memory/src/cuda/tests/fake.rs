//! A driver made of functions of this file, for the thread that runs a test. It accounts strictly, and any of its calls
//! can be told to fail.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use crate::cuda::driver::{
    Access, Address, Code, Context, Device, Driver, Event, Handle, OUT_OF_MEMORY, Properties, SUCCESS, Stream,
};

pub(super) const GRANULE: usize = 64 << 10;
const INVALID: Code = 1;
const NOT_READY: Code = 600;

#[derive(Default)]
pub(super) struct Fake {
    pub(super) calls: u64,
    /// The number of the call that fails, with what code, and whether all that follow do.
    pub(super) fails: Option<(u64, Code, bool)>,
    pub(super) devices: c_int,
    pub(super) memory: usize,
    /// Calls that a correct caller does not make.
    pub(super) wrong: Vec<&'static str>,
    pub(super) reserved: BTreeMap<u64, usize>,
    /// Contents, and whether the handle was given back while it was mapped.
    pub(super) handles: BTreeMap<u64, (Vec<u8>, bool)>,
    /// Handle, size, and for how many devices it is accessible.
    pub(super) mapped: BTreeMap<u64, (u64, usize, usize)>,
    pub(super) registered: BTreeSet<u64>,
    pub(super) events: BTreeSet<usize>,
    pub(super) events_made: usize,
    pub(super) events_pending: BTreeSet<usize>,
    pub(super) contexts: i32,
    pub(super) stack: Vec<usize>,
    pub(super) pushes: usize,
    /// Streams that are captured.
    pub(super) captured: BTreeSet<usize>,
    /// The rule for captures that this thread has.
    pub(super) capture: c_int,
    next: u64,
}

thread_local! {
    static FAKE: RefCell<Fake> = RefCell::default();
}

/// Looks at, or changes, this thread's driver.
pub(super) fn with<T>(look: impl FnOnce(&mut Fake) -> T) -> T {
    FAKE.with_borrow_mut(look)
}

/// Forgets everything that this thread's driver knows: one device with room for 64 granules.
pub(super) fn reset() -> &'static Driver {
    with(|fake| *fake = Fake { devices: 1, memory: 64 * GRANULE, next: 1, ..Fake::default() });
    &FUNCTIONS
}

impl Fake {
    /// What a program that has dropped everything has left behind.
    pub(super) fn leaks(&self) -> Vec<String> {
        let mut leaks: Vec<String> = self.wrong.iter().map(|&wrong| wrong.to_owned()).collect();
        let counts = [
            ("reservations", self.reserved.len()),
            ("handles", self.handles.len()),
            ("mappings", self.mapped.len()),
            ("registrations", self.registered.len()),
            ("events", self.events.len()),
            ("contexts", self.contexts as usize),
            ("pushed contexts", self.stack.len()),
        ];
        leaks.extend(counts.iter().filter(|(_, count)| *count != 0).map(|(name, count)| format!("{count} {name}")));
        leaks
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn wrong(&mut self, what: &'static str) -> Code {
        self.wrong.push(what);
        INVALID
    }

    fn held(&self) -> usize {
        self.handles.values().map(|(contents, _)| contents.len()).sum()
    }

    fn sweep(&mut self, handle: u64) {
        let mapped = self.mapped.values().any(|&(other, ..)| other == handle);
        if !mapped && self.handles.get(&handle).is_some_and(|&(_, released)| released) {
            self.handles.remove(&handle);
        }
    }
}

fn call(body: impl FnOnce(&mut Fake) -> Code) -> Code {
    with(|fake| {
        fake.calls += 1;
        match fake.fails {
            Some((number, code, after)) if fake.calls == number || after && fake.calls > number => code,
            _ => body(fake),
        }
    })
}

/// A call that writes its result to `place`.
unsafe fn give<T>(place: *mut T, body: impl FnOnce(&mut Fake) -> Result<T, Code>) -> Code {
    call(|fake| match body(fake) {
        Ok(value) => {
            // SAFETY: the caller passes a place for the result, as to the real driver.
            unsafe { place.write(value) };
            SUCCESS
        }
        Err(code) => code,
    })
}

unsafe extern "C" fn init(_: c_uint) -> Code {
    call(|_| SUCCESS)
}

unsafe extern "C" fn error_string(_: Code, text: *mut *const c_char) -> Code {
    // SAFETY: see `give`.
    unsafe { text.write(c"a made-up reason".as_ptr()) };
    SUCCESS
}

unsafe extern "C" fn device_count(count: *mut c_int) -> Code {
    // SAFETY: see `give`.
    unsafe { give(count, |fake| Ok(fake.devices)) }
}

unsafe extern "C" fn device(device: *mut Device, ordinal: c_int) -> Code {
    // SAFETY: see `give`.
    unsafe { give(device, |_| Ok(ordinal + 40)) }
}

unsafe extern "C" fn device_name(text: *mut c_char, _: c_int, _: Device) -> Code {
    // SAFETY: see `give`; the caller's text is long enough.
    call(|_| unsafe {
        ptr::copy_nonoverlapping(c"Made-up".as_ptr(), text, 8);
        SUCCESS
    })
}

unsafe extern "C" fn device_memory(total: *mut usize, _: Device) -> Code {
    // SAFETY: see `give`.
    unsafe { give(total, |fake| Ok(fake.memory)) }
}

unsafe extern "C" fn device_attribute(value: *mut c_int, _: c_int, _: Device) -> Code {
    // SAFETY: see `give`.
    unsafe { give(value, |_| Ok(1)) }
}

unsafe extern "C" fn can_access_peer(can: *mut c_int, peer: Device, device: Device) -> Code {
    // SAFETY: see `give`.
    unsafe { give(can, |_| Ok(c_int::from(peer != device && peer != 42))) }
}

unsafe extern "C" fn retain_context(context: *mut Context, device: Device) -> Code {
    let retain = |fake: &mut Fake| {
        fake.contexts += 1;
        Ok(ptr::without_provenance_mut(device as usize))
    };
    // SAFETY: see `give`.
    unsafe { give(context, retain) }
}

unsafe extern "C" fn release_context(_: Device) -> Code {
    call(|fake| {
        fake.contexts -= 1;
        SUCCESS
    })
}

unsafe extern "C" fn current_context(context: *mut Context) -> Code {
    // SAFETY: see `give`.
    unsafe { give(context, |fake| Ok(ptr::without_provenance_mut(fake.stack.last().copied().unwrap_or(0)))) }
}

unsafe extern "C" fn push_context(context: Context) -> Code {
    call(|fake| {
        fake.stack.push(context.addr());
        fake.pushes += 1;
        SUCCESS
    })
}

unsafe extern "C" fn pop_context(context: *mut Context) -> Code {
    let pop = |fake: &mut Fake| fake.stack.pop().map(ptr::without_provenance_mut).ok_or(INVALID);
    // SAFETY: see `give`.
    unsafe { give(context, pop) }
}

unsafe extern "C" fn drain() -> Code {
    call(|_| SUCCESS)
}

/// Never refused, and not counted: it does nothing to memory.
unsafe extern "C" fn stream_capturing(stream: Stream, status: *mut c_int) -> Code {
    // SAFETY: the caller gives a pointer to its own variable.
    with(|fake| unsafe { status.write(c_int::from(fake.captured.contains(&stream.addr()))) });
    SUCCESS
}

unsafe extern "C" fn stream_finish(_: Stream) -> Code {
    call(|_| SUCCESS)
}

/// As above.
unsafe extern "C" fn exchange_capture(mode: *mut c_int) -> Code {
    // SAFETY: the caller gives a pointer to its own variable.
    with(|fake| unsafe { std::ptr::swap(&raw mut fake.capture, mode) });
    SUCCESS
}

unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> Code {
    // SAFETY: see `give`.
    unsafe { give(free, |fake| Ok(fake.memory - fake.held())).max(give(total, |fake| Ok(fake.memory))) }
}

unsafe extern "C" fn granularity(granule: *mut usize, _: *const Properties, _: c_int) -> Code {
    // SAFETY: see `give`.
    unsafe { give(granule, |_| Ok(GRANULE)) }
}

unsafe extern "C" fn reserve(address: *mut Address, size: usize, align: usize, _: Address, _: c_ulonglong) -> Code {
    let reserve = |fake: &mut Fake| {
        let start = (fake.number() << 40).next_multiple_of(align as u64);
        fake.reserved.insert(start, size);
        Ok(start)
    };
    // SAFETY: see `give`.
    unsafe { give(address, reserve) }
}

unsafe extern "C" fn release(address: Address, size: usize) -> Code {
    call(|fake| {
        if fake.mapped.range(address..address + size as u64).next().is_some() {
            return fake.wrong("addresses given back with something mapped");
        }
        match fake.reserved.remove(&address) {
            Some(reserved) if reserved == size => SUCCESS,
            _ => fake.wrong("addresses given back that were not reserved"),
        }
    })
}

unsafe extern "C" fn create(handle: *mut Handle, size: usize, _: *const Properties, _: c_ulonglong) -> Code {
    let create = |fake: &mut Fake| {
        if fake.held() + size > fake.memory {
            return Err(OUT_OF_MEMORY);
        }
        let number = fake.number();
        fake.handles.insert(number, (vec![0; size], false));
        Ok(number)
    };
    // SAFETY: see `give`.
    unsafe { give(handle, create) }
}

unsafe extern "C" fn destroy(handle: Handle) -> Code {
    call(|fake| {
        match fake.handles.get_mut(&handle) {
            Some((_, released)) if !*released => *released = true,
            _ => return fake.wrong("a handle given back that was not made"),
        }
        fake.sweep(handle);
        SUCCESS
    })
}

unsafe extern "C" fn map(address: Address, size: usize, _: usize, handle: Handle, _: c_ulonglong) -> Code {
    call(|fake| {
        if fake.mapped.range(address..address + size as u64).next().is_some() {
            return fake.wrong("mapped over a mapping");
        }
        match fake.handles.get(&handle) {
            Some((contents, false)) if contents.len() == size => fake.mapped.insert(address, (handle, size, 0)),
            _ => return fake.wrong("mapped what is no handle of that size"),
        };
        SUCCESS
    })
}

unsafe extern "C" fn unmap(address: Address, size: usize) -> Code {
    call(|fake| match fake.mapped.remove(&address) {
        Some((handle, mapped, _)) if mapped == size => {
            fake.sweep(handle);
            SUCCESS
        }
        _ => fake.wrong("unmapped what was not mapped"),
    })
}

unsafe extern "C" fn set_access(address: Address, _: usize, _: *const Access, count: usize) -> Code {
    call(|fake| match fake.mapped.get_mut(&address) {
        Some((.., access)) => {
            *access = count;
            SUCCESS
        }
        None => fake.wrong("access to what is not mapped"),
    })
}

unsafe extern "C" fn event_create(event: *mut Event, _: c_uint) -> Code {
    let create = |fake: &mut Fake| {
        let number = fake.number() as usize;
        fake.events.insert(number);
        fake.events_made += 1;
        Ok(ptr::without_provenance_mut(number))
    };
    // SAFETY: see `give`.
    unsafe { give(event, create) }
}

unsafe extern "C" fn event_destroy(event: Event) -> Code {
    call(|fake| if fake.events.remove(&event.addr()) { SUCCESS } else { fake.wrong("an event destroyed twice") })
}

unsafe extern "C" fn event_record(event: Event, _: Stream) -> Code {
    call(|fake| {
        fake.events_pending.insert(event.addr());
        if fake.events.contains(&event.addr()) { SUCCESS } else { fake.wrong("an event that is none") }
    })
}

unsafe extern "C" fn event_query(event: Event) -> Code {
    call(|fake| if fake.events_pending.contains(&event.addr()) { NOT_READY } else { SUCCESS })
}

unsafe extern "C" fn event_wait(event: Event) -> Code {
    call(|fake| {
        fake.events_pending.remove(&event.addr());
        SUCCESS
    })
}

unsafe extern "C" fn stream_wait(_: Stream, event: Event, _: c_uint) -> Code {
    call(|fake| if fake.events.contains(&event.addr()) { SUCCESS } else { fake.wrong("an event that is none") })
}

unsafe extern "C" fn register(start: *mut c_void, _: usize, _: c_uint) -> Code {
    call(|fake| if fake.registered.insert(start.addr() as u64) { SUCCESS } else { fake.wrong("registered twice") })
}

unsafe extern "C" fn unregister(start: *mut c_void) -> Code {
    call(|fake| if fake.registered.remove(&(start.addr() as u64)) { SUCCESS } else { fake.wrong("unregistered twice") })
}

unsafe extern "C" fn copy_in(to: Address, from: *const c_void, size: usize) -> Code {
    call(|fake| {
        let Some((&start, &(handle, ..))) = fake.mapped.range(..=to).next_back() else { return INVALID };
        let Some((contents, _)) = fake.handles.get_mut(&handle) else { return INVALID };
        let offset = (to - start) as usize;
        // SAFETY: the caller passes as many bytes as it says.
        contents[offset..offset + size].copy_from_slice(unsafe { std::slice::from_raw_parts(from.cast(), size) });
        SUCCESS
    })
}

unsafe extern "C" fn copy_out(to: *mut c_void, from: Address, size: usize) -> Code {
    call(|fake| {
        let Some((&start, &(handle, ..))) = fake.mapped.range(..=from).next_back() else { return INVALID };
        let Some((contents, _)) = fake.handles.get(&handle) else { return INVALID };
        // SAFETY: the caller passes room for as many bytes as it says.
        unsafe { ptr::copy_nonoverlapping(contents[(from - start) as usize..].as_ptr(), to.cast(), size) };
        SUCCESS
    })
}

pub(super) static FUNCTIONS: Driver = Driver {
    init,
    error_string,
    device_count,
    device,
    device_name,
    device_memory,
    device_attribute,
    can_access_peer,
    retain_context,
    release_context,
    current_context,
    push_context,
    pop_context,
    drain,
    exchange_capture,
    memory_info,
    granularity,
    reserve,
    release,
    create,
    destroy,
    map,
    unmap,
    set_access,
    event_create,
    event_destroy,
    event_record,
    event_query,
    event_wait,
    stream_wait,
    stream_finish,
    stream_capturing,
    register,
    unregister,
    copy_in,
    copy_out,
};
