//! Files without a name, in memory or in a folder, whose space is taken and given back in parts.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;

/// A file in memory.
pub(crate) fn in_memory() -> io::Result<File> {
    Ok(memfd_create(c"lowtide", MemfdFlags::CLOEXEC)?.into())
}

/// A file that is gone when it is closed: without a name where the file system knows how, otherwise its name is removed.
pub(crate) fn nameless(folder: &Path) -> io::Result<File> {
    let unnamed = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    match unnamed {
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::OPNOTSUPP | Errno::ISDIR)) => {
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

/// Takes space for a part of a file now.
pub(crate) fn fill(file: &File, offset: u64, bytes: Bytes) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), offset, bytes.get())?)
}

/// Gives the space of a part of a file back; the file stays as long as it is.
pub(crate) fn punch(file: &File, offset: u64, bytes: Bytes) -> io::Result<()> {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, hole, offset, bytes.get())?)
}

/// Whether there was no space for more.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::FBIG | Errno::NOMEM | Errno::DQUOT))
}
