//! The slabs themselves, behind the lock: which blocks are free, which of those have pages, and how many of these pages stay.

#![expect(unsafe_code, reason = "gives pages of free blocks back")]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::process::evidence;
use crate::report::notice::give_up;
use crate::serving::cache;
use crate::serving::classes::{CLASSES, size_of_class};
use crate::serving::slabs::{
    ALIGN, ARE_HUGE, BASE, CLASS, HIGHER, IS_LOCKED, IS_ON_TRIAL, IS_QUIET, IS_SPARSE, MOST, SLAB, begin, class,
    is_closed, is_on_trial, is_over, is_sparse, range, retire,
};
use crate::system::memory;

/// This part of what is in use may be resident in free blocks, and this much in any case: where blocks are touched densely, and where they are not.
const DENSE_PART: usize = 16;
const SPARSE_PART: usize = 4;
const LEAST_FREE: usize = 1 << 20;

/// How much of a block is resident is looked up for one of so many that come back, and of so many at first.
const LOOKED_AT: usize = 64;
const LOOKED_AT_FIRST: usize = 4;
/// Until so many blocks have come back, slabs are on trial.
const TRIAL: usize = 512;
/// Before so many are back, nothing is known.
const FEW: usize = 64;
/// Blocks of which less is resident are sparse.
const SPARSE: usize = WHOLE / 8 * 3;

/// Where blocks are dense and, of so many bytes that came back, more than this part went back to the system, glibc does better: it joins free
/// blocks to others of the sizes that are asked for.
const WINDOW: usize = 8 << 20;
const PURGED_PART: usize = 64;

/// Where all but one of so many who come here find another thread, glibc does better too: it has several heaps. While slabs are on trial threads keep
/// nothing for themselves, and it is not counted.
const CONTENDED_OF: usize = 16;

/// How many runs of free blocks go back to the system at a time: a thread that frees one waits for them.
const RUNS_AT_ONCE: usize = 16;

/// What all of a block is, in the unit of [`Slabs::density`].
const WHOLE: usize = 1 << 10;

/// A slab of a class.
struct Slab {
    number: usize,
    /// Its free blocks: those with pages, and those without.
    touched: u128,
    clean: u128,
}

/// The slabs of a class.
struct Class {
    slabs: Vec<Slab>,
    /// No slab before these has a free block, with pages or without.
    first_touched: usize,
    first_clean: usize,
    /// How many free blocks have pages.
    touched: usize,
}

pub(super) struct Slabs {
    classes: [Class; CLASSES],
    /// Which of its class a slab is.
    pub(super) positions: Vec<usize>,
    /// Bytes of blocks that are handed out, and of free blocks that may have pages.
    pub(super) live: usize,
    pub(super) blocks: usize,
    touched: usize,
    /// The most that both were together.
    most: usize,
    /// How much of a free block is resident, as seen lately, and how many have come back.
    density: usize,
    returned: usize,
    /// Since these were last compared: bytes that have come back, resident ones that went back to the system, how often a thread was here, and
    /// how often it found another.
    recent: usize,
    purged: usize,
    pub(super) entered: usize,
    pub(super) contended: usize,
    /// Whether there may be another slab.
    may_open: bool,
}

/// All free blocks of a new slab.
const fn all(class: usize) -> u128 {
    u128::MAX >> (MOST - SLAB / size_of_class(class))
}

/// The block at an offset in a slab of a class, by multiplication: blocks and slabs are whole pages, and those are few.
#[inline]
const fn place(offset: usize, class: usize) -> usize {
    const RECIPROCALS: [u32; CLASSES] = {
        let mut reciprocals = [0; CLASSES];
        let mut class = 0;
        while class < CLASSES {
            reciprocals[class] = (1_u32 << 20).div_ceil((size_of_class(class) / ALIGN) as u32);
            class += 1;
        }
        reciprocals
    };
    (offset / ALIGN * RECIPROCALS[class] as usize) >> 20
}

impl Class {
    const fn new() -> Self {
        Self { slabs: Vec::new(), first_touched: 0, first_clean: 0, touched: 0 }
    }

    /// The slab and the place in it of a free block that has pages.
    fn take_touched(&mut self) -> Option<(usize, usize)> {
        if self.touched == 0 {
            return None;
        }
        let found = self.slabs.get_mut(self.first_touched..)?.iter_mut().position(|slab| slab.touched != 0)?;
        self.first_touched += found;
        let slab = self.slabs.get_mut(self.first_touched)?;
        let place = slab.touched.trailing_zeros() as usize;
        slab.touched &= slab.touched - 1;
        self.touched -= 1;
        Some((slab.number, place))
    }

    /// The same of one that has none.
    fn take_clean(&mut self) -> Option<(usize, usize)> {
        let rest = self.slabs.get_mut(self.first_clean..)?;
        let Some(found) = rest.iter_mut().position(|slab| slab.clean != 0) else {
            self.first_clean = self.slabs.len();
            return None;
        };
        self.first_clean += found;
        let slab = self.slabs.get_mut(self.first_clean)?;
        let place = slab.clean.trailing_zeros() as usize;
        slab.clean &= slab.clean - 1;
        Some((slab.number, place))
    }
}

impl Slabs {
    pub(super) const fn new() -> Self {
        Self {
            classes: [const { Class::new() }; CLASSES],
            positions: Vec::new(),
            live: 0,
            blocks: 0,
            touched: 0,
            most: 0,
            density: WHOLE,
            returned: 0,
            recent: 0,
            purged: 0,
            entered: 0,
            contended: 0,
            may_open: true,
        }
    }

    pub(super) fn take(&mut self, class: usize) -> Option<usize> {
        let higher = class..(class + 1 + HIGHER).min(CLASSES);
        let touched = higher.clone().find_map(|class| Some((class, self.classes.get_mut(class)?.take_touched()?)));
        let (class, (slab, place)) = match touched {
            Some((class, found)) => {
                self.touched -= size_of_class(class);
                (class, found)
            }
            None => (class, self.classes.get_mut(class)?.take_clean().or_else(|| self.open(class))?),
        };
        let bytes = size_of_class(class);
        self.live += bytes;
        self.blocks += 1;
        if let Some(more) = (self.live + self.touched).checked_sub(self.most) {
            self.most += more;
            cache::replaces(more);
        }
        Some(BASE.load(Ordering::Relaxed) + slab * SLAB + place * bytes)
    }

    /// Makes a slab for a class, and takes its first block.
    #[cold]
    fn open(&mut self, class: usize) -> Option<(usize, usize)> {
        if !self.may_open || IS_QUIET.load(Ordering::Relaxed) || !begin() {
            return None;
        }
        let number = if let Some(number) = self.unused_slab() {
            number
        } else {
            let number = self.positions.len();
            let start = BASE.load(Ordering::Relaxed) + number * SLAB;
            // SAFETY: nobody has had these addresses.
            if (number + 1) * SLAB > range().len() || !unsafe { memory::open(start as *mut c_void, SLAB) } {
                self.may_open = false;
                return None;
            }
            self.positions.push(0);
            number
        };
        CLASS[number].store(class as u8, Ordering::Relaxed);
        let slabs = &mut self.classes[class].slabs;
        self.positions[number] = slabs.len();
        slabs.push(Slab { number, touched: 0, clean: all(class) });
        self.classes[class].take_clean()
    }

    /// A slab without blocks or pages, which its class gives up.
    fn unused_slab(&mut self) -> Option<usize> {
        for (class, Class { slabs, first_touched, first_clean, .. }) in self.classes.iter_mut().enumerate() {
            let Some(place) = slabs.iter().position(|slab| slab.clean == all(class)) else { continue };
            let number = slabs.swap_remove(place).number;
            if let Some(moved) = slabs.get(place) {
                self.positions[moved.number] = place;
            }
            *first_touched = 0;
            *first_clean = 0;
            return Some(number);
        }
        None
    }

    pub(super) fn put(&mut self, block: usize) {
        let offset = block.wrapping_sub(BASE.load(Ordering::Relaxed));
        let (number, class) = (offset / SLAB, class(block as *const c_void));
        let bytes = size_of_class(class);
        let place = place(offset % SLAB, class);
        let Some(of_class) = self.positions.get(number).copied() else { return accuse(block) };
        let Some(slab) = self.classes[class].slabs.get_mut(of_class) else { return accuse(block) };
        let bit = 1_u128 << place;
        if place * bytes != offset % SLAB || all(class) & bit == 0 || (slab.touched | slab.clean) & bit != 0 {
            return accuse(block);
        }
        slab.touched |= bit;
        let class = &mut self.classes[class];
        class.touched += 1;
        class.first_touched = class.first_touched.min(of_class);
        self.live -= bytes;
        self.blocks -= 1;
        self.touched += bytes;
        self.returned += 1;
        if IS_QUIET.load(Ordering::Relaxed) {
            return;
        }
        self.recent += bytes;
        if self.returned.is_multiple_of(if self.returned < TRIAL { LOOKED_AT_FIRST } else { LOOKED_AT }) {
            self.look_at(block..block + bytes);
        }
        if self.recent >= WINDOW && self.returned >= FEW {
            self.compare();
        }
        if self.returned == TRIAL {
            IS_ON_TRIAL.store(false, Ordering::Relaxed);
            (self.entered, self.contended) = (0, 0);
            if !is_sparse() && ARE_HUGE.load(Ordering::Relaxed) {
                retire();
            }
        }
        let may_be_free = match (is_over(), is_sparse()) {
            (true, _) => 0,
            // As much again as may be resident of what is in use, and that twice, is enough in any case.
            (false, true) => (self.live / SPARSE_PART).min(2 * (self.live / WHOLE * self.density)).max(LEAST_FREE),
            (false, false) => (self.live / DENSE_PART).max(LEAST_FREE),
        };
        if self.resident() > may_be_free {
            self.purge(may_be_free / 4 * 3, RUNS_AT_ONCE);
        }
    }

    /// Whether slabs serve the program well.
    #[cold]
    fn compare(&mut self) {
        let goes_back = !is_sparse() && self.purged > self.recent / PURGED_PART;
        if !is_over() && (goes_back || !is_on_trial() && self.contended > self.entered - self.entered / CONTENDED_OF) {
            retire();
        }
        (self.recent, self.purged, self.entered, self.contended) = (0, 0, 0, 0);
    }

    /// How much of the free blocks is resident.
    fn resident(&self) -> usize {
        self.touched / WHOLE * self.density
    }

    /// Sees how much of free blocks is resident, and says how many bytes.
    fn look_at(&mut self, pages: Range<usize>) -> usize {
        if is_closed() {
            // It does not matter any more, and the process may have forbidden the call.
            return pages.len();
        }
        let resident = memory::resident(pages.clone()).unwrap_or(pages.len());
        self.density = (7 * self.density + WHOLE * resident / pages.len()) / 8;
        IS_SPARSE.store(self.returned >= FEW && self.density < SPARSE, Ordering::Relaxed);
        resident
    }

    /// Gives pages of free blocks back until no more than so much is resident in them, or so many runs of blocks have gone; says how many bytes
    /// the blocks had.
    #[cold]
    pub(super) fn purge(&mut self, most: usize, runs: usize) -> usize {
        let before = self.touched;
        for _ in 0..runs {
            if self.touched == 0 || most > 0 && self.resident() <= most {
                break;
            }
            let fullest = (0..CLASSES).max_by_key(|&class| self.classes[class].touched * size_of_class(class));
            let Some(class) = fullest else { break };
            let bytes = size_of_class(class);
            let Class { slabs, first_clean, touched, .. } = &mut self.classes[class];
            let Some(at) = slabs.iter().rposition(|slab| slab.touched != 0) else { break };
            let slab = &mut slabs[at];
            // The highest blocks that lie side by side.
            let end = MOST - slab.touched.leading_zeros() as usize;
            let count = (slab.touched << (MOST - end)).leading_ones() as usize;
            let bits = (u128::MAX >> (MOST - count)) << (end - count);
            slab.touched &= !bits;
            slab.clean |= bits;
            *touched -= count;
            *first_clean = (*first_clean).min(at);
            let start = BASE.load(Ordering::Relaxed) + slab.number * SLAB + (end - count) * bytes;
            let pages = start..start + count * bytes;
            let resident = self.look_at(pages.clone());
            self.purged += resident;
            self.may_open = true;
            self.touched -= count * bytes;
            evidence::discarded(resident as u64);
            // SAFETY: these blocks are free.
            unsafe {
                if IS_LOCKED.load(Ordering::Relaxed) {
                    memory::unlock(pages.clone());
                }
                memory::discard(pages);
            }
        }
        before - self.touched
    }

    pub(super) fn close(&mut self) {
        self.purge(0, usize::MAX);
        for (class, Class { slabs, .. }) in self.classes.iter_mut().enumerate() {
            let bytes = size_of_class(class);
            for slab in slabs {
                let start = BASE.load(Ordering::Relaxed) + slab.number * SLAB;
                while slab.clean != 0 {
                    // Those that lie side by side.
                    let first = slab.clean.trailing_zeros() as usize;
                    let count = (slab.clean >> first).trailing_ones() as usize;
                    slab.clean &= !((u128::MAX >> (MOST - count)) << first);
                    // SAFETY: these blocks are free, and are not handed out any more.
                    unsafe { memory::shut((start + first * bytes) as *mut c_void, count * bytes) };
                }
            }
        }
    }
}

#[cold]
fn accuse(block: usize) {
    give_up(format_args!("free(): double free or invalid pointer {:p}", block as *const c_void));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_division() {
        for class in 0..CLASSES {
            for offset in (0..SLAB).step_by(ALIGN) {
                assert_eq!(place(offset, class), offset / size_of_class(class), "{class} {offset}");
            }
        }
    }
}
