//! Whether slabs suit the program's blocks of a kind: how much of a block is resident when it comes back, and how much goes back and forth
//! between slabs and the system. At first they are on trial.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::serving::classes::Kind;
use crate::serving::slabs::{IS_QUIET, retire};
use crate::system::memory;

/// What all of a block is, in the unit of a density.
const WHOLE: usize = 1 << 16;
/// Blocks of which less is resident are sparse; those of which more is, are dense for certain.
const SPARSE: usize = WHOLE / 8 * 3;
const DENSE: usize = WHOLE / 2;

/// This part of what is in use may be resident in free blocks, and this much in any case: where blocks are touched densely, and where they are not.
const DENSE_PART: usize = 16;
const LEAST_DENSE: usize = 1 << 20;
const SPARSE_PART: usize = 2;
const LEAST_SPARSE: usize = 4 << 20;
/// Where blocks are sparse, no more than so many times what may be resident of those in use: classes have few blocks each, and take turns.
const SPARSE_TIMES: usize = 2;

/// Where blocks are dense and, of so many bytes that came back, more than this part went back to the system, glibc does better: it joins free
/// blocks to others of the sizes that are asked for.
const WINDOW: usize = 8 << 20;
const PURGED_PART: usize = 64;

/// How blocks of a kind are judged.
struct Rules {
    /// Until so many blocks have come back, slabs are on trial.
    trial: usize,
    /// How much of a block is resident is looked up for one of so many that come back, and of so many in the trial; after that, in no more than so
    /// many bytes of it.
    looked_at: usize,
    looked_at_first: usize,
    part: usize,
    /// The density is a mean of about so many, the latest ones counting most.
    mean_of: usize,
    /// Before so many are back, nothing is known.
    few: usize,
    /// Whether slabs may serve dense blocks. Of larger ones, a few touch as many pages as the program has in all, and classes are far apart.
    may_be_dense: bool,
}

const RULES: [Rules; 2] = [
    Rules { trial: 512, looked_at: 64, looked_at_first: 4, part: 1 << 20, mean_of: 16, few: 64, may_be_dense: true },
    Rules { trial: 16, looked_at: 8, looked_at_first: 1, part: 128 << 10, mean_of: 32, few: 4, may_be_dense: false },
];

/// Whether slabs serve blocks of a kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Phase {
    /// A few, because it is not known yet whether slabs suit the program.
    OnTrial,
    /// All.
    Serving,
    /// No new ones.
    Closed,
}

/// What everybody sees of it.
pub(super) struct Standing {
    phase: AtomicU8,
    is_sparse: AtomicBool,
}

static STANDINGS: [Standing; 2] = [const { Standing::new() }; 2];

impl Standing {
    const fn new() -> Self {
        Self { phase: AtomicU8::new(Phase::OnTrial as u8), is_sparse: AtomicBool::new(false) }
    }

    #[inline]
    pub(super) fn of(kind: Kind) -> &'static Self {
        &STANDINGS[kind as usize]
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::OnTrial,
            1 => Phase::Serving,
            _ => Phase::Closed,
        }
    }

    /// Whether little of the program's blocks is resident.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_sparse.load(Ordering::Relaxed)
    }

    /// The trial is over. Slabs may have been closed by now.
    fn open(&self) {
        let (on_trial, serving) = (Phase::OnTrial as u8, Phase::Serving as u8);
        let _ = self.phase.compare_exchange(on_trial, serving, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// No new blocks come from slabs any more.
    pub(super) fn close(&self) {
        self.phase.store(Phase::Closed as u8, Ordering::Relaxed);
    }
}

/// What has been seen of the blocks of a kind.
pub(super) struct Suitability {
    kind: Kind,
    /// How much of a free block is resident, as seen lately, and how many were looked at.
    density: usize,
    looks: usize,
    /// How many have come back.
    returned: usize,
    /// Since these were last compared: bytes that have come back, and resident ones that went back to the system.
    recent: usize,
    purged: usize,
}

impl Suitability {
    pub(super) const fn new(kind: Kind) -> Self {
        Self { kind, density: WHOLE, looks: 0, returned: 0, recent: 0, purged: 0 }
    }

    fn standing(&self) -> &'static Standing {
        Standing::of(self.kind)
    }

    const fn rules(&self) -> &'static Rules {
        &RULES[self.kind as usize]
    }

    /// A block has come back. With `are_huge`, glibc's have huge pages without asking, which is better where all of them is touched.
    pub(super) fn see(&mut self, block: Range<usize>, are_huge: bool) {
        let (standing, rules) = (self.standing(), self.rules());
        self.returned += 1;
        self.recent += block.len();
        if self.returned < rules.trial {
            if self.returned.is_multiple_of(rules.looked_at_first) {
                self.look_at(block);
            }
        } else if self.returned.is_multiple_of(rules.looked_at) {
            self.look_at(self.part(block));
        }
        if self.returned < rules.few || standing.phase() == Phase::Closed {
            return;
        }
        // What was sparse in the trial may seem to be dense by chance.
        let is_dense = if self.returned <= rules.trial { !standing.is_sparse() } else { self.density > DENSE };
        if is_dense && !rules.may_be_dense {
            retire(self.kind);
        } else if self.returned == rules.trial {
            standing.open();
            if !standing.is_sparse() && are_huge {
                retire(self.kind);
            }
        }
        if self.recent >= WINDOW {
            self.compare();
        }
    }

    /// Any part of a block.
    fn part(&self, block: Range<usize>) -> Range<usize> {
        let bytes = self.rules().part.min(block.len());
        let parts = block.len() / bytes;
        let start = block.start + (self.returned.wrapping_mul(0x9e37_79b9) >> 8) % parts * bytes;
        start..start + bytes
    }

    #[cold]
    fn compare(&mut self) {
        if !self.standing().is_sparse() && self.purged > self.recent / PURGED_PART {
            retire(self.kind);
        }
        (self.recent, self.purged) = (0, 0);
    }

    /// Sees how much of free blocks is resident, and says how many bytes.
    fn look_at(&mut self, pages: Range<usize>) -> usize {
        let standing = self.standing();
        if standing.phase() == Phase::Closed || IS_QUIET.load(Ordering::Relaxed) {
            // It does not matter any more, and the process may have forbidden the call.
            return pages.len();
        }
        let resident = memory::resident(pages.clone()).unwrap_or(pages.len());
        self.looks += 1;
        let of = self.looks.min(self.rules().mean_of);
        self.density = ((of - 1) * self.density + WHOLE * resident / pages.len()) / of;
        standing.is_sparse.store(self.returned >= self.rules().few && self.density < SPARSE, Ordering::Relaxed);
        resident
    }

    /// Free blocks are about to go back to the system: how many bytes of them are resident.
    pub(super) fn goes_back(&mut self, pages: Range<usize>) -> usize {
        let resident = self.look_at(pages);
        self.purged += resident;
        resident
    }

    /// How much of so many bytes of free blocks is resident.
    pub(super) fn resident(&self, free: usize) -> usize {
        free / WHOLE * self.density
    }

    /// How much may be resident in free blocks, where so much is in use.
    pub(super) fn may_be_free(&self, live: usize) -> usize {
        if self.standing().is_sparse() {
            (live / SPARSE_PART).min(SPARSE_TIMES * self.resident(live)).max(LEAST_SPARSE)
        } else {
            (live / DENSE_PART).max(LEAST_DENSE)
        }
    }
}
