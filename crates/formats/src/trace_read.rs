//! Trace CSV to [`Trace`]: one event per row, checked against those before it, so that a trace that was read
//! never frees what it does not hold.

use lowtide_core::{Action, Block, BlockIndex, Bytes, Event, ExtraColumn, StepIndex, StreamId, TextIndex, Trace};

use crate::cell::Cell;
use crate::header::Header;
use crate::interner::Interner;
use crate::ledger::{Ledger, Misfit};
use crate::records::Records;
use crate::shorten::shorten;
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
        ledger: Ledger::default(),
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
            extra: Vec::new(),
        };
        let Self { event, id, bytes, stream, time_ns, device, thread, category, site, .. } = columns;
        let known = [Some(event), Some(id), Some(bytes), stream, time_ns, device, thread, category, site];
        columns.extra = (0..header.names().len()).filter(|&place| !known.contains(&Some(place))).collect();
        Ok(columns)
    }
}

struct Reader {
    columns: Columns,
    trace: Trace,
    interner: Interner,
    ledger: Ledger,
    last_step: u64,
}

impl Reader {
    fn event(&mut self, records: &Records<'_>) -> Result<(), Error> {
        let (fields, row) = (records.fields(), records.row());
        let cell = |column, place: usize| Cell { column, text: fields.get(place), row };
        let optional =
            |column, place: Option<usize>| Cell { column, text: place.map_or("", |place| fields.get(place)), row };
        let kind = cell("event", self.columns.event);
        let id = cell("id", self.columns.id);
        let bytes = cell("bytes", self.columns.bytes);
        let action = self.action(kind, id, bytes)?;
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

    fn action(&mut self, kind: Cell<'_>, id: Cell<'_>, bytes: Cell<'_>) -> Result<Action, Error> {
        Ok(match kind.text.trim_ascii() {
            "alloc" => self.alloc(id, bytes)?,
            "free" => Action::Free { block: self.block("free", id, bytes, Ledger::free)? },
            "done" => Action::Done { block: self.block("done", id, bytes, Ledger::done)? },
            "record" => Action::Record { block: self.block("record", id, bytes, Ledger::live)? },
            "step" => {
                no_bytes("step", bytes)?;
                self.step(id)?
            }
            "event" => {
                no_bytes("event", bytes)?;
                Action::Signal { mark: self.name(id)? }
            }
            "wait" => {
                no_bytes("wait", bytes)?;
                Action::Wait { mark: self.name(id)? }
            }
            "oom" => Action::OutOfMemory { bytes: Bytes::new(bytes.number()?) },
            other => return Err(kind.error(ErrorKind::UnknownEvent { value: shorten(other) })),
        })
    }

    fn alloc(&mut self, id: Cell<'_>, bytes: Cell<'_>) -> Result<Action, Error> {
        let name = self.name(id)?;
        let bytes = Bytes::new(bytes.number()?);
        let block = self.ledger.alloc(name).map_err(|misfit| misfit_error("alloc", id, &misfit))?;
        self.trace.blocks.push(Block { name, bytes, address: None });
        Ok(Action::Alloc { block })
    }

    fn block(
        &mut self,
        event: &'static str,
        id: Cell<'_>,
        bytes: Cell<'_>,
        find: fn(&mut Ledger, TextIndex) -> Result<BlockIndex, Misfit>,
    ) -> Result<BlockIndex, Error> {
        let name = self.name(id)?;
        let block = find(&mut self.ledger, name).map_err(|misfit| misfit_error(event, id, &misfit))?;
        match bytes.optional_number()? {
            Some(given) if given != 0 && given != self.trace.block(block).bytes.get() => {
                Err(bytes.error(ErrorKind::UnexpectedBytes { event, bytes: given }))
            }
            _ => Ok(block),
        }
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

fn intern(interner: &mut Interner, cell: Cell<'_>) -> Result<TextIndex, Error> {
    interner.intern(cell.text).map_err(|_| cell.error(ErrorKind::FileTooLong { limit: limits::CSV }))
}

fn no_bytes(event: &'static str, bytes: Cell<'_>) -> Result<(), Error> {
    match bytes.optional_number()? {
        None | Some(0) => Ok(()),
        Some(given) => Err(bytes.error(ErrorKind::UnexpectedBytes { event, bytes: given })),
    }
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
