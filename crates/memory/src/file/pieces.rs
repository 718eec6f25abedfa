//! Pieces of a file mapped into reserved addresses. A piece that is mapped twice shows the same bytes twice, and one
//! without an address gives its bytes back to the file system; the file is one in memory or one on a disk.

#![expect(unsafe_code, reason = "maps files into addresses")]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lowtide_core::Bytes;

use crate::error::Error;
use crate::file::extents::Extents;
use crate::source::Span;
use crate::system::{pages, scratch};

/// A piece, by where it begins in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    offset: u64,
}

/// A file that is handed out in pieces.
#[derive(Debug)]
pub(crate) struct Pieces {
    file: File,
    granularity: Bytes,
    /// Whether space is taken when a piece is made, so that a full disk is an error and not a signal.
    fills: bool,
    /// Whether a piece that goes back leaves a hole.
    punches: bool,
    extents: Mutex<Extents>,
}

impl Pieces {
    /// A file in memory. Its bytes are taken when they are first touched.
    pub(crate) fn in_memory(granularity: Bytes) -> Result<Self, Error> {
        check_granularity(granularity)?;
        let file =
            scratch::in_memory().map_err(|error| Error::Refused { call: "memfd_create", why: error.to_string() })?;
        Ok(Self { file, granularity, fills: false, punches: true, extents: Mutex::default() })
    }

    /// A file without a name in `folder`. What its file system cannot do is said, a sentence each.
    pub(crate) fn in_folder(folder: &Path, granularity: Bytes) -> Result<(Self, Vec<String>), Error> {
        check_granularity(granularity)?;
        let file = scratch::nameless(folder).map_err(|error| Error::Refused {
            call: "open",
            why: format!("no scratch file can be made in `{}`: {error}", folder.display()),
        })?;
        let mut said = Vec::new();
        let fills = scratch::fill(&file, 0, granularity).is_ok();
        if !fills {
            said.push(format!(
                "space was asked for in advance in `{}`, which its file system cannot give; it is taken when it is first \
                 written, and a full disk then ends the program; choose a folder on ext4, xfs, btrfs or tmpfs",
                folder.display()
            ));
        }
        let punches = scratch::punch(&file, 0, granularity).is_ok();
        if !punches {
            said.push(format!(
                "space that goes back was to leave a hole in `{}`, which its file system cannot make; it is used again, \
                 and given back at the end; choose a folder on ext4, xfs, btrfs or tmpfs",
                folder.display()
            ));
        }
        Ok((Self { file, granularity, fills, punches, extents: Mutex::default() }, said))
    }

    /// Addresses for pieces.
    pub(crate) fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        pages::reserve(bytes, self.granularity)
    }

    /// Gives addresses back.
    pub(crate) fn release(span: Span) -> Result<(), Error> {
        // SAFETY: the mapper releases only what `reserve` gave, once, with nothing mapped in it.
        unsafe { pages::release(span) }
    }

    /// Takes a piece of the file.
    pub(crate) fn create(&self, bytes: Bytes) -> Result<Piece, Error> {
        let mut extents = self.extents.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, end) = extents.take(bytes).ok_or(Error::OutOfMemory { asked: bytes })?;
        let fill = || if self.fills { scratch::fill(&self.file, offset, bytes) } else { Ok(()) };
        let taken = self.grow_to(end).and_then(|()| fill());
        if let Err(error) = taken {
            extents.give(offset, bytes);
            return Err(if scratch::is_full(&error) {
                Error::OutOfMemory { asked: bytes }
            } else {
                Error::Refused { call: "fallocate", why: error.to_string() }
            });
        }
        Ok(Piece { offset })
    }

    /// Gives a piece back.
    pub(crate) fn destroy(&self, piece: Piece, bytes: Bytes) -> Result<(), Error> {
        if self.punches {
            scratch::punch(&self.file, piece.offset, bytes)
                .map_err(|error| Error::Refused { call: "fallocate", why: error.to_string() })?;
        }
        self.extents.lock().unwrap_or_else(PoisonError::into_inner).give(piece.offset, bytes);
        Ok(())
    }

    /// Shows a piece at reserved addresses.
    pub(crate) fn map(&self, piece: Piece, span: Span) -> Result<(), Error> {
        // SAFETY: the mapper maps only into its own reserved and vacant addresses; the file is at least as long as the
        // end of the piece.
        unsafe { pages::map_file(self.file.as_fd(), piece.offset, span) }
    }

    /// Leaves the addresses reserved and empty.
    pub(crate) fn unmap(span: Span) -> Result<(), Error> {
        // SAFETY: the mapper unmaps only what it mapped.
        unsafe { pages::vacate(span) }
    }

    /// What the file takes of its file system now.
    pub(crate) fn occupied(&self) -> Result<Bytes, Error> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| Error::Refused { call: "fstat", why: error.to_string() })?;
        Ok(Bytes::new(metadata.blocks() * 512))
    }

    fn grow_to(&self, end: u64) -> std::io::Result<()> {
        if self.file.metadata()?.len() < end { self.file.set_len(end) } else { Ok(()) }
    }
}

fn check_granularity(granularity: Bytes) -> Result<(), Error> {
    if granularity.get().is_power_of_two() && granularity >= pages::page_size() {
        return Ok(());
    }
    let why = format!("pieces of {granularity} are no power of two of at least {}", pages::page_size());
    Err(Error::Refused { call: "mmap", why })
}
