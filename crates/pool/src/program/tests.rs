//! Pools that break one rule each, and are found out.

use std::sync::{Arc, Mutex};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Simulated, SimulatedOptions, Source, Span};
use proptest::prelude::*;

use super::*;
use crate::{Address, Arena, ArenaOptions, Error, Pool, Request, Stats};

const MIB: u64 = 1 << 20;

/// What a pool does wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Flaw {
    None,
    GivesOneTwice,
    PassesOnAtOnce,
    TrimsWhatIsInUse,
    TrimsTooEarly,
    LeavesMemory,
    CountsWrong,
    IgnoresAlignment,
    TakesAnyFree,
    Shares,
}

/// Whole handles of 2 MiB, handed out from the lowest on.
#[derive(Debug)]
struct Slots {
    flaw: Flaw,
    source: Arc<Watching>,
    span: Span,
    inner: Mutex<Vec<Slot>>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    committed: bool,
    live: Option<u64>,
    streams: Vec<StreamId>,
}

const SLOT: u64 = 2 * MIB;

impl Slots {
    fn new(flaw: Flaw, source: Arc<Watching>) -> Self {
        let span = source.reserve(Bytes::new(64 * SLOT)).unwrap();
        Self { flaw, source, span, inner: Mutex::new(vec![Slot::default(); 64]) }
    }

    fn place(&self, slot: usize) -> Span {
        Span::new(self.span.start + slot as u64 * SLOT, Bytes::new(SLOT))
    }

    fn index(&self, address: Address) -> Result<usize, Error> {
        let offset = address.0.checked_sub(self.span.start).filter(|offset| offset / SLOT < 64);
        let whole = |offset: &u64| self.flaw == Flaw::TakesAnyFree || offset.is_multiple_of(SLOT);
        offset.filter(whole).map(|offset| (offset / SLOT) as usize).ok_or(Error::ForeignAddress { address })
    }

    fn wait(&self, streams: &[StreamId]) {
        for &stream in streams {
            let mark = self.source.mark(stream).unwrap();
            self.source.wait(mark).unwrap();
            self.source.forget(mark);
        }
    }
}

impl Pool for Slots {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let (bytes, align) = (request.bytes.get(), request.align.get());
        match () {
            () if bytes == 0 => return Err(Error::ZeroSize),
            () if !align.is_power_of_two() => return Err(Error::BadAlignment { align }),
            () if bytes.max(align) > SLOT => {
                return Err(Error::TooLarge { asked: request.bytes, capacity: Bytes::new(SLOT) });
            }
            () => {}
        }
        let mut slots = self.inner.lock().unwrap();
        let free = slots.iter().position(|slot| slot.live.is_none() || self.flaw == Flaw::GivesOneTwice).unwrap();
        let slot = &mut slots[free];
        if !slot.committed {
            let shares = free > 0 && self.flaw == Flaw::Shares;
            if shares {
                self.source.alias(self.place(free - 1), self.place(free).start).unwrap();
            } else {
                self.source.commit(self.place(free)).unwrap();
            }
            slot.committed = true;
        }
        if self.flaw != Flaw::PassesOnAtOnce {
            self.wait(&slot.streams);
        }
        (slot.live, slot.streams) = (Some(bytes), vec![request.stream]);
        let shift = u64::from(self.flaw == Flaw::IgnoresAlignment && bytes < MIB);
        Ok(Address(self.place(free).start + shift))
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        let index = self.index(address)?;
        let mut slots = self.inner.lock().unwrap();
        slots[index].live.take().map(|_| ()).ok_or(Error::DoubleFree { address })
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        let index = self.index(address)?;
        let mut slots = self.inner.lock().unwrap();
        if slots[index].live.is_none() {
            return Err(Error::DoubleFree { address });
        }
        slots[index].streams.push(stream);
        Ok(())
    }

    fn trim(&self) -> Result<Bytes, Error> {
        let mut slots = self.inner.lock().unwrap();
        for (index, slot) in slots.iter_mut().enumerate() {
            let goes = slot.live.is_none() || self.flaw == Flaw::TrimsWhatIsInUse;
            if slot.committed && goes && self.flaw != Flaw::LeavesMemory {
                if self.flaw != Flaw::TrimsTooEarly {
                    self.wait(&slot.streams);
                }
                self.source.decommit(self.place(index)).unwrap();
                (slot.committed, slot.streams) = (false, Vec::new());
            }
        }
        Ok(Bytes::ZERO)
    }

    fn stats(&self) -> Stats {
        let slots = self.inner.lock().unwrap();
        let live = slots.iter().filter_map(|slot| slot.live).sum::<u64>();
        let live = Bytes::new(live + u64::from(self.flaw == Flaw::CountsWrong && live > 0));
        let reserved = Bytes::new(SLOT * slots.iter().filter(|slot| slot.committed).count() as u64);
        Stats { live, reserved, peak_live: Bytes::new(64 * SLOT), peak_reserved: Bytes::new(64 * SLOT) }
    }
}

fn play(flaw: Flaw, ops: &[Op]) -> Result<(), Fault> {
    let options = SimulatedOptions {
        lag_ns: 1000,
        contents: true,
        capacity: Some(Bytes::new(64 * SLOT)),
        ..SimulatedOptions::default()
    };
    let device = Arc::new(Simulated::new(options).unwrap());
    let source = Arc::new(Watching::new(device.clone()));
    let pool = Slots::new(flaw, source.clone());
    let subject =
        Subject { pool: &pool, source: &source, device: Some(&device), gives_all_back: true, source_fails: false };
    run(&Program { ops: ops.to_vec() }, &subject).map_err(|violation| violation.fault)
}

fn alloc(bytes: u64, stream: u64) -> Op {
    Op::Alloc(Request { stream: StreamId(stream), ..Request::new(Bytes::new(bytes)) })
}

#[test]
fn a_pool_without_a_flaw_passes() {
    let ops = [
        alloc(100, 0),
        alloc(MIB, 1),
        Op::Record { which: 0, stream: StreamId(2) },
        Op::Free { which: 0 },
        alloc(70, 3),
        Op::Misuse(Misuse::FreeInside { which: 0, offset: 5 }),
        Op::Trim,
        Op::Repeat { back: 5, times: 3, odd: 1 },
        Op::FreeEvery { stride: 2 },
        Op::Misuse(Misuse::FreeAgain { which: 0 }),
        Op::Look { which: 0 },
    ];
    assert_eq!(play(Flaw::None, &ops), Ok(()));
}

#[test]
fn blocks_that_overlap_are_found() {
    let found = play(Flaw::GivesOneTwice, &[alloc(1, 0), alloc(1, 0)]);
    assert!(matches!(found, Err(Fault::Overlap { .. })), "{found:?}");
}

#[test]
fn blocks_with_the_same_memory_at_two_addresses_are_found() {
    let found = play(Flaw::Shares, &[alloc(1, 0), alloc(1, 0)]);
    assert!(matches!(found, Err(Fault::SharedMemory { .. })), "{found:?}");
}

#[test]
fn memory_that_goes_to_another_stream_too_early_is_found() {
    let ops = [alloc(1, 0), Op::Free { which: 0 }, alloc(1, 1)];
    let found = play(Flaw::PassesOnAtOnce, &ops);
    assert!(matches!(found, Err(Fault::HandedOnWhileUsed { .. })), "{found:?}");
    let record = Op::Record { which: 0, stream: StreamId(1) };
    let found = play(Flaw::PassesOnAtOnce, &[alloc(1, 0), record, Op::Free { which: 0 }, alloc(1, 0)]);
    assert!(matches!(found, Err(Fault::HandedOnWhileUsed { used_by: StreamId(1), .. })), "{found:?}");
    assert_eq!(play(Flaw::PassesOnAtOnce, &[alloc(1, 0), Op::Free { which: 0 }, alloc(1, 0)]), Ok(()));
}

#[test]
fn memory_that_is_taken_from_a_block_or_from_queued_work_is_found() {
    let found = play(Flaw::TrimsWhatIsInUse, &[alloc(1, 0), Op::Trim]);
    assert!(matches!(found, Err(Fault::TakenWhileLive { .. })), "{found:?}");
    let found = play(Flaw::TrimsTooEarly, &[alloc(1, 0), Op::Free { which: 0 }, Op::Trim]);
    assert!(matches!(found, Err(Fault::TakenWhileUsed { .. })), "{found:?}");
}

#[test]
fn memory_that_stays_and_counts_that_are_off_are_found() {
    for flaw in [Flaw::LeavesMemory, Flaw::CountsWrong] {
        let found = play(flaw, &[alloc(1, 0)]);
        assert!(matches!(found, Err(Fault::BadStats { .. })), "{found:?}");
    }
}

#[test]
fn blocks_that_are_not_aligned_are_found() {
    let ask = Request { align: lowtide_core::Align::new(2).unwrap(), ..Request::new(Bytes::new(1)) };
    let found = play(Flaw::IgnoresAlignment, &[Op::Alloc(ask)]);
    assert!(matches!(found, Err(Fault::Misaligned { .. })), "{found:?}");
}

#[test]
fn a_pool_that_frees_what_is_no_block_is_found() {
    let found = play(Flaw::TakesAnyFree, &[alloc(9, 0), Op::Misuse(Misuse::FreeInside { which: 0, offset: 3 })]);
    assert!(matches!(found, Err(Fault::WrongResult { .. })), "{found:?}");
}

#[test]
fn contents_that_change_are_found() {
    let device = Simulated::new(SimulatedOptions { contents: true, ..SimulatedOptions::default() }).unwrap();
    let source = Watching::new(Arc::new(device));
    let span = source.reserve(Bytes::new(8 * MIB)).unwrap();
    source.commit(span).unwrap();
    for bytes in [1, 7, 5000, 16 << 10, (16 << 10) + 1, 300_000, 8 * MIB] {
        assert!(shadow::fill(&source, Address(span.start), bytes, 5));
        assert_eq!(shadow::first_difference(&source, Address(span.start), bytes, 5), None);
        let mut last = [0];
        assert!(source.read(span.start + bytes - 1, &mut last));
        assert!(source.write(span.start + bytes - 1, &[!last[0]]));
        assert_eq!(shadow::first_difference(&source, Address(span.start), bytes, 5), Some(bytes - 1));
    }
    assert!(!source.write(span.end() - 1, &[0, 0]), "there is no memory behind the end");
}

proptest! {
    #[test]
    fn any_bytes_are_a_program(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let program = Program::from_bytes(&bytes);
        prop_assert!(program.ops.len() <= bytes.len());
        prop_assert!(program.ops.is_empty() == bytes.is_empty());
    }
}

#[test]
fn a_thread_that_finds_a_fault_ends_the_run_of_all() {
    let device = Arc::new(Simulated::new(SimulatedOptions::default()).unwrap());
    let source = Arc::new(Watching::new(device));
    let pool = Arena::new(source.clone(), ArenaOptions::default()).unwrap();
    let subject = Subject { pool: &pool, source: &source, device: None, gives_all_back: true, source_fails: false };
    let good = Program { ops: vec![alloc(1, 0); 50] };
    assert_eq!(run_on_threads(&[good.clone(), good.clone()], &subject), Ok(()));
    source.hand_out(Address(8), Bytes::new(8), StreamId(0));
    let found = run_on_threads(&[good.clone(), good], &subject).map_err(|violation| violation.fault);
    assert!(matches!(found, Err(Fault::OutsideMemory { .. })), "{found:?}");
}
