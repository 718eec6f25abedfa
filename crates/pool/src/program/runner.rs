//! Plays programs on a pool and checks, after every operation, what has to hold.

mod misuse;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Simulated, Source};

use super::ops::{Ask, Op, Program};
use super::shadow;
use super::violation::{Fault, Violation};
use super::watching::Watching;
use crate::error::Error;
use crate::pool::{Address, Pool, Stats};

/// What a pool that holds nothing may need beside a block, whatever its rules.
const SPARE: u64 = 32 << 20;
/// Operations that one program plays at most, repeats counted.
const LONGEST: usize = 10_000;
/// How often a call that failed on purpose is made again.
const ATTEMPTS: usize = 5000;

/// A pool to play on, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The pool, whose source is the next field.
    pub pool: &'a dyn Pool,
    /// What it takes its memory from.
    pub source: &'a Watching,
    /// The device below, whose clock a program may move.
    pub device: Option<&'a Simulated>,
    /// Whether a trim of a pool without live blocks leaves it nothing.
    pub gives_all_back: bool,
    /// Whether the source fails on purpose, so that calls may fail by it.
    pub source_fails: bool,
}

/// Plays a program, gives everything back, and says what the pool broke first.
pub fn run(program: &Program, subject: &Subject<'_>) -> Result<(), Violation> {
    let mut runner = Runner::new(subject, true);
    let played = runner.play_all(program).and_then(|()| runner.free_all());
    let ended = played.and_then(|()| end(subject));
    ended.map_err(|fault| Violation { operation: runner.operation, fault })
}

/// Plays several programs at once, each on a thread of its own with blocks of its own.
pub fn run_on_threads(programs: &[Program], subject: &Subject<'_>) -> Result<(), Violation> {
    let play = |program: &Program| {
        let mut runner = Runner::new(subject, programs.len() == 1);
        let played = runner.play_all(program).and_then(|()| runner.free_all());
        played.map_err(|fault| Violation { operation: runner.operation, fault })
    };
    thread::scope(|scope| {
        let threads: Vec<_> = programs.iter().map(|program| scope.spawn(|| play(program))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Err(Violation { operation: 0, fault: Fault::Panic })))
    })?;
    let operation = programs.iter().map(|program| program.ops.len()).max().unwrap_or(0);
    end(subject).map_err(|fault| Violation { operation, fault })
}

/// Trims a pool without live blocks.
fn end(subject: &Subject<'_>) -> Result<(), Fault> {
    let attempts = if subject.source_fails { ATTEMPTS } else { 1 };
    let mut trimmed = subject.pool.trim();
    for _ in 1..attempts {
        if trimmed.is_ok() {
            break;
        }
        trimmed = subject.pool.trim();
    }
    trimmed.map_err(|error| Fault::WrongResult { call: "trim at the end".to_owned(), result: Err(error) })?;
    let stats = subject.pool.stats();
    let bad = |what| Err(Fault::BadStats { what, stats, live: Bytes::ZERO });
    if stats.live != Bytes::ZERO {
        return bad("something is live after all was freed and trimmed");
    }
    if subject.gives_all_back && stats.reserved != Bytes::ZERO {
        return bad("something is reserved after all was freed and trimmed");
    }
    subject.source.fault().map_or(Ok(()), Err)
}

/// A block in hand.
#[derive(Clone, Debug)]
struct Held {
    address: Address,
    ask: Ask,
    /// What its contents follow from.
    number: u64,
    /// Streams that use it.
    streams: Vec<StreamId>,
}

struct Runner<'a> {
    subject: &'a Subject<'a>,
    visible: bool,
    capacity: Option<u64>,
    granularity: u64,
    /// Whether nobody else uses the pool.
    alone: bool,
    blocks: Vec<Held>,
    /// The first of `blocks` that may be named.
    base: usize,
    /// Addresses that were freed last.
    freed: Vec<Address>,
    /// What was freed while other streams used it, since the last trim.
    pending: u64,
    before: Stats,
    operation: usize,
    played: usize,
}

impl<'a> Runner<'a> {
    fn new(subject: &'a Subject<'a>, alone: bool) -> Self {
        let description = subject.source.describe();
        Self {
            subject,
            visible: description.host_visible,
            capacity: description.capacity.map(Bytes::get),
            granularity: description.granularity.get(),
            alone,
            blocks: Vec::new(),
            base: 0,
            freed: Vec::new(),
            pending: 0,
            before: subject.pool.stats(),
            operation: 0,
            played: 0,
        }
    }

    fn play_all(&mut self, program: &Program) -> Result<(), Fault> {
        for (operation, op) in program.ops.iter().enumerate() {
            self.operation = operation;
            match *op {
                Op::Repeat { back, times, odd } => self.repeat(&program.ops[..operation], back, times, odd)?,
                _ => self.play(op)?,
            }
        }
        self.operation = program.ops.len();
        Ok(())
    }

    /// Plays the last operations again, each time as a step that leaves nothing behind.
    fn repeat(&mut self, ops: &[Op], back: usize, times: u8, odd: u8) -> Result<(), Fault> {
        let mut body: Vec<&Op> = ops.iter().rev().filter(|op| !matches!(op, Op::Repeat { .. })).take(back).collect();
        body.reverse();
        let base = std::mem::replace(&mut self.base, self.blocks.len());
        for round in 0..times {
            if round == odd {
                self.alloc(&Ask::new(Bytes::new(1 + 999 * u64::from(odd))))?;
            }
            body.iter().try_for_each(|op| self.play(op))?;
            while self.blocks.len() > self.base {
                self.free(self.base)?;
            }
            self.play(&Op::Step)?;
        }
        self.base = base;
        Ok(())
    }

    fn play(&mut self, op: &Op) -> Result<(), Fault> {
        self.played += 1;
        if self.played > LONGEST {
            return Ok(());
        }
        match *op {
            Op::Alloc(ask) => self.alloc(&ask)?,
            Op::Burst { ask, count } => (0..count).try_for_each(|_| self.alloc(&ask))?,
            Op::Free { which } => self.index(which).map_or(Ok(()), |index| self.free(index))?,
            Op::FreeEvery { stride } => {
                let named = (self.base..self.blocks.len()).rev().step_by(stride.max(1));
                named.collect::<Vec<_>>().into_iter().try_for_each(|index| self.free(index))?;
            }
            Op::Record { which, stream } => self.index(which).map_or(Ok(()), |index| self.record(index, stream))?,
            Op::Look { which } => self.index(which).map_or(Ok(()), |index| self.look(index))?,
            Op::Misuse(misuse) => self.misuse(misuse)?,
            Op::Step => self.subject.pool.step(),
            Op::Trim => self.trim()?,
            Op::Advance { nanoseconds } => {
                self.subject.device.into_iter().for_each(|device| device.advance(nanoseconds));
            }
            Op::Repeat { .. } => {}
        }
        self.check()
    }

    fn index(&self, which: usize) -> Option<usize> {
        let count = self.blocks.len() - self.base;
        (count > 0).then(|| self.base + which % count)
    }

    fn alloc(&mut self, ask: &Ask) -> Result<(), Fault> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let address = match self.subject.pool.alloc(ask) {
            Ok(address) => address,
            Err(error) => return self.judge_refusal(ask, error),
        };
        if ask.bytes == Bytes::ZERO || !ask.align.get().is_power_of_two() {
            return Err(wrong(format!("alloc({ask:?})"), Ok(())));
        }
        if !address.0.is_multiple_of(ask.align.get()) {
            return Err(Fault::Misaligned { block: address, align: ask.align.get() });
        }
        self.subject.source.hand_out(address, ask.bytes, ask.stream);
        self.subject.source.fault().map_or(Ok(()), Err)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        if self.visible && !shadow::fill(self.subject.source, address, ask.bytes.get(), number) {
            return Err(Fault::OutsideMemory { block: address, bytes: ask.bytes });
        }
        self.freed.retain(|&freed| freed != address);
        self.blocks.push(Held { address, ask: *ask, number, streams: vec![ask.stream] });
        Ok(())
    }

    /// Whether a request may be refused in this way.
    fn judge_refusal(&self, ask: &Ask, error: Error) -> Result<(), Fault> {
        let (bytes, align) = (ask.bytes.get(), ask.align.get());
        let needed = bytes.saturating_add(align).checked_next_multiple_of(self.granularity).unwrap_or(u64::MAX);
        let is_right = match &error {
            Error::ZeroSize => bytes == 0,
            Error::BadAlignment { .. } => !align.is_power_of_two(),
            Error::TooLarge { .. } => needed > self.capacity.unwrap_or(1 << 40),
            Error::OutOfMemory { .. } => self.capacity.is_some() || self.subject.source_fails,
            Error::Source(_) => self.subject.source_fails,
            Error::OverLimit { .. } | Error::DoubleFree { .. } | Error::ForeignAddress { .. } => false,
        };
        let is_mistaken = bytes == 0 || !align.is_power_of_two();
        let never_fits = self.capacity.is_some_and(|capacity| bytes > capacity);
        let is_lack = matches!(error, Error::OutOfMemory { .. });
        if !is_right || (is_lack && (is_mistaken || never_fits)) {
            return Err(wrong(format!("alloc({ask:?})"), Err(error)));
        }
        let has_room = self.capacity.is_none_or(|capacity| needed.saturating_add(SPARE) <= capacity);
        if is_lack && self.alone && self.blocks.is_empty() && has_room && !self.subject.source_fails {
            return Err(Fault::RefusedThoughEmpty { bytes: ask.bytes, error });
        }
        Ok(())
    }

    fn free(&mut self, index: usize) -> Result<(), Fault> {
        self.look(index)?;
        let Held { address, ask, streams, .. } = self.blocks[index].clone();
        self.subject.source.let_go(address, ask.bytes, &streams);
        match self.subject.pool.free(address) {
            Ok(()) => {}
            Err(Error::Source(_)) if self.subject.source_fails => {
                self.subject.source.keep(address, ask.bytes);
                return self.free_at_last(index);
            }
            Err(error) => return Err(wrong(format!("free({address})"), Err(error))),
        }
        self.forget(index);
        Ok(())
    }

    /// Frees a block whose free failed once: it has to be as if that had not been tried.
    fn free_at_last(&mut self, index: usize) -> Result<(), Fault> {
        for _ in 0..ATTEMPTS {
            self.look(index)?;
            self.check()?;
            let Held { address, ask, streams, .. } = self.blocks[index].clone();
            self.subject.source.let_go(address, ask.bytes, &streams);
            match self.subject.pool.free(address) {
                Ok(()) => {
                    self.forget(index);
                    return Ok(());
                }
                Err(Error::Source(_)) => self.subject.source.keep(address, ask.bytes),
                Err(error) => return Err(wrong(format!("free({address}) again after it failed"), Err(error))),
            }
        }
        Ok(())
    }

    fn forget(&mut self, index: usize) {
        let Held { address, ask, streams, .. } = self.blocks.remove(index);
        if streams.len() > 1 {
            self.pending += ask.bytes.get();
        }
        if self.freed.len() == 16 {
            self.freed.remove(0);
        }
        self.freed.push(address);
    }

    fn free_all(&mut self) -> Result<(), Fault> {
        self.base = 0;
        while let Some(last) = self.blocks.len().checked_sub(1) {
            self.free(last)?;
            if self.blocks.len() > last {
                return Err(wrong("free, again and again".to_owned(), Ok(())));
            }
            self.check()?;
        }
        Ok(())
    }

    fn record(&mut self, index: usize, stream: StreamId) -> Result<(), Fault> {
        let held = &mut self.blocks[index];
        match self.subject.pool.record(held.address, stream) {
            Ok(()) if held.streams.contains(&stream) => Ok(()),
            Ok(()) => {
                held.streams.push(stream);
                Ok(())
            }
            Err(Error::Source(_)) if self.subject.source_fails => Ok(()),
            Err(error) => Err(wrong(format!("record({}, {})", held.address, stream.0), Err(error))),
        }
    }

    /// Looks whether a block holds what was written to it.
    fn look(&self, index: usize) -> Result<(), Fault> {
        let Held { address: block, ask, number, .. } = self.blocks[index];
        if !self.visible {
            return Ok(());
        }
        let difference = shadow::first_difference(self.subject.source, block, ask.bytes.get(), number);
        difference.map_or(Ok(()), |offset| Err(Fault::ContentsLost { block, bytes: ask.bytes, offset }))
    }

    fn trim(&mut self) -> Result<(), Fault> {
        match self.subject.pool.trim() {
            Ok(_) => {
                self.pending = 0;
                Ok(())
            }
            Err(Error::Source(_)) if self.subject.source_fails => Ok(()),
            Err(error) => Err(wrong("trim()".to_owned(), Err(error))),
        }
    }

    /// Checks what has to hold at any time.
    fn check(&mut self) -> Result<(), Fault> {
        self.subject.source.fault().map_or(Ok(()), Err)?;
        if !self.alone {
            return Ok(());
        }
        let (stats, before) = (self.subject.pool.stats(), self.before);
        let live: u64 = self.blocks.iter().map(|held| held.ask.bytes.get()).sum();
        let bad = |what| Err(Fault::BadStats { what, stats, live: Bytes::new(live) });
        if stats.live.get() < live || stats.live.get() > live + self.pending {
            return bad("what is live is not what was handed out");
        }
        if stats.reserved < stats.live {
            return bad("less is reserved than is live");
        }
        if stats.reserved > self.subject.source.given() {
            return bad("more is reserved than the source gave");
        }
        if stats.peak_live < stats.live.max(before.peak_live)
            || stats.peak_reserved < stats.reserved.max(before.peak_reserved)
        {
            return bad("a peak is too low");
        }
        self.before = stats;
        Ok(())
    }
}

fn wrong(call: String, result: Result<(), Error>) -> Fault {
    Fault::WrongResult { call, result }
}
