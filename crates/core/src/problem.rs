//! What is to be planned: buffers, their lifetimes, and what binds them to each other and to their pools.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Align, Bytes, Gap, Lifetime};

/// A buffer's place in [`Problem::buffers`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BufferIndex(u32);

impl BufferIndex {
    /// The index `position`; a problem holds at most 2^32-1 buffers.
    pub fn new(position: usize) -> Self {
        Self(u32::try_from(position).expect("a problem holds at most 2^32-1 buffers"))
    }

    /// The position in a vector.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// A pool's place in [`Problem::pools`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PoolIndex(u32);

impl PoolIndex {
    /// The index `position`.
    pub fn new(position: usize) -> Self {
        Self(u32::try_from(position).expect("a problem holds at most 2^32-1 pools"))
    }

    /// The position in a vector.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// How long a buffer is meant to stay, which decides the end of the pool it is placed at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Outlives the step: persistent buffers fill the start of a pool, and no unpinned transient one lies below
    /// an unpinned persistent one.
    Persistent,
    /// Comes and goes within the step.
    #[default]
    Transient,
}

/// One tensor's storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Its name, unique within the problem.
    pub id: Box<str>,
    /// How many bytes it holds.
    pub size: Bytes,
    /// What its offset must be a multiple of.
    pub align: Align,
    /// When it is alive.
    pub lifetime: Lifetime,
    /// When, within its life, it lets go of its memory; in order and apart from each other.
    pub gaps: Vec<Gap>,
    /// The offset it must have.
    pub pin: Option<Bytes>,
    /// How long it is meant to stay.
    pub class: Class,
    /// The pool it belongs to.
    pub pool: PoolIndex,
}

impl Buffer {
    /// A transient buffer of the first pool without gaps, pin or alignment.
    pub fn new(id: impl Into<Box<str>>, lifetime: Lifetime, size: Bytes) -> Self {
        Self {
            id: id.into(),
            size,
            align: Align::ONE,
            lifetime,
            gaps: Vec::new(),
            pin: None,
            class: Class::Transient,
            pool: PoolIndex::default(),
        }
    }

    /// Whether it holds a byte at any time: not where it has none, never lives, or lets go of all for all its life.
    pub fn takes_bytes(&self) -> bool {
        let mut covered = self.lifetime.lower;
        for gap in &self.gaps {
            if gap.lifetime.lower > covered || gap.window.is_some_and(|window| window.lower < window.upper) {
                return self.size > Bytes::ZERO;
            }
            covered = gap.lifetime.upper;
        }
        covered < self.lifetime.upper && self.size > Bytes::ZERO
    }
}

/// A memory that buffers are placed in: a device, a bank, a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Its name, unique within the problem.
    pub name: Box<str>,
    /// The bytes it has; unlimited when absent.
    pub capacity: Option<Bytes>,
    /// Where buffers go that do not fit; without one, a problem that does not fit has no plan.
    pub spill: Option<PoolIndex>,
}

impl Pool {
    /// An unlimited pool.
    pub fn unlimited(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), capacity: None, spill: None }
    }
}

/// Buffers to place, and what binds them. Call [`check`](Self::check) on one that was made from input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What is to be placed.
    pub buffers: Vec<Buffer>,
    /// Sets of buffers that must share an address, such as a tensor and its reshaped views. What they hold at
    /// the same time is the same memory.
    pub aliases: Vec<Vec<BufferIndex>>,
    /// Pairs that may have exactly the same address although both are alive, or none of each other's bytes: an
    /// operator that can write its output over its input.
    pub may_share: Vec<(BufferIndex, BufferIndex)>,
    /// Lists of buffers that must lie one behind the other in this order. The first begins at a multiple of the
    /// alignments of all members and their aliases, each other at the first offset after the one before that suits
    /// it and its aliases.
    pub contiguous: Vec<Vec<BufferIndex>>,
    /// The memories; at least one.
    pub pools: Vec<Pool>,
}

/// Why a problem cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// Two buffers have the same name.
    #[error("buffer `{id}` appears twice")]
    DuplicateBuffer {
        /// The name.
        id: Box<str>,
        /// Where it appears again.
        second: BufferIndex,
    },
    /// All sizes, pins and alignments together do not fit 63 bits.
    #[error("sizes and offsets add up to more than 2^63-1 bytes at buffer `{id}`")]
    TooLarge {
        /// The buffer at which the sum overflows.
        id: Box<str>,
        /// Its place.
        buffer: BufferIndex,
    },
    /// A lifetime ends before it begins.
    #[error("buffer `{id}` ends at {upper}, before it begins at {lower}")]
    BackwardLifetime {
        /// The buffer.
        id: Box<str>,
        /// Its place.
        buffer: BufferIndex,
        /// Where it begins.
        lower: i64,
        /// Where it ends.
        upper: i64,
    },
    /// A gap lies outside its buffer's life, before the gap in front of it, or keeps bytes the buffer has not.
    #[error(
        "buffer `{id}` has a gap {gap} that is empty, out of order, outside its lifetime or keeps bytes it does not have"
    )]
    BadGap {
        /// The buffer.
        id: Box<str>,
        /// Its place.
        buffer: BufferIndex,
        /// The gap.
        gap: Lifetime,
    },
    /// A pin is no multiple of the alignment.
    #[error("buffer `{id}` is pinned at {}, which is no multiple of its alignment {align}", .pin.get())]
    MisalignedPin {
        /// The buffer.
        id: Box<str>,
        /// Its place.
        buffer: BufferIndex,
        /// The offset asked for.
        pin: Bytes,
        /// The alignment.
        align: Align,
    },
    /// A relation or a buffer names something that is not there.
    #[error("{what} names {kind} number {index}, but there are only {count}")]
    UnknownIndex {
        /// The relation, such as `alias set 3`.
        what: String,
        /// `buffer` or `pool`.
        kind: &'static str,
        /// The number named.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// There is no pool, or two of one name, or spills that lead back to where they began.
    #[error("{0}")]
    BadPools(String),
    /// Relations that no plan can satisfy together, or that name a buffer twice.
    #[error("{what} cannot hold: {why}")]
    Contradiction {
        /// The relation, such as `alias set 3`.
        what: String,
        /// What speaks against it.
        why: String,
    },
}

impl Problem {
    /// Buffers in one unlimited pool with nothing that binds them.
    pub fn new(buffers: Vec<Buffer>) -> Self {
        Self {
            buffers,
            aliases: Vec::new(),
            may_share: Vec::new(),
            contiguous: Vec::new(),
            pools: vec![Pool::unlimited("main")],
        }
    }

    /// The bytes that all buffers would take without any reuse.
    pub fn naive(&self) -> Bytes {
        self.buffers.iter().map(|buffer| buffer.size).sum()
    }

    /// The buffer at `index`.
    pub fn buffer(&self, index: BufferIndex) -> &Buffer {
        &self.buffers[index.get()]
    }

    /// What the offset of each buffer that has aliases must be a multiple of for all of them: the least common
    /// multiple of their alignments, by buffer. A checked problem has one.
    pub fn alias_aligns(&self) -> HashMap<BufferIndex, Align> {
        let mut aligns = HashMap::new();
        for set in &self.aliases {
            let join = |common: Align, &member: &BufferIndex| common.checked_common_multiple(self.buffer(member).align);
            if let Some(common) = set.iter().try_fold(Align::ONE, join) {
                aligns.extend(set.iter().map(|&member| (member, common)));
            }
        }
        aligns
    }

    /// All indices in order.
    pub fn indices(&self) -> impl Iterator<Item = BufferIndex> + use<> {
        (0..self.buffers.len()).map(BufferIndex::new)
    }

    /// The same question about some of the buffers: relations keep those members that are left.
    ///
    /// `keep` lists the buffers to keep, each once; the answer has them in that order.
    #[must_use]
    pub fn restricted(&self, keep: &[BufferIndex]) -> Self {
        let position: HashMap<BufferIndex, BufferIndex> =
            keep.iter().enumerate().map(|(new, &old)| (old, BufferIndex::new(new))).collect();
        let keep_sets = |sets: &[Vec<BufferIndex>]| -> Vec<Vec<BufferIndex>> {
            sets.iter()
                .map(|set| set.iter().filter_map(|old| position.get(old).copied()).collect())
                .filter(|set: &Vec<BufferIndex>| set.len() > 1)
                .collect()
        };
        Self {
            buffers: keep.iter().map(|&old| self.buffer(old).clone()).collect(),
            aliases: keep_sets(&self.aliases),
            may_share: self
                .may_share
                .iter()
                .filter_map(|(a, b)| Some((*position.get(a)?, *position.get(b)?)))
                .collect(),
            contiguous: keep_sets(&self.contiguous),
            pools: self.pools.clone(),
        }
    }
}
