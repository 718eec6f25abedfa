//! The trace as it is written row by row. Texts come in the order in which a reader of the trace as CSV would meet them,
//! so that what is written and read again is the same.

use std::collections::HashMap;

use lowtide_core::{
    Action, AddressRange, Block, BlockIndex, Bytes, Event, ExtraColumn, RangeIndex, StreamId, TextIndex, Trace,
};

use super::columns::{self, Column};
use super::sites::{self, Sites};
use super::texts::Texts;
use crate::reading::interner::TooManyTexts;
use crate::snapshot::contents::{ABSENT, Contents, Context, UNRECORDED};
use crate::snapshot::note::Note;
use crate::{Error, ErrorKind, limits};

/// What a row has beside its action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) stream: u64,
    pub(crate) time_ns: Option<u64>,
    pub(crate) device: u32,
    pub(crate) category: Option<&'static str>,
    pub(crate) stack: u32,
    pub(crate) context: Option<Context>,
    pub(crate) pool: u32,
    /// What the device had left, where that was recorded.
    pub(crate) device_free: u64,
}

impl Row {
    /// A row with nothing but its place.
    pub(crate) fn new(device: u32, stream: u64, time_ns: Option<u64>) -> Self {
        let (stack, pool, device_free) = (ABSENT, ABSENT, UNRECORDED);
        Self { stream, time_ns, device, category: None, stack, context: None, pool, device_free }
    }
}

/// A trace under construction.
pub(crate) struct Rows<'a> {
    contents: &'a Contents,
    trace: Trace,
    texts: Texts,
    sites: Sites,
    /// The texts of stacks that were needed; nothing for a stack without one.
    known_sites: HashMap<u32, Option<TextIndex>>,
    site_bytes: u64,
    columns: Vec<Column>,
    /// The texts of values in these columns that were needed.
    known_values: HashMap<(Column, u32), TextIndex>,
    cut: u64,
    left_out: u64,
}

impl<'a> Rows<'a> {
    /// A trace with these columns and room for so many rows.
    pub(crate) fn new(contents: &'a Contents, columns: Vec<Column>, rows: usize) -> Self {
        let extra = |column: &Column| ExtraColumn { name: column.name().into(), values: Vec::with_capacity(rows) };
        Self {
            contents,
            trace: Trace {
                events: Vec::with_capacity(rows),
                extra: columns.iter().map(extra).collect(),
                ..Trace::default()
            },
            texts: Texts::default(),
            sites: Sites::new(contents),
            known_sites: HashMap::new(),
            site_bytes: 0,
            columns,
            known_values: HashMap::new(),
            cut: 0,
            left_out: 0,
        }
    }

    /// Whether rows say which pool they are about.
    pub(crate) fn has_pools(&self) -> bool {
        self.columns.contains(&Column::Pool)
    }

    /// What memory is for that a stack asks for.
    pub(crate) fn category(&mut self, stack: u32, before_steps: bool) -> Option<&'static str> {
        if stack == ABSENT {
            return None;
        }
        self.sites.category(self.contents, stack, before_steps)
    }

    /// A block begins.
    pub(crate) fn alloc(&mut self, address: u64, bytes: u64, row: Row) -> Result<BlockIndex, Error> {
        let block = BlockIndex(self.trace.blocks.len() as u32);
        let name = self.texts.name().map_err(too_many)?;
        self.trace.blocks.push(Block { name, bytes: Bytes::new(bytes), address: Some(address) });
        self.push(Action::Alloc { block }, row)?;
        Ok(block)
    }

    /// How large a block is.
    pub(crate) fn bytes(&self, block: BlockIndex) -> u64 {
        self.trace.block(block).bytes.get()
    }

    /// A range for a row about the allocator's own memory.
    pub(crate) fn range(&mut self, address: u64, bytes: u64) -> RangeIndex {
        let range = RangeIndex(self.trace.ranges.len() as u32);
        self.trace.ranges.push(AddressRange { address: Some(address), bytes: Bytes::new(bytes) });
        range
    }

    pub(crate) fn push(&mut self, action: Action, row: Row) -> Result<(), Error> {
        if self.trace.events.len() as u64 >= limits::ROWS {
            return Err(Error::new(ErrorKind::TooManyRows { limit: limits::ROWS }));
        }
        let category = row.category.map(|category| self.texts.intern(category)).transpose().map_err(too_many)?;
        let site = self.site(row.stack)?;
        self.trace.events.push(Event {
            action,
            stream: StreamId(row.stream),
            time_ns: row.time_ns,
            device: Some(row.device),
            thread: None,
            category,
            site,
        });
        for place in 0..self.columns.len() {
            let value = self.value(self.columns[place], row)?;
            self.trace.extra[place].values.push(value);
        }
        Ok(())
    }

    /// The text of a stack, where it has one.
    fn site(&mut self, stack: u32) -> Result<Option<TextIndex>, Error> {
        if stack == ABSENT {
            return Ok(None);
        }
        if let Some(&known) = self.known_sites.get(&stack) {
            return Ok(known);
        }
        let site = if self.site_bytes > limits::TEXT_BYTES {
            self.left_out += 1;
            None
        } else {
            let site = self.sites.site(self.contents, stack);
            self.site_bytes += site.text.len() as u64;
            self.cut += u64::from(site.is_cut);
            (!site.text.is_empty()).then(|| self.texts.intern(&site.text)).transpose().map_err(too_many)?
        };
        self.known_sites.insert(stack, site);
        Ok(site)
    }

    /// The value of a row in one of the columns.
    fn value(&mut self, column: Column, row: Row) -> Result<TextIndex, Error> {
        let Some(key) = key(column, row) else { return self.texts.intern("").map_err(too_many) };
        if column == Column::ForwardSite {
            let site = self.site(key)?;
            return site.map_or_else(|| self.texts.intern("").map_err(too_many), Ok);
        }
        if let Some(&known) = self.known_values.get(&(column, key)) {
            return Ok(known);
        }
        let mut text = match column {
            Column::Pool => pool_text(self.contents, key),
            Column::DeviceFree => return self.texts.intern(&row.device_free.to_string()).map_err(too_many),
            _ => self.contents.text_at(key).to_owned(),
        };
        self.cut += u64::from(sites::clip(&mut text));
        let value = self.texts.intern(&text).map_err(too_many)?;
        self.known_values.insert((column, key), value);
        Ok(value)
    }

    /// The trace, and what was cut in it.
    pub(crate) fn finish(self, notes: &mut Vec<Note>) -> Trace {
        if self.cut > 0 {
            notes.push(Note::CutTexts { count: self.cut, limit: sites::TEXT_BYTES as u64 });
        }
        if self.left_out > 0 {
            notes.push(Note::StacksLeftOut { count: self.left_out, limit: limits::TEXT_BYTES });
        }
        Trace { texts: self.texts.into_texts(), ..self.trace }
    }
}

/// What a row has in a column: a text, a stack or a pool.
fn key(column: Column, row: Row) -> Option<u32> {
    let context = row.context;
    let said = |text: u32| columns::is_said(text).then_some(text);
    match column {
        Column::UserMetadata => context.and_then(|context| said(context.user_metadata)),
        Column::CompileContext => context.and_then(|context| said(context.compilation)),
        Column::InternalMetadata => context.and_then(|context| said(context.internal_metadata)),
        Column::ForwardSite => context.map(|context| context.forward_stack).filter(|&stack| stack != ABSENT),
        Column::Pool => Some(row.pool).filter(|&pool| pool != ABSENT),
        Column::DeviceFree => (row.device_free != UNRECORDED).then_some(0),
    }
}

/// A pool's two numbers; nothing for the one that all share.
fn pool_text(contents: &Contents, pool: u32) -> String {
    let (first, second) = contents.pools.get(pool);
    if columns::is_private(contents, pool) { format!("{first}:{second}") } else { String::new() }
}

fn too_many(_: TooManyTexts) -> Error {
    Error::new(ErrorKind::TooManyRows { limit: limits::ROWS })
}
