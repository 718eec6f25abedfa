//! Dicts to records: which record a dict is follows from its keys, and what it must have is checked as soon as it is
//! complete. A dict that is no record is forgotten.

use super::words::Word;
use super::{
    ABSENT, AnnotationRecord, BlockRecord, Contents, Context, EventRecord, FrameRecord, SegmentRecord, UNRECORDED,
    within,
};
use crate::limits;
use crate::snapshot::pickle::fault::{Halt, PickleFault};
use crate::snapshot::pickle::value::{Opaque, Sort, Value};

type Read<T> = Result<T, Halt>;

/// A type of record: what it is called, and the keys it may have.
struct RecordType {
    one: &'static str,
    keys: u64,
    read: fn(&mut Contents, &Fields<'_>) -> Read<Value>,
}

/// The record that a dict is which has a key; the first key that it has decides.
const RECORDS: [(u64, RecordType); 7] = [
    (
        Word::Filename.bit(),
        RecordType { one: "a frame", keys: Word::bits(&[Word::Name, Word::Filename, Word::Line]), read: frame },
    ),
    (
        Word::Action.bit(),
        RecordType {
            one: "an event",
            keys: Word::bits(&[
                Word::Action,
                Word::Addr,
                Word::Size,
                Word::Stream,
                Word::TimeUs,
                Word::CompileContext,
                Word::UserMetadata,
                Word::InternalMetadata,
                Word::PoolId,
                Word::DeviceFree,
                Word::Frames,
                Word::ForwardFrames,
            ]),
            read: event,
        },
    ),
    (
        Word::Blocks.bit(),
        RecordType {
            one: "a segment",
            keys: Word::bits(&[
                Word::Device,
                Word::Address,
                Word::TotalSize,
                Word::AllocatedSize,
                Word::ActiveSize,
                Word::RequestedSize,
                Word::Stream,
                Word::SegmentType,
                Word::SegmentPoolId,
                Word::IsExpandable,
                Word::Blocks,
                Word::Frames,
            ]),
            read: segment,
        },
    ),
    (
        Word::State.bit(),
        RecordType {
            one: "a block",
            keys: Word::bits(&[Word::Address, Word::Size, Word::RequestedSize, Word::State, Word::Frames]),
            read: block,
        },
    ),
    (
        Word::Stage.bit(),
        RecordType {
            one: "an annotation",
            keys: Word::bits(&[Word::Stage, Word::Name, Word::Device, Word::TimeUs]),
            read: annotation,
        },
    ),
    (
        Word::Segments.bit(),
        RecordType {
            one: "the snapshot",
            keys: Word::bits(&[
                Word::Segments,
                Word::DeviceTraces,
                Word::AllocatorSettings,
                Word::ExternalAnnotations,
                Word::HostSegments,
                Word::HostTraces,
            ]),
            read: snapshot,
        },
    ),
    (
        Word::bits(&[Word::CudaSettings, Word::AnySettings]),
        RecordType { one: "the settings", keys: u64::MAX, read: settings },
    ),
];

/// The keys of a frame, in the order in which PyTorch writes them.
const NAME: Value = Value::Text(Word::Name as u32);
const FILENAME: Value = Value::Text(Word::Filename as u32);
const LINE: Value = Value::Text(Word::Line as u32);

/// What the dict of these keys and values, one behind the other, stands for.
pub(crate) fn read(contents: &mut Contents, pairs: &[Value]) -> Read<Value> {
    // Nearly all dicts are frames, and these look like this.
    if let &[NAME, Value::Text(name), FILENAME, Value::Text(file), LINE, Value::Whole(line)] = pairs {
        return add_frame(contents, FrameRecord { name, file, line: u32::try_from(line).unwrap_or(0) });
    }
    let keys = pairs.iter().step_by(2).fold(0, |keys, &key| keys | bit(key));
    let Some((_, record)) = RECORDS.iter().find(|(mark, _)| keys & mark != 0) else {
        return Ok(Value::Opaque(Opaque::Dict));
    };
    for &key in pairs.iter().step_by(2) {
        if bit(key) & record.keys == 0 && record.keys != u64::MAX {
            contents.unread.count(record.one, if let Value::Text(text) = key { text } else { Word::Unknown.place() });
        }
    }
    (record.read)(contents, &Fields { one: record.one, pairs })
}

/// The bit of a key that is a known one.
fn bit(key: Value) -> u64 {
    match key {
        Value::Text(text) if text <= Word::AnySettings.place() => 1 << text,
        _ => 0,
    }
}

/// The values of a dict by their keys.
struct Fields<'a> {
    one: &'static str,
    pairs: &'a [Value],
}

impl Fields<'_> {
    /// The value of a key; of a key that is there twice, the last one.
    fn get(&self, key: Word) -> Option<Value> {
        let key = Value::Text(key.place());
        self.pairs.chunks_exact(2).rev().find(|pair| pair[0] == key).map(|pair| pair[1])
    }

    fn require(&self, key: Word) -> Read<Value> {
        self.get(key).ok_or_else(|| PickleFault::MissingKey { record: self.one, key: key.text() }.into())
    }

    fn wrong(&self, key: Word, expected: &'static str, found: Value) -> Halt {
        PickleFault::WrongType { record: self.one, key: key.text(), expected, found: found.describe() }.into()
    }

    /// A number from 0 to `most`.
    fn number(&self, key: Word, value: Value, most: i64) -> Read<u64> {
        match value {
            Value::Whole(whole) if (0..=most).contains(&whole) => Ok(whole as u64),
            Value::Whole(value) => {
                Err(PickleFault::OutOfRange { record: self.one, key: key.text(), value, most }.into())
            }
            other => Err(self.wrong(key, "a whole number", other)),
        }
    }

    fn whole(&self, key: Word) -> Read<u64> {
        self.number(key, self.require(key)?, i64::MAX)
    }

    fn optional_whole(&self, key: Word) -> Read<Option<u64>> {
        self.get(key).map(|value| self.number(key, value, i64::MAX)).transpose()
    }

    fn device(&self) -> Read<u32> {
        let value = self.get(Word::Device).unwrap_or(Value::Whole(0));
        self.number(Word::Device, value, limits::DEVICES as i64 - 1).map(|device| device as u32)
    }

    fn text(&self, key: Word) -> Read<u32> {
        match self.require(key)? {
            Value::Text(text) => Ok(text),
            other => Err(self.wrong(key, "text", other)),
        }
    }

    fn optional_text(&self, key: Word) -> Read<u32> {
        match self.get(key) {
            None | Some(Value::Opaque(Opaque::Nothing)) => Ok(Word::Nothing.place()),
            Some(_) => self.text(key),
        }
    }

    fn stack(&self, key: Word) -> Read<u32> {
        match self.get(key) {
            None | Some(Value::EmptyList | Value::Opaque(Opaque::Nothing)) => Ok(ABSENT),
            Some(Value::Stack(stack)) => Ok(stack),
            Some(other) => Err(self.wrong(key, "a list of frames", other)),
        }
    }

    fn pool(&self, key: Word) -> Read<u32> {
        match self.get(key) {
            None | Some(Value::Opaque(Opaque::Nothing)) => Ok(ABSENT),
            Some(Value::Pair(pool)) => Ok(pool),
            Some(other) => Err(self.wrong(key, "a tuple of two whole numbers", other)),
        }
    }

    /// A line; zero where there is none, which compiled code states as a number beyond all lines.
    fn line(&self) -> Read<u32> {
        match self.get(Word::Line) {
            None | Some(Value::Opaque(Opaque::Nothing | Opaque::LargeNumber)) => Ok(0),
            Some(Value::Whole(line)) => Ok(u32::try_from(line).unwrap_or(0)),
            Some(other) => Err(self.wrong(Word::Line, "a whole number", other)),
        }
    }

    fn records(&self, contents: &Contents, key: Word, sort: Sort) -> Read<std::ops::Range<u32>> {
        let value = self.get(key).unwrap_or(Value::EmptyList);
        let expected = match sort {
            Sort::Event => "a list of events",
            Sort::Block => "a list of blocks",
            Sort::Segment => "a list of segments",
            Sort::Annotation => "a list of annotations",
            Sort::Trace => "a list with the events of each device",
        };
        contents.records(value, sort).ok_or_else(|| self.wrong(key, expected, value))
    }
}

fn frame(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let (name, file, line) = (fields.text(Word::Name)?, fields.text(Word::Filename)?, fields.line()?);
    add_frame(contents, FrameRecord { name, file, line })
}

fn add_frame(contents: &mut Contents, frame: FrameRecord) -> Read<Value> {
    let place = contents.frames.intern(frame);
    within(contents.frames.len(), limits::RECORDS, "distinct frames")?;
    Ok(Value::Frame(place))
}

fn event(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let action = fields.text(Word::Action)?;
    let (address, bytes) = match Word::at(action) {
        Some(Word::OutOfMemory) => {
            (fields.optional_whole(Word::DeviceFree)?.unwrap_or(UNRECORDED), fields.whole(Word::Size)?)
        }
        Some(
            Word::Alloc
            | Word::FreeRequested
            | Word::FreeCompleted
            | Word::SegmentAlloc
            | Word::SegmentMap
            | Word::SegmentFree
            | Word::SegmentUnmap,
        ) => (fields.whole(Word::Addr)?, fields.whole(Word::Size)?),
        _ => (0, 0),
    };
    let context = Context {
        user_metadata: fields.optional_text(Word::UserMetadata)?,
        compilation: fields.optional_text(Word::CompileContext)?,
        internal_metadata: fields.optional_text(Word::InternalMetadata)?,
        forward_stack: fields.stack(Word::ForwardFrames)?,
        pool: fields.pool(Word::PoolId)?,
    };
    let event = EventRecord {
        action,
        address,
        bytes,
        stream: fields.optional_whole(Word::Stream)?.unwrap_or(0),
        time_us: fields.optional_whole(Word::TimeUs)?.unwrap_or(UNRECORDED),
        stack: fields.stack(Word::Frames)?,
        context: contents.contexts.intern(context),
    };
    contents.has_room()?;
    let place = contents.events.len();
    contents.events.push(event);
    Ok(Value::Record(Sort::Event, place as u32))
}

fn segment(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let segment = SegmentRecord {
        device: fields.device()?,
        address: fields.whole(Word::Address)?,
        bytes: fields.whole(Word::TotalSize)?,
        stream: fields.optional_whole(Word::Stream)?.unwrap_or(0),
        pool: fields.pool(Word::SegmentPoolId)?,
        stack: fields.stack(Word::Frames)?,
        blocks: fields.records(contents, Word::Blocks, Sort::Block)?,
    };
    contents.use_blocks(&segment.blocks)?;
    contents.has_room()?;
    let place = contents.segments.len();
    contents.segments.push(segment);
    Ok(Value::Record(Sort::Segment, place as u32))
}

fn block(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let bytes = fields.whole(Word::Size)?;
    let block = BlockRecord {
        state: fields.text(Word::State)?,
        stack: fields.stack(Word::Frames)?,
        address: fields.optional_whole(Word::Address)?,
        bytes,
        requested: fields.optional_whole(Word::RequestedSize)?.unwrap_or(bytes),
    };
    if !STATES.map(Word::place).contains(&block.state) {
        contents.unread.count("the states of blocks", block.state);
    }
    contents.has_room()?;
    let place = contents.blocks.len();
    contents.blocks.push(block);
    Ok(Value::Record(Sort::Block, place as u32))
}

const STATES: [Word; 4] = [Word::ActiveAllocated, Word::ActivePendingFree, Word::ActiveAwaitingFree, Word::Inactive];

fn annotation(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let annotation = AnnotationRecord {
        stage: fields.text(Word::Stage)?,
        name: fields.text(Word::Name)?,
        device: fields.device()?,
        time_us: fields.whole(Word::TimeUs)?,
    };
    contents.has_room()?;
    let place = contents.annotations.len();
    contents.annotations.push(annotation);
    Ok(Value::Record(Sort::Annotation, place as u32))
}

/// Settings of which only the text that a user gives is kept.
fn settings(_: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let current = fields.optional_text(Word::CudaSettings)?;
    let newer = fields.optional_text(Word::AnySettings)?;
    Ok(Value::Settings(if newer == Word::Nothing.place() { current } else { newer }))
}

fn snapshot(contents: &mut Contents, fields: &Fields<'_>) -> Read<Value> {
    let host = [Word::HostSegments, Word::HostTraces].map(|key| count_host(contents, fields.get(key)));
    contents.root = super::Root {
        segments: fields.records(contents, Word::Segments, Sort::Segment)?,
        devices: fields.records(contents, Word::DeviceTraces, Sort::Trace)?,
        annotations: fields.records(contents, Word::ExternalAnnotations, Sort::Annotation)?,
        settings: match fields.get(Word::AllocatorSettings) {
            Some(Value::Settings(text)) => Some(text),
            _ => None,
        },
        host: host.iter().sum(),
    };
    Ok(Value::Snapshot)
}

/// How many records there are about pinned host memory, whatever their form.
fn count_host(contents: &Contents, value: Option<Value>) -> u64 {
    let Some(value) = value else { return 0 };
    let sorts = [Sort::Event, Sort::Segment, Sort::Trace];
    let found = sorts.into_iter().find_map(|sort| contents.records(value, sort).map(|records| (sort, records)));
    match found {
        Some((Sort::Trace, traces)) => {
            let traces = &contents.traces[traces.start as usize..traces.end as usize];
            traces.iter().map(|events| events.len() as u64).sum()
        }
        Some((_, records)) => records.len() as u64,
        None => 1,
    }
}
