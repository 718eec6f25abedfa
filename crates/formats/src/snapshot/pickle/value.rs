//! What stands on the machine's stack: small handles, never trees. A dict or list that is complete is already the
//! record it stands for, or forgotten but for its type.

/// A value of the pickle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Whole(i64),
    /// A text, by its place among the texts.
    Text(u32),
    /// A tuple of two whole numbers, by its place among the pools.
    Pair(u32),
    /// A line of a stack.
    Frame(u32),
    /// A list of frames.
    Stack(u32),
    /// A record that belongs into a list.
    Record(Sort, u32),
    /// A list of records, by its place among the runs.
    Run(u32),
    /// The allocator's settings, by the text of them that a user gives.
    Settings(u32),
    /// The whole snapshot.
    Snapshot,
    EmptyList,
    /// A dict that is not yet filled, with its entry in the memo.
    OpenDict(Option<u32>),
    /// A list that may get more items, by its slot.
    OpenList(u32),
    /// Anything of which only the type matters.
    Opaque(Opaque),
}

/// A kind of record that belongs into a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Event,
    Block,
    Segment,
    Annotation,
    /// The events of one device.
    Trace,
}

/// A type whose values mean nothing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opaque {
    Nothing,
    True,
    False,
    Float,
    LargeNumber,
    Tuple,
    List,
    Dict,
}

const INDEX_BITS: u32 = 27;
const SORTS: [Sort; 5] = [Sort::Event, Sort::Block, Sort::Segment, Sort::Annotation, Sort::Trace];
const OPAQUES: [Opaque; 8] = [
    Opaque::Nothing,
    Opaque::True,
    Opaque::False,
    Opaque::Float,
    Opaque::LargeNumber,
    Opaque::Tuple,
    Opaque::List,
    Opaque::Dict,
];

impl Value {
    /// Its type, in words for a message.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Whole(_) => "a whole number",
            Self::Text(_) => "text",
            Self::Pair(_) | Self::Opaque(Opaque::Tuple) => "a tuple",
            Self::Frame(_) | Self::Settings(_) | Self::OpenDict(_) | Self::Opaque(Opaque::Dict) => "a dict",
            Self::Record(sort, _) => sort.one(),
            Self::Stack(_) => "a list of frames",
            Self::Snapshot => "a snapshot",
            Self::EmptyList => "an empty list",
            Self::Run(_) | Self::OpenList(_) | Self::Opaque(Opaque::List) => "a list",
            Self::Opaque(Opaque::Nothing) => "None",
            Self::Opaque(Opaque::True | Opaque::False) => "a truth value",
            Self::Opaque(Opaque::Float) => "a fraction",
            Self::Opaque(Opaque::LargeNumber) => "a number beyond 63 bits",
        }
    }

    /// The value in four bytes, as the memo keeps it; nothing for a whole number or an index beyond 27 bits.
    pub(crate) fn pack(self) -> Option<u32> {
        let (tag, index) = match self {
            Self::Whole(_) => return None,
            Self::Text(index) => (1, index),
            Self::Pair(index) => (2, index),
            Self::Frame(index) => (3, index),
            Self::Stack(index) => (4, index),
            Self::Run(index) => (5, index),
            Self::Settings(index) => (6, index),
            Self::Snapshot => (7, 0),
            Self::EmptyList => (8, 0),
            Self::OpenDict(_) => (9, 0),
            Self::OpenList(slot) => (10, slot),
            Self::Opaque(opaque) => (11, opaque as u32),
            Self::Record(sort, index) => (12 + sort as u32, index),
        };
        (index < 1 << INDEX_BITS).then_some(tag << INDEX_BITS | index)
    }

    /// What was packed, or the place among the memo's numbers.
    pub(crate) fn unpack(packed: u32) -> Result<Self, usize> {
        let (tag, index) = (packed >> INDEX_BITS, packed & ((1 << INDEX_BITS) - 1));
        Ok(match tag {
            1 => Self::Text(index),
            2 => Self::Pair(index),
            3 => Self::Frame(index),
            4 => Self::Stack(index),
            5 => Self::Run(index),
            6 => Self::Settings(index),
            7 => Self::Snapshot,
            8 => Self::EmptyList,
            9 => Self::OpenDict(None),
            10 => Self::OpenList(index),
            11 => Self::Opaque(OPAQUES[index as usize]),
            12.. => Self::Record(SORTS[tag as usize - 12], index),
            0 => return Err(index as usize),
        })
    }
}

impl Sort {
    /// One of it, in words for a message.
    pub(crate) fn one(self) -> &'static str {
        match self {
            Self::Event => "an event",
            Self::Block => "a block",
            Self::Segment => "a segment",
            Self::Annotation => "an annotation",
            Self::Trace => "a list of events",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_but_a_number_comes_back_from_four_bytes() {
        let most = (1 << INDEX_BITS) - 1;
        let mut values = vec![Value::Snapshot, Value::EmptyList, Value::OpenDict(None)];
        values.extend([Value::Text, Value::Pair, Value::Frame, Value::Stack].map(|make| make(most)));
        values.extend([Value::Run, Value::Settings, Value::OpenList].map(|make| make(7)));
        values.extend(SORTS.map(|sort| Value::Record(sort, most)));
        values.extend(OPAQUES.map(Value::Opaque));
        for value in values {
            assert_eq!(value.pack().map(Value::unpack), Some(Ok(value)));
        }
        assert_eq!((Value::Whole(1).pack(), Value::Text(1 << INDEX_BITS).pack()), (None, None));
        assert_eq!(Value::unpack(5), Err(5));
        assert!(size_of::<Value>() <= 16);
    }
}
