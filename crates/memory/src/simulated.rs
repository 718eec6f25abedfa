//! The model of a CUDA device: handles, aliases, a capacity, marks that pass by a clock of its own, and a price for every
//! call. Without contents it is numbers alone, fast enough to replay millions of events; with contents its addresses are
//! real ones of this process, so that tests can see bytes move.

mod clock;

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::Bytes;

use crate::error::Error;
use crate::file::pieces::{Piece, Pieces};
use crate::mapper::{Backing, Mapper, Step, source_by_mapper};
use crate::source::{Description, Span};

use clock::Clock;
pub use clock::Lag;

/// Where the addresses of a device without contents begin and end.
const FIRST_ADDRESS: u64 = 0x7000_0000_0000;
const LAST_ADDRESS: u64 = 0x7fff_0000_0000_0000;

/// What a simulated device is like. The default is an H200 without a limit of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulatedOptions {
    /// The memory it has; no limit where there is none.
    pub capacity: Option<Bytes>,
    /// Every handle is a multiple of this power of two.
    pub granularity: Bytes,
    /// How long after a mark was made its work is done, until [`Simulated::set_lag`] says otherwise.
    pub lag_ns: u64,
    /// What mapping a handle costs, access included.
    pub map_ns: u64,
    /// What unmapping a handle costs.
    pub unmap_ns: u64,
    /// What making a handle costs.
    pub create_ns: u64,
    /// What giving a handle back costs.
    pub destroy_ns: u64,
    /// Whether there are bytes behind the addresses.
    pub contents: bool,
    /// Whether its time passes with the machine's, for a program that really runs.
    pub real_time: bool,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        Self {
            capacity: None,
            granularity: Bytes::new(2 << 20),
            lag_ns: 100_000_000,
            map_ns: 24_000,
            unmap_ns: 16_000,
            create_ns: 9_000,
            destroy_ns: 10_000,
            contents: false,
            real_time: false,
        }
    }
}

/// A simulated device. A commit is charged for making and mapping a handle, an alias for mapping, a decommit for
/// unmapping and, at the last address, for giving back; addresses cost nothing. Charges do not move the clock.
#[derive(Debug)]
pub struct Simulated {
    mapper: Mapper<Model>,
}

impl Simulated {
    /// A device on which nothing was done yet, at time zero. Fails where the granularity is no power of two, or, with
    /// contents, smaller than a page of this machine or where the system gives no memory file.
    pub fn new(options: SimulatedOptions) -> Result<Self, Error> {
        if !options.granularity.get().is_power_of_two() {
            return Err(Error::Refused {
                call: "Simulated::new",
                why: format!("a granularity of {} is no power of two", options.granularity),
            });
        }
        let addresses = if options.contents {
            Addresses::Bytes(Pieces::in_memory(options.granularity)?)
        } else {
            Addresses::Numbers { next: AtomicU64::new(FIRST_ADDRESS.next_multiple_of(options.granularity.get())) }
        };
        let clock = Clock::new(Lag::After(options.lag_ns));
        let clock = if options.real_time { clock.run() } else { clock };
        Ok(Self { mapper: Mapper::new(Model { options, addresses, clock, used: AtomicU64::new(0) }) })
    }

    /// The time of the device, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.mapper.backing().clock.now_ns()
    }

    /// Lets `nanoseconds` pass.
    pub fn advance(&self, nanoseconds: u64) {
        self.mapper.backing().clock.advance(nanoseconds);
    }

    /// Lets time pass until `time_ns`; a time in the past changes nothing.
    pub fn set_time(&self, time_ns: u64) {
        self.mapper.backing().clock.set(time_ns);
    }

    /// When marks pass that are made from now on. A stream that is made to hold is counted, and delays no mark: a
    /// recording says when work was done.
    pub fn set_lag(&self, lag: Lag) {
        self.mapper.backing().clock.set_lag(lag);
    }
}

source_by_mapper!(Simulated);

/// What addresses are: mere numbers, or addresses of this process with bytes under them.
#[derive(Debug)]
enum Addresses {
    Numbers { next: AtomicU64 },
    Bytes(Pieces),
}

#[derive(Debug)]
struct Model {
    options: SimulatedOptions,
    addresses: Addresses,
    clock: Clock,
    used: AtomicU64,
}

impl Backing for Model {
    type Handle = Option<Piece>;
    type Queue = Clock;

    fn describe(&self) -> Description {
        let contents = self.options.contents;
        Description {
            name: if contents { "simulated device with contents" } else { "simulated device" }.to_owned(),
            granularity: self.options.granularity,
            capacity: self.options.capacity,
            aliases: true,
            relocates: true,
            host_visible: contents,
            queued: true,
            fallbacks: Vec::new(),
        }
    }

    fn queue(&self) -> &Clock {
        &self.clock
    }

    fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        match &self.addresses {
            Addresses::Bytes(pieces) => pieces.reserve(bytes),
            Addresses::Numbers { next } => next
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                    next.checked_add(bytes.get()).filter(|&end| end <= LAST_ADDRESS)
                })
                .map_err(|_| Error::OutOfAddresses { asked: bytes }),
        }
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        match &self.addresses {
            Addresses::Bytes(_) => Pieces::release(span),
            Addresses::Numbers { .. } => Ok(()),
        }
    }

    fn create(&self, bytes: Bytes) -> Result<Self::Handle, Error> {
        let used = self.used.load(Ordering::Relaxed);
        let fits = |after: u64| self.options.capacity.is_none_or(|capacity| after <= capacity.get());
        let after = used.checked_add(bytes.get()).filter(|&after| fits(after));
        let after = after.ok_or(Error::OutOfMemory { asked: bytes })?;
        let handle = match &self.addresses {
            Addresses::Bytes(pieces) => Some(pieces.create(bytes)?),
            Addresses::Numbers { .. } => None,
        };
        self.used.store(after, Ordering::Relaxed);
        Ok(handle)
    }

    fn destroy(&self, handle: Self::Handle, bytes: Bytes) -> Result<(), Error> {
        if let (Addresses::Bytes(pieces), Some(piece)) = (&self.addresses, handle) {
            pieces.destroy(piece, bytes)?;
        }
        self.used.fetch_sub(bytes.get(), Ordering::Relaxed);
        Ok(())
    }

    fn map(&self, handle: Self::Handle, span: Span) -> Result<(), Error> {
        match (&self.addresses, handle) {
            (Addresses::Bytes(pieces), Some(piece)) => pieces.map(piece, span),
            _ => Ok(()),
        }
    }

    fn unmap(&self, _handle: Self::Handle, span: Span) -> Result<(), Error> {
        match &self.addresses {
            Addresses::Bytes(_) => Pieces::unmap(span),
            Addresses::Numbers { .. } => Ok(()),
        }
    }

    fn cost(&self, step: Step) -> Option<u64> {
        Some(match step {
            Step::Create => self.options.create_ns,
            Step::Map => self.options.map_ns,
            Step::Unmap => self.options.unmap_ns,
            Step::Destroy => self.options.destroy_ns,
        })
    }
}
