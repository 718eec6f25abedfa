//! The slabs themselves, behind the lock: which blocks are free, which of those have pages, and how many of these pages stay.

#![expect(unsafe_code, reason = "gives pages of free blocks back")]

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::process::evidence;
use crate::report::notice::give_up;
use crate::serving::classes::{CLASSES, Kind, LARGE_CLASSES, size_of_class};
use crate::serving::leaving;
use crate::serving::slabs::suitability::{Phase, Standing, Suitability};
use crate::serving::slabs::{
    ALIGN, ARE_HUGE, BASE, CLASS, HIGHER, IS_LOCKED, IS_QUIET, MOST, PIECE, PIECES_OF_LARGER, begin, class, range,
    retire,
};
use crate::system::memory;

/// Where all but one of so many who come here find another thread, glibc does better: it has several heaps. That is looked at when so many have
/// come. While slabs are on trial threads keep nothing for themselves, and it is not counted.
const CONTENDED_OF: usize = 16;
const ENTERED: usize = 512;

/// How many runs of free blocks go back to the system at a time: a thread that frees one waits for them.
const RUNS_AT_ONCE: usize = 16;

/// A slab of a class.
struct Slab {
    /// Its first piece.
    piece: usize,
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

/// What there is of a kind.
struct Amounts {
    suitability: Suitability,
    /// Bytes of blocks that are handed out, and of free blocks that may have pages.
    live: usize,
    touched: usize,
    /// The most that both were together.
    most: usize,
    /// Whether there may be another slab.
    may_open: bool,
    /// How often a thread came with a block, and how often it found another thread, since that was last looked at.
    entered: usize,
    contended: usize,
}

pub(super) struct Slabs {
    classes: [Class; CLASSES],
    kinds: [Amounts; 2],
    /// Which of its class the slab of each piece is.
    positions: Vec<usize>,
    pub(super) blocks: usize,
    /// Whether the thread that is here has found another.
    pub(super) is_contended: bool,
}

/// How many pieces a slab of a class has.
const fn pieces_of(class: usize) -> usize {
    match Kind::of(class) {
        Kind::Large => 1,
        Kind::Larger => PIECES_OF_LARGER,
    }
}

/// All free blocks of a new slab.
const fn all(class: usize) -> u128 {
    u128::MAX >> (MOST - pieces_of(class) * PIECE / size_of_class(class))
}

/// The block at an offset in a slab of a class, by multiplication: blocks and slabs are whole pages, and those are few.
#[inline]
const fn place(offset: usize, class: usize) -> usize {
    const SHIFT: usize = 26;
    const RECIPROCALS: [u32; CLASSES] = {
        let mut reciprocals = [0; CLASSES];
        let mut class = 0;
        while class < CLASSES {
            reciprocals[class] = (1_u32 << SHIFT).div_ceil((size_of_class(class) / ALIGN) as u32);
            class += 1;
        }
        reciprocals
    };
    (offset / ALIGN * RECIPROCALS[class] as usize) >> SHIFT
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
        Some((slab.piece, place))
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
        Some((slab.piece, place))
    }
}

impl Slabs {
    pub(super) const fn new() -> Self {
        const fn amounts(kind: Kind) -> Amounts {
            Amounts {
                suitability: Suitability::new(kind),
                live: 0,
                touched: 0,
                most: 0,
                may_open: true,
                entered: 0,
                contended: 0,
            }
        }
        Self {
            classes: [const { Class::new() }; CLASSES],
            kinds: [amounts(Kind::Large), amounts(Kind::Larger)],
            positions: Vec::new(),
            blocks: 0,
            is_contended: false,
        }
    }

    /// How many pieces are slabs.
    pub(super) fn pieces(&self) -> usize {
        self.positions.len()
    }

    /// Bytes of blocks that are handed out.
    pub(super) fn live(&self) -> usize {
        self.kinds.iter().map(|of_kind| of_kind.live).sum()
    }

    pub(super) fn take(&mut self, class: usize) -> Option<usize> {
        let of_kind = if Kind::of(class) == Kind::Large { LARGE_CLASSES } else { CLASSES };
        let higher = class..(class + 1 + HIGHER).min(of_kind);
        let touched = higher.clone().find_map(|class| Some((class, self.classes.get_mut(class)?.take_touched()?)));
        let (class, (piece, place)) = match touched {
            Some((class, found)) => {
                self.kinds[Kind::of(class) as usize].touched -= size_of_class(class);
                (class, found)
            }
            None => (class, self.classes.get_mut(class)?.take_clean().or_else(|| self.open(class))?),
        };
        let bytes = size_of_class(class);
        let kind = Kind::of(class);
        let of_kind = &mut self.kinds[kind as usize];
        of_kind.live += bytes;
        self.blocks += 1;
        if let Some(more) = (of_kind.live + of_kind.touched).checked_sub(of_kind.most) {
            of_kind.most += more;
            if !IS_QUIET.load(Ordering::Relaxed) {
                leaving::replaces(kind, more);
            }
        }
        Some(BASE.load(Ordering::Relaxed) + piece * PIECE + place * bytes)
    }

    /// Makes a slab for a class, and takes its first block.
    #[cold]
    fn open(&mut self, class: usize) -> Option<(usize, usize)> {
        let of_kind = &mut self.kinds[Kind::of(class) as usize];
        if !of_kind.may_open || IS_QUIET.load(Ordering::Relaxed) || !begin() {
            return None;
        }
        let count = pieces_of(class);
        let piece = if let Some(piece) = self.unused_slab(count) {
            piece
        } else {
            let piece = self.positions.len();
            let start = BASE.load(Ordering::Relaxed) + piece * PIECE;
            // SAFETY: nobody has had these addresses.
            if (piece + count) * PIECE > range().len() || !unsafe { memory::open(start as *mut c_void, count * PIECE) }
            {
                self.kinds[Kind::of(class) as usize].may_open = false;
                return None;
            }
            self.positions.resize(piece + count, 0);
            piece
        };
        let slabs = &mut self.classes[class].slabs;
        CLASS[piece..piece + count].iter().for_each(|of_piece| of_piece.store(class as u8, Ordering::Relaxed));
        self.positions[piece..piece + count].fill(slabs.len());
        slabs.push(Slab { piece, touched: 0, clean: all(class) });
        self.classes[class].take_clean()
    }

    /// The first piece of a slab of so many, without blocks or pages, which its class gives up.
    fn unused_slab(&mut self, pieces: usize) -> Option<usize> {
        for (class, Class { slabs, first_touched, first_clean, .. }) in self.classes.iter_mut().enumerate() {
            if pieces_of(class) != pieces {
                continue;
            }
            let Some(place) = slabs.iter().position(|slab| slab.clean == all(class)) else { continue };
            let piece = slabs.swap_remove(place).piece;
            if let Some(moved) = slabs.get(place) {
                self.positions[moved.piece..moved.piece + pieces].fill(place);
            }
            *first_touched = 0;
            *first_clean = 0;
            return Some(piece);
        }
        None
    }

    pub(super) fn put(&mut self, block: usize) {
        let class = class(block as *const c_void);
        let bytes = size_of_class(class);
        let piece = block.wrapping_sub(BASE.load(Ordering::Relaxed)) / PIECE;
        let Some(at) = self.positions.get(piece).copied() else { return accuse(block) };
        let Some(slab) = self.classes[class].slabs.get_mut(at) else { return accuse(block) };
        let offset = block.wrapping_sub(BASE.load(Ordering::Relaxed) + slab.piece * PIECE);
        let place = place(offset, class);
        let bit = 1_u128 << (place % MOST);
        if place * bytes != offset || all(class) & bit == 0 || (slab.touched | slab.clean) & bit != 0 {
            return accuse(block);
        }
        slab.touched |= bit;
        let of_class = &mut self.classes[class];
        of_class.touched += 1;
        of_class.first_touched = of_class.first_touched.min(at);
        self.blocks -= 1;
        let kind = Kind::of(class);
        let of_kind = &mut self.kinds[kind as usize];
        of_kind.live -= bytes;
        of_kind.touched += bytes;
        if IS_QUIET.load(Ordering::Relaxed) {
            return;
        }
        let was = Standing::of(kind).phase();
        of_kind.suitability.see(block..block + bytes, ARE_HUGE.load(Ordering::Relaxed));
        let phase = Standing::of(kind).phase();
        of_kind.entered += 1;
        of_kind.contended += usize::from(self.is_contended);
        if phase != was || of_kind.entered >= ENTERED {
            let is_contended = of_kind.contended > of_kind.entered - of_kind.entered / CONTENDED_OF;
            if (was, phase, is_contended) == (Phase::Serving, Phase::Serving, true) {
                retire(kind);
            }
            (of_kind.entered, of_kind.contended) = (0, 0);
        }
        let may_be_free = if phase == Phase::Closed { 0 } else { of_kind.suitability.may_be_free(of_kind.live) };
        if of_kind.suitability.resident(of_kind.touched) > may_be_free {
            self.purge(kind, may_be_free / 4 * 3, RUNS_AT_ONCE);
        }
    }

    /// Gives the pages of all free blocks back, and says how many bytes the blocks had.
    pub(super) fn purge_all(&mut self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.purge(kind, 0, usize::MAX)).sum()
    }

    /// Gives pages of free blocks of a kind back until no more than so much is resident in them, or so many runs of blocks have gone; says how many
    /// bytes the blocks had.
    #[cold]
    fn purge(&mut self, kind: Kind, most: usize, runs: usize) -> usize {
        let of_kind = &mut self.kinds[kind as usize];
        let before = of_kind.touched;
        for _ in 0..runs {
            if of_kind.touched == 0 || most > 0 && of_kind.suitability.resident(of_kind.touched) <= most {
                break;
            }
            let fullest = (0..CLASSES)
                .filter(|&class| Kind::of(class) == kind)
                .max_by_key(|&class| self.classes[class].touched * size_of_class(class));
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
            let start = BASE.load(Ordering::Relaxed) + slab.piece * PIECE + (end - count) * bytes;
            let pages = start..start + count * bytes;
            of_kind.may_open = true;
            of_kind.touched -= count * bytes;
            evidence::discarded(of_kind.suitability.goes_back(pages.clone()) as u64);
            // SAFETY: these blocks are free.
            unsafe {
                if IS_LOCKED.load(Ordering::Relaxed) {
                    memory::unlock(pages.clone());
                }
                memory::discard(pages);
            }
        }
        before - of_kind.touched
    }

    pub(super) fn close(&mut self) {
        self.purge_all();
        for (class, Class { slabs, .. }) in self.classes.iter_mut().enumerate() {
            let bytes = size_of_class(class);
            for slab in slabs {
                let start = BASE.load(Ordering::Relaxed) + slab.piece * PIECE;
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
            for offset in (0..pieces_of(class) * PIECE).step_by(ALIGN) {
                assert_eq!(place(offset, class), offset / size_of_class(class), "{class} {offset}");
            }
        }
    }
}
