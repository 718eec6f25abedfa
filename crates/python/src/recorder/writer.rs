//! One file, written by a thread of its own: packing costs more than recording. Every piece is written whole, so that the
//! file can be read at any time.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use lowtide_formats::gzip_member;

/// How many pieces may wait; the program waits for the disk when there are more.
const WAITING: usize = 16;

pub(super) struct Writer {
    pieces: SyncSender<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    refused: Option<io::Error>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, is_gzip: bool) -> Self {
        let (pieces, received) = sync_channel::<Vec<u8>>(WAITING);
        let write = move || {
            let mut file = File::create(path)?;
            for text in received {
                let piece = if is_gzip { gzip_member(&text)? } else { text };
                file.write_all(&piece)?;
            }
            Ok(())
        };
        match std::thread::Builder::new().name("lowtide-record".into()).spawn(write) {
            Ok(thread) => Self { pieces, thread: Some(thread), refused: None },
            Err(error) => Self { pieces, thread: None, refused: Some(error) },
        }
    }

    /// Hands a piece on. Where the file could not be written, it is dropped, and [`Writer::finish`] says so.
    pub(super) fn send(&self, text: Vec<u8>) {
        if !text.is_empty() {
            let _ = self.pieces.send(text);
        }
    }

    /// Waits until everything is on its way to the disk.
    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        match (self.thread, self.refused) {
            (Some(thread), _) => thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer broke down"))),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }
}
