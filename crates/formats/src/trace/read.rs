//! Trace CSV to [`Trace`]: one event per row, checked against those before it, so that a trace that was read
//! never frees what it does not hold.

use lowtide_core::{
    Action, AddressRange, Block, BlockIndex, Bytes, Event, ExtraColumn, RangeIndex, StepIndex, StreamId, TextIndex,
    Trace,
};

use super::live_blocks::{LiveBlocks, Misfit};
use crate::error::shorten::shorten;
use crate::reading::cell::Cell;
use crate::reading::header::Header;
use crate::reading::interner::Interner;
use crate::reading::records::Records;
use crate::{Error, ErrorKind, limits};

/// Reads the rows under `header`.
///
/// The id of an `oom` row is not kept: no block came of it.
pub(crate) fn read(mut records: Records<'_>, header: &Header) -> Result<Trace, Error> {
    let columns = Columns::find(header)?;
    let extra_column = |&place: &usize| ExtraColumn { name: header.names()[place].as_str().into(), values: Vec::new() };
    let mut reader = Reader {
        trace: Trace { extra: columns.extra.iter().map(extra_column).collect(), ..Trace::default() },
        columns,
        interner: Interner::default(),
        live_blocks: LiveBlocks::default(),
        last_step: 0,
    };
    while records.advance_row(header.names().len())? {
        reader.event(&records)?;
    }
    let Reader { mut trace, interner, .. } = reader;
    trace.texts = interner.into_texts();
    Ok(trace)
}

/// Where the columns stand.
struct Columns {
    event: usize,
    id: usize,
    bytes: usize,
    stream: Option<usize>,
    time_ns: Option<usize>,
    device: Option<usize>,
    thread: Option<usize>,
    category: Option<usize>,
    site: Option<usize>,
    address: Option<usize>,
    extra: Vec<usize>,
}

impl Columns {
    fn find(header: &Header) -> Result<Self, Error> {
        let mut columns = Self {
            event: header.require(&["event"])?,
            id: header.require(&["id"])?,
            bytes: header.require(&["bytes"])?,
            stream: header.find(&["stream"])?,
            time_ns: header.find(&["time_ns"])?,
            device: header.find(&["device"])?,
            thread: header.find(&["thread"])?,
            category: header.find(&["category"])?,
            site: header.find(&["site"])?,
            address: header.find(&["address"])?,
            extra: Vec::new(),
        };
        let Self { event, id, bytes, stream, time_ns, device, thread, category, site, address, .. } = columns;
        let known = [Some(event), Some(id), Some(bytes), stream, time_ns, device, thread, category, site, address];
        columns.extra = (0..header.names().len()).filter(|&place| !known.contains(&Some(place))).collect();
        Ok(columns)
    }
}

struct Reader {
    columns: Columns,
    trace: Trace,
    interner: Interner,
    live_blocks: LiveBlocks,
    last_step: u64,
}

impl Reader {
    fn event(&mut self, records: &Records<'_>) -> Result<(), Error> {
        let (fields, row) = (records.fields(), records.row());
        let cell = |column, place: usize| Cell { column, text: fields.get(place), row };
        let optional =
            |column, place: Option<usize>| Cell { column, text: place.map_or("", |place| fields.get(place)), row };
        let action = self.action(Subject {
            kind: cell("event", self.columns.event),
            id: cell("id", self.columns.id),
            bytes: cell("bytes", self.columns.bytes),
            address: optional("address", self.columns.address),
        })?;
        let event = Event {
            action,
            stream: StreamId(optional("stream", self.columns.stream).optional_number()?.unwrap_or(0)),
            time_ns: optional("time_ns", self.columns.time_ns).optional_number()?,
            device: optional("device", self.columns.device).optional_number()?,
            thread: optional("thread", self.columns.thread).optional_number()?,
            category: self.optional_text(optional("category", self.columns.category))?,
            site: self.optional_text(optional("site", self.columns.site))?,
        };
        self.trace.events.push(event);
        for (extra, &place) in self.trace.extra.iter_mut().zip(&self.columns.extra) {
            extra.values.push(intern(&mut self.interner, cell("", place))?);
        }
        Ok(())
    }

    fn action(&mut self, subject: Subject<'_>) -> Result<Action, Error> {
        Ok(match subject.kind.text.trim_ascii() {
            "alloc" => self.alloc(subject)?,
            "free" => Action::Free { block: self.block("free", subject, LiveBlocks::free)? },
            "done" => Action::Done { block: self.block("done", subject, LiveBlocks::done)? },
            "record" => Action::Record { block: self.block("record", subject, LiveBlocks::live)? },
            "step" => {
                subject.refuse_memory("step")?;
                self.step(subject.id)?
            }
            "event" => {
                subject.refuse_memory("event")?;
                Action::Signal { mark: self.name(subject.id)? }
            }
            "wait" => {
                subject.refuse_memory("wait")?;
                Action::Wait { mark: self.name(subject.id)? }
            }
            "reserve" => Action::Reserve { range: self.range("reserve", subject)? },
            "release" => Action::Release { range: self.range("release", subject)? },
            "oom" => {
                subject.refuse_address("oom", None)?;
                Action::OutOfMemory { bytes: Bytes::new(subject.bytes.number()?) }
            }
            other => return Err(subject.kind.error(ErrorKind::UnknownEvent { value: shorten(other) })),
        })
    }

    fn alloc(&mut self, subject: Subject<'_>) -> Result<Action, Error> {
        let name = self.name(subject.id)?;
        let AddressRange { address, bytes } = subject.memory()?;
        let block = self.live_blocks.alloc(name).map_err(|misfit| misfit_error("alloc", subject.id, &misfit))?;
        self.trace.blocks.push(Block { name, bytes, address });
        Ok(Action::Alloc { block })
    }

    fn range(&mut self, event: &'static str, subject: Subject<'_>) -> Result<RangeIndex, Error> {
        if !subject.id.text.trim_ascii().is_empty() {
            return Err(unexpected(event, subject.id));
        }
        let range = RangeIndex(self.trace.ranges.len() as u32);
        self.trace.ranges.push(subject.memory()?);
        Ok(range)
    }

    fn block(
        &mut self,
        event: &'static str,
        subject: Subject<'_>,
        find: fn(&mut LiveBlocks, TextIndex) -> Result<BlockIndex, Misfit>,
    ) -> Result<BlockIndex, Error> {
        let name = self.name(subject.id)?;
        let index = find(&mut self.live_blocks, name).map_err(|misfit| misfit_error(event, subject.id, &misfit))?;
        let block = self.trace.block(index);
        subject.refuse_address(event, block.address)?;
        subject.refuse_bytes(event, block.bytes)?;
        Ok(index)
    }

    fn step(&mut self, id: Cell<'_>) -> Result<Action, Error> {
        let step = id.number()?;
        if step == 0 {
            return Err(id.error(ErrorKind::StepZero));
        }
        if step <= self.last_step {
            return Err(id.error(ErrorKind::StepOutOfOrder { step, last: self.last_step }));
        }
        self.last_step = step;
        Ok(Action::Step { step: StepIndex(step) })
    }

    fn name(&mut self, id: Cell<'_>) -> Result<TextIndex, Error> {
        id.required()?;
        intern(&mut self.interner, id)
    }

    fn optional_text(&mut self, cell: Cell<'_>) -> Result<Option<TextIndex>, Error> {
        if cell.text.is_empty() { Ok(None) } else { intern(&mut self.interner, cell).map(Some) }
    }
}

/// What a row is about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    kind: Cell<'a>,
    id: Cell<'a>,
    bytes: Cell<'a>,
    address: Cell<'a>,
}

impl Subject<'_> {
    /// The bytes of the row, and where they lie.
    fn memory(self) -> Result<AddressRange, Error> {
        let bytes = Bytes::new(self.bytes.number()?);
        let address = self.address.optional_address()?;
        match address {
            Some(first) if first.checked_add(bytes.get()).is_none() => {
                let (column, value) = (self.address.column, first.to_string());
                let range = "0 and 2^64 less the bytes";
                Err(self.address.error(ErrorKind::OutOfRange { column, value, range }))
            }
            _ => Ok(AddressRange { address, bytes }),
        }
    }

    fn refuse_memory(self, event: &'static str) -> Result<(), Error> {
        self.refuse_address(event, None)?;
        self.refuse_bytes(event, Bytes::ZERO)
    }

    /// Refuses bytes other than `known` or zero.
    fn refuse_bytes(self, event: &'static str, known: Bytes) -> Result<(), Error> {
        match self.bytes.optional_number()? {
            Some(given) if given != 0 && given != known.get() => {
                Err(self.bytes.error(ErrorKind::UnexpectedBytes { event, bytes: given }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an address other than `known`.
    fn refuse_address(self, event: &'static str, known: Option<u64>) -> Result<(), Error> {
        match self.address.optional_address()? {
            Some(given) if Some(given) != known => Err(unexpected(event, self.address)),
            _ => Ok(()),
        }
    }
}

fn intern(interner: &mut Interner, cell: Cell<'_>) -> Result<TextIndex, Error> {
    interner.intern(cell.text).map_err(|_| cell.error(ErrorKind::FileTooLong { limit: limits::CSV }))
}

fn unexpected(event: &'static str, cell: Cell<'_>) -> Error {
    cell.error(ErrorKind::UnexpectedValue { event, column: cell.column, value: shorten(cell.text) })
}

fn misfit_error(event: &'static str, cell: Cell<'_>, misfit: &Misfit) -> Error {
    let id = shorten(cell.text);
    cell.error(match misfit {
        Misfit::NotAllocated => ErrorKind::NotAllocated { event, id },
        Misfit::AllocatedTwice => ErrorKind::AllocatedTwice { id },
        Misfit::FreedTwice => ErrorKind::FreedTwice { id },
        Misfit::DoneBeforeFree => ErrorKind::DoneBeforeFree { id },
    })
}
