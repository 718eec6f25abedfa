//! A snapshot is read in memory that grows with its events and their distinct stacks, not with its bytes: nearly all of a
//! pickle are frames, and every one of them is a dict of its own.

use std::io::{self, Read};

use lowtide_formats::{Input, Note};

const EVENTS: u64 = 60_000;
const FRAMES: u64 = 40;
const BATCH: u64 = 1_000;

/// A pickle of about 60 MB that is made as it is read: blocks that come and go, with frames as dicts of their own.
struct Snapshot {
    part: Vec<u8>,
    taken: usize,
    events: u64,
    memo: u32,
    bytes: u64,
}

impl Snapshot {
    fn new() -> Self {
        let mut snapshot = Self { part: vec![0x80, 4], taken: 0, events: 0, memo: 0, bytes: 0 };
        snapshot.part.extend(b"}(");
        snapshot.text("segments");
        snapshot.part.push(b']');
        snapshot.text("device_traces");
        snapshot.part.extend(b"](]");
        snapshot
    }

    fn text(&mut self, text: &str) {
        self.part.extend([0x8c, text.len() as u8]);
        self.part.extend(text.as_bytes());
    }

    fn whole(&mut self, whole: u64) {
        self.part.extend([0x8a, 8]);
        self.part.extend(whole.to_le_bytes());
    }

    fn memoize(&mut self) {
        self.part.push(0x94);
        self.memo += 1;
    }

    fn event(&mut self) {
        let (turn, number) = (self.events % 2, self.events / 2);
        self.part.push(b'}');
        self.memoize();
        self.part.push(b'(');
        self.text("action");
        self.text(if turn == 0 { "alloc" } else { "free_completed" });
        for (key, value) in [("addr", 512 * (number % 64)), ("size", 500), ("time_us", self.events)] {
            self.text(key);
            self.whole(value);
        }
        self.text("frames");
        self.part.push(b']');
        self.memoize();
        self.part.push(b'(');
        for depth in 0..FRAMES {
            self.part.push(b'}');
            self.memoize();
            self.part.push(b'(');
            self.text("name");
            self.text("forward");
            self.text("filename");
            self.text("model.py");
            self.text("line");
            self.whole(depth + number % 16);
            self.part.push(b'u');
        }
        self.part.extend(b"eu");
    }

    fn refill(&mut self) {
        self.part.clear();
        self.taken = 0;
        if self.events > EVENTS {
            return;
        }
        self.part.push(b'(');
        for _ in 0..BATCH.min(EVENTS - self.events) {
            self.event();
            self.events += 1;
        }
        self.part.push(b'e');
        if self.events == EVENTS {
            self.part.extend(b"eu.");
            self.events += 1;
        }
    }
}

impl Read for Snapshot {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.part.len() {
            self.refill();
        }
        let read = (&self.part[self.taken..]).read(buffer)?;
        self.taken += read;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The most memory that this process has had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

#[test]
fn sixty_megabytes_are_read_in_a_small_part_of_that() {
    let before = peak_memory();
    let mut source = Snapshot::new();
    let Ok(Input::Snapshot(snapshot)) = Input::read(&mut source) else { panic!("it is a snapshot") };
    let after = peak_memory();
    assert!(source.bytes > 60_000_000, "{} bytes", source.bytes);
    assert_eq!(snapshot.trace.blocks.len() as u64, EVENTS / 2);
    assert!(!snapshot.notes.contains(&Note::NoHistory));
    match (before, after) {
        (Some(before), Some(after)) => {
            let grown = after - before;
            assert!(grown < 30 << 20, "{grown} bytes were needed for {}", source.bytes);
        }
        _ => lowtide_testing::skip("this system does not say how much memory a process needed"),
    }
}
