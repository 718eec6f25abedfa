//! What a program is made of, and how bytes are read as one.

use lowtide_core::{Align, Bytes, StreamId, ThreadId};

use crate::pool::Request;

const MIB: u64 = 1 << 20;

/// A block that is asked for.
pub type Ask = Request;

/// One operation. Blocks are named by their place among those in hand, counted round and round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Takes a block.
    Alloc(Ask),
    /// Takes several of one kind.
    Burst {
        /// Of which kind.
        ask: Ask,
        /// How many.
        count: u8,
    },
    /// Gives one back.
    Free {
        /// Which.
        which: usize,
    },
    /// Gives back every so manieth.
    FreeEvery {
        /// How far they are apart; one and nothing mean all.
        stride: usize,
    },
    /// Uses one on another stream.
    Record {
        /// Which.
        which: usize,
        /// On which stream.
        stream: StreamId,
    },
    /// Looks whether one holds what was written to it.
    Look {
        /// Which.
        which: usize,
    },
    /// Makes a mistake.
    Misuse(Misuse),
    /// Closes a step.
    Step,
    /// Asks memory back.
    Trim,
    /// Lets the device work on.
    Advance {
        /// For how long.
        nanoseconds: u64,
    },
    /// Plays the operations before it again and again, each time as a step of its own that frees what it took.
    Repeat {
        /// How many operations before it; other repeats do not count.
        back: usize,
        /// How often.
        times: u8,
        /// In one of these rounds, one block more is taken.
        odd: u8,
    },
}

/// A call that has to be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// Frees a block that was freed before.
    FreeAgain {
        /// Which of the last ones.
        which: usize,
    },
    /// Frees an address inside a block.
    FreeInside {
        /// Which block.
        which: usize,
        /// How far inside.
        offset: u64,
    },
    /// Frees an address of nobody.
    FreeWild {
        /// Which.
        address: u64,
    },
    /// Records a use of a block that was freed before.
    RecordFreed {
        /// Which of the last ones.
        which: usize,
    },
}

/// Operations in a row.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Program {
    /// The operations.
    pub ops: Vec<Op>,
}

impl Program {
    /// The program that some bytes are: every string of them is one.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut reader = Reader { bytes };
        let mut ops = Vec::new();
        while !reader.bytes.is_empty() {
            ops.push(reader.op());
        }
        Self { ops }
    }
}

/// Bytes from the front; behind the end there are zeros.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn index(&mut self) -> usize {
        usize::from(self.byte())
    }

    fn double(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    fn op(&mut self) -> Op {
        match self.byte() % 32 {
            0..=11 => Op::Alloc(self.ask()),
            12 => Op::Burst { ask: self.ask(), count: self.byte() % 16 + 1 },
            13..=19 => Op::Free { which: self.index() },
            20 => Op::FreeEvery { stride: self.index() % 8 },
            21..=23 => Op::Record { which: self.index(), stream: self.stream() },
            24 => Op::Look { which: self.index() },
            25 => Op::Misuse(self.misuse()),
            26 | 27 => Op::Step,
            28 => Op::Trim,
            29 | 30 => Op::Advance { nanoseconds: self.double() / 16 },
            _ => Op::Repeat { back: self.index() % 32 + 1, times: self.byte() % 24 + 1, odd: self.byte() % 48 },
        }
    }

    fn stream(&mut self) -> StreamId {
        StreamId(u64::from(self.byte() % 4))
    }

    fn ask(&mut self) -> Ask {
        let bytes = Bytes::new(self.size());
        let place = self.byte();
        let (stream, thread) = (StreamId(u64::from(place % 4)), ThreadId(u64::from(place / 4 % 2)));
        let align = match place / 8 {
            0..=19 => 1,
            20 => 3,
            power => 4 << (2 * (power - 21)),
        };
        Ask { bytes, align: Align::new(align).unwrap_or(Align::ONE), stream, thread }
    }

    /// Sizes of every kind that strategies treat in their own ways, small ones more often than large ones.
    fn size(&mut self) -> u64 {
        let (kind, fine) = (self.byte() % 16, self.double());
        match kind {
            0 if fine == u64::from(u16::MAX) => 1 << 61,
            0 => fine % 512,
            1..=5 => 1 + fine,
            6..=9 => 1 + 32 * fine,
            10 | 11 => (1 + fine % 8) * 2 * MIB + [0, 1, 512, 2 * MIB - 1][(fine >> 8) as usize % 4],
            12 | 13 => 512 + 512 * fine,
            14 => 1 + 1024 * fine,
            _ => 4096 + 4096 * fine,
        }
    }

    fn misuse(&mut self) -> Misuse {
        let kind = self.byte();
        match kind % 4 {
            0 => Misuse::FreeAgain { which: self.index() },
            1 => Misuse::FreeInside { which: self.index(), offset: self.double() },
            2 => Misuse::FreeWild { address: self.double() << (kind / 4 % 48) },
            _ => Misuse::RecordFreed { which: self.index() },
        }
    }
}
