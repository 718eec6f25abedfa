//! Trace CSV row by row, for a recorder that does not hold the run in memory. Rows are packed piece by piece, each piece
//! a whole gzip member, so that whatever was written before a program died can be read.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// One row of a trace, as it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRow<'a> {
    /// What happened: `alloc`, `free`, `record`, `step` or `oom`.
    pub event: &'static str,
    /// The number of the block or of the step; none in an `oom` row.
    pub id: Option<u64>,
    /// The bytes of the block, in its `alloc` row, or those that were asked for in vain.
    pub bytes: Option<u64>,
    /// The stream, where the row is about one.
    pub stream: Option<u64>,
    /// Nanoseconds from the start of the recording.
    pub time_ns: u64,
    /// The device, where it is not the host.
    pub device: Option<u32>,
    /// The thread.
    pub thread: u64,
    /// What the memory is for, or nothing.
    pub category: &'a str,
    /// Where in the program, or nothing.
    pub site: &'a str,
}

/// Rows as text, from the header on.
#[derive(Debug)]
pub struct TraceRows {
    text: Vec<u8>,
}

impl Default for TraceRows {
    fn default() -> Self {
        Self { text: b"event,id,bytes,stream,time_ns,device,thread,category,site\n".to_vec() }
    }
}

impl TraceRows {
    /// Adds a row.
    pub fn push(&mut self, row: &TraceRow<'_>) {
        self.text.extend_from_slice(row.event.as_bytes());
        for number in [row.id, row.bytes, row.stream, Some(row.time_ns), row.device.map(u64::from), Some(row.thread)] {
            self.text.push(b',');
            if let Some(number) = number {
                // Writing to a vector does not fail.
                let _ = write!(self.text, "{number}");
            }
        }
        for text in [row.category, row.site] {
            self.text.push(b',');
            self.push_field(text);
        }
        self.text.push(b'\n');
    }

    /// How many bytes of text were added since the last [`take`](Self::take).
    pub fn pending(&self) -> usize {
        self.text.len()
    }

    /// The text so far; what is added later is behind it.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }

    fn push_field(&mut self, text: &str) {
        if !text.contains(['"', ',', '\n', '\r']) {
            self.text.extend_from_slice(text.as_bytes());
            return;
        }
        self.text.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                self.text.push(byte);
            }
            self.text.push(byte);
        }
        self.text.push(b'"');
    }
}

/// `text` as a gzip member of its own; members one behind the other are one gzip file.
pub fn gzip_member(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    packed.write_all(text)?;
    packed.finish()
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Action, Bytes, StepIndex};

    use super::*;
    use crate::Input;

    const ROW: TraceRow<'_> = TraceRow {
        event: "alloc",
        id: Some(7),
        bytes: Some(4096),
        stream: Some(3),
        time_ns: 12,
        device: Some(1),
        thread: 2,
        category: "forward",
        site: "a \"b\", c.py:3 f",
    };

    #[test]
    fn what_was_written_before_the_end_is_read() {
        let mut rows = TraceRows::default();
        rows.push(&ROW);
        let mut file = gzip_member(&rows.take()).unwrap();
        let none = TraceRow { bytes: None, stream: None, device: None, category: "", site: "", ..ROW };
        rows.push(&TraceRow { event: "free", ..none });
        rows.push(&TraceRow { event: "step", id: Some(1), ..none });
        rows.push(&TraceRow { event: "oom", id: None, bytes: Some(9), ..none });
        assert!(rows.pending() > 0);
        file.extend(gzip_member(&rows.take()).unwrap());
        let Ok(Input::Trace(trace)) = Input::read(&*file) else { panic!("not a trace") };
        let actions: Vec<Action> = trace.events.iter().map(|event| event.action).collect();
        assert!(matches!(
            actions[..],
            [
                Action::Alloc { .. },
                Action::Free { .. },
                Action::Step { step: StepIndex(1) },
                Action::OutOfMemory { bytes }
            ] if bytes == Bytes::new(9)
        ));
        let first = &trace.events[0];
        assert_eq!((first.stream.0, first.time_ns, first.device, first.thread), (3, Some(12), Some(1), Some(2)));
        assert_eq!(first.site.map(|site| trace.text(site)), Some(ROW.site));
        assert_eq!(trace.events[1].device, None);
    }
}
