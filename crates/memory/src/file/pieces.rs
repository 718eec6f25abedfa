//! Pieces of a file mapped into reserved addresses. A piece that is mapped twice shows the same bytes twice, and one
//! without an address gives its bytes back to the file system; the file is one in memory or one on a disk.

#![expect(unsafe_code, reason = "maps files into addresses")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lowtide_core::Bytes;

use crate::error::Error;
use crate::file::extents::Extents;
use crate::source::Span;
use crate::system::pages;

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
        // SAFETY: the name is a C string that lives as long as the program.
        let descriptor = unsafe { libc::memfd_create(c"lowtide".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(pages::refusal("memfd_create", None));
        }
        // SAFETY: the call has just opened the descriptor and nobody else has it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        Ok(Self { file, granularity, fills: false, punches: true, extents: Mutex::default() })
    }

    /// A file without a name in `folder`. What its file system cannot do is said, a sentence each.
    pub(crate) fn in_folder(folder: &Path, granularity: Bytes) -> Result<(Self, Vec<String>), Error> {
        check_granularity(granularity)?;
        let file = nameless(folder).map_err(|error| Error::Refused {
            call: "open",
            why: format!("no scratch file can be made in `{}`: {error}", folder.display()),
        })?;
        let mut said = Vec::new();
        let fills = allocate(&file, 0, 0, granularity).is_ok();
        if !fills {
            said.push(format!(
                "space was asked for in advance in `{}`, which its file system cannot give; it is taken when it is first \
                 written, and a full disk then ends the program; choose a folder on ext4, xfs, btrfs or tmpfs",
                folder.display()
            ));
        }
        let punches = allocate(&file, HOLE, 0, granularity).is_ok();
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
        let fill = || if self.fills { allocate(&self.file, 0, offset, bytes) } else { Ok(()) };
        let taken = self.grow_to(end).and_then(|()| fill());
        if let Err(error) = taken {
            extents.give(offset, bytes);
            return Err(match error.raw_os_error() {
                Some(libc::ENOSPC | libc::EFBIG | libc::ENOMEM | libc::EDQUOT) => Error::OutOfMemory { asked: bytes },
                _ => Error::Refused { call: "fallocate", why: error.to_string() },
            });
        }
        Ok(Piece { offset })
    }

    /// Gives a piece back.
    pub(crate) fn destroy(&self, piece: Piece, bytes: Bytes) -> Result<(), Error> {
        if self.punches {
            allocate(&self.file, HOLE, piece.offset, bytes)
                .map_err(|error| Error::Refused { call: "fallocate", why: error.to_string() })?;
        }
        self.extents.lock().unwrap_or_else(PoisonError::into_inner).give(piece.offset, bytes);
        Ok(())
    }

    /// Shows a piece at reserved addresses.
    pub(crate) fn map(&self, piece: Piece, span: Span) -> Result<(), Error> {
        // SAFETY: the mapper maps only into its own reserved and vacant addresses; the file is at least as long as the
        // end of the piece.
        unsafe { pages::map_file(self.file.as_raw_fd(), piece.offset, span) }
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

const HOLE: c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

fn check_granularity(granularity: Bytes) -> Result<(), Error> {
    if granularity.get().is_power_of_two() && granularity >= pages::page_size() {
        return Ok(());
    }
    let why = format!("pieces of {granularity} are no power of two of at least {}", pages::page_size());
    Err(Error::Refused { call: "mmap", why })
}

fn allocate(file: &File, mode: c_int, offset: u64, bytes: Bytes) -> std::io::Result<()> {
    let too_large = |_| std::io::Error::from_raw_os_error(libc::EFBIG);
    let offset = i64::try_from(offset).map_err(too_large)?;
    let length = i64::try_from(bytes.get()).map_err(too_large)?;
    // SAFETY: the descriptor is open; the call touches no memory of this process.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A file that is gone when it is closed: without a name where the file system knows how, otherwise its name is removed.
fn nameless(folder: &Path) -> std::io::Result<File> {
    let unnamed = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    match unnamed {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            static MADE: AtomicU64 = AtomicU64::new(0);
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let name = folder.join(format!(".lowtide-{}-{number}", std::process::id()));
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name)?;
            std::fs::remove_file(&name)?;
            Ok(file)
        }
        other => other,
    }
}
