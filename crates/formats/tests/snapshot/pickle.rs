//! What the tests of memory snapshots share: a pickle writer that writes as Python does and as PyTorch's own one does,
//! and the records of a snapshot as items for it.

pub mod reading;

use std::collections::HashMap;

/// A value to write.
#[derive(Clone, Debug)]
pub enum Item {
    Bool(bool),
    Whole(i64),
    Text(String),
    List(Vec<Item>),
    Dict(Vec<(&'static str, Item)>),
    Pair(i64, i64),
    /// Written where it first stands, referred to from then on; known by its number.
    Shared(u32, Box<Item>),
}

impl From<&str> for Item {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Item {
    fn from(whole: u64) -> Self {
        Self::Whole(i64::try_from(whole).expect("a number of a snapshot"))
    }
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `pickle.dump` with this protocol.
    Python(u8),
    /// PyTorch's own writer: protocol 2, everything of a container at once and put into the memo behind it.
    Native,
}

const BATCH: usize = 1_000;

/// `item` as a pickle.
pub fn pickle(item: &Item, style: Style) -> Vec<u8> {
    let mut writer = Writer { style, out: Vec::new(), memo: 0, texts: HashMap::new(), shared: HashMap::new() };
    let protocol = if let Style::Python(protocol) = style { protocol } else { 2 };
    writer.out.extend([0x80, protocol]);
    writer.item(item);
    writer.out.push(b'.');
    writer.out
}

struct Writer {
    style: Style,
    out: Vec<u8>,
    memo: u32,
    texts: HashMap<String, u32>,
    shared: HashMap<u32, u32>,
}

impl Writer {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Bool(value) => self.out.push(if *value { 0x88 } else { 0x89 }),
            Item::Whole(whole) => self.whole(*whole),
            Item::Text(text) => self.text(text),
            Item::List(items) => drop(self.list(items)),
            Item::Dict(pairs) => drop(self.dict(pairs)),
            Item::Pair(first, second) => {
                self.whole(*first);
                self.whole(*second);
                self.out.push(0x86);
                self.memoize();
            }
            Item::Shared(number, item) => match (self.shared.get(number), &**item) {
                (Some(&entry), _) => self.get(entry),
                (None, Item::List(items)) => {
                    let entry = self.list(items);
                    self.shared.insert(*number, entry);
                }
                (None, Item::Dict(pairs)) => {
                    let entry = self.dict(pairs);
                    self.shared.insert(*number, entry);
                }
                (None, other) => self.item(other),
            },
        }
    }

    fn whole(&mut self, whole: i64) {
        match whole {
            0..=0xff => self.out.extend([b'K', whole as u8]),
            0x100..=0xffff => {
                self.out.push(b'M');
                self.out.extend((whole as u16).to_le_bytes());
            }
            _ => {
                if let Ok(short) = i32::try_from(whole) {
                    self.out.push(b'J');
                    self.out.extend(short.to_le_bytes());
                } else {
                    self.out.extend([0x8a, 8]);
                    self.out.extend(whole.to_le_bytes());
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(&entry) = self.texts.get(text) {
            return self.get(entry);
        }
        match self.style {
            Style::Python(4..) if text.len() < 256 => self.out.extend([0x8c, text.len() as u8]),
            _ => {
                self.out.push(b'X');
                self.out.extend((text.len() as u32).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        let entry = self.memoize();
        self.texts.insert(text.to_owned(), entry);
    }

    fn list(&mut self, items: &[Item]) -> u32 {
        self.out.push(b']');
        if self.style == Style::Native {
            self.out.push(b'(');
            self.items(items);
            self.out.push(b'e');
            return self.memoize();
        }
        let entry = self.memoize();
        for batch in items.chunks(BATCH) {
            if let [item] = batch {
                self.item(item);
                self.out.push(b'a');
            } else {
                self.out.push(b'(');
                self.items(batch);
                self.out.push(b'e');
            }
        }
        entry
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn dict(&mut self, pairs: &[(&'static str, Item)]) -> u32 {
        self.out.push(b'}');
        let entry = if self.style == Style::Native { None } else { Some(self.memoize()) };
        if let ([(key, value)], Some(_)) = (pairs, entry) {
            self.text(key);
            self.item(value);
            self.out.push(b's');
        } else if !pairs.is_empty() {
            self.out.push(b'(');
            for (key, value) in pairs {
                self.text(key);
                self.item(value);
            }
            self.out.push(b'u');
        }
        entry.unwrap_or_else(|| self.memoize())
    }

    fn memoize(&mut self) -> u32 {
        let entry = self.memo;
        self.memo += 1;
        match (self.style, u8::try_from(entry)) {
            (Style::Python(4..), _) => self.out.push(0x94),
            (_, Ok(entry)) => self.out.extend([b'q', entry]),
            (_, Err(_)) => {
                self.out.push(b'r');
                self.out.extend(entry.to_le_bytes());
            }
        }
        entry
    }

    fn get(&mut self, entry: u32) {
        if let Ok(entry) = u8::try_from(entry) {
            self.out.extend([b'h', entry]);
        } else {
            self.out.push(b'j');
            self.out.extend(entry.to_le_bytes());
        }
    }
}

/// A frame of a stack.
pub fn frame(name: &str, file: &str, line: u64) -> Item {
    Item::Dict(vec![("name", name.into()), ("filename", file.into()), ("line", line.into())])
}

/// An event at `time` microseconds; a lack of memory has what the device had left in place of its address.
pub fn event(action: &str, address: u64, bytes: u64, stream: u64, time: u64, frames: Item) -> Item {
    Item::Dict(vec![
        ("action", action.into()),
        (if action == "oom" { "device_free" } else { "addr" }, address.into()),
        ("size", bytes.into()),
        ("stream", stream.into()),
        ("time_us", time.into()),
        ("compile_context", "N/A".into()),
        ("user_metadata", "".into()),
        ("frames", frames),
    ])
}

/// A block of a segment.
pub fn block(address: u64, bytes: u64, requested: u64, state: &str, frames: Item) -> Item {
    Item::Dict(vec![
        ("address", address.into()),
        ("size", bytes.into()),
        ("requested_size", requested.into()),
        ("state", state.into()),
        ("frames", frames),
    ])
}

/// A segment.
pub fn segment(device: u64, address: u64, bytes: u64, stream: u64, pool: (i64, i64), blocks: Vec<Item>) -> Item {
    Item::Dict(vec![
        ("device", device.into()),
        ("address", address.into()),
        ("total_size", bytes.into()),
        ("stream", stream.into()),
        ("segment_type", "large".into()),
        ("segment_pool_id", Item::Pair(pool.0, pool.1)),
        ("is_expandable", Item::Bool(false)),
        ("frames", Item::Shared(u32::MAX, Box::new(Item::List(Vec::new())))),
        ("blocks", Item::List(blocks)),
    ])
}

/// The begin or the end of something that the program does.
pub fn annotation(stage: &str, name: &str, time: u64) -> Item {
    Item::Dict(vec![
        ("stage", stage.into()),
        ("name", name.into()),
        ("device", Item::Whole(0)),
        ("time_us", time.into()),
    ])
}

/// A snapshot of these segments, events per device and annotations.
pub fn snapshot(segments: Vec<Item>, traces: Vec<Vec<Item>>, annotations: Vec<Item>) -> Item {
    Item::Dict(vec![
        ("segments", Item::List(segments)),
        ("device_traces", Item::List(traces.into_iter().map(Item::List).collect())),
        ("allocator_settings", Item::Dict(vec![("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64".into())])),
        ("external_annotations", Item::List(annotations)),
    ])
}

/// No frames.
pub fn no_frames() -> Item {
    Item::List(Vec::new())
}
