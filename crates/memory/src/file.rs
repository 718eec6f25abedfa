//! Memory in a scratch file: what does not fit into the machine's memory can lie on its disk and still have addresses.
//! The file has no name and is gone with the source.

mod extents;
pub(crate) mod pieces;

use std::path::{Path, PathBuf};

use lowtide_core::Bytes;

use crate::error::Error;
use crate::file::pieces::{Piece, Pieces};
use crate::mapper::{Backing, Mapper, NoQueue, source_by_mapper};
use crate::source::{Description, Span};

/// A file that grows as memory is committed and gets holes where it is given back.
#[derive(Debug)]
pub struct ScratchFile {
    mapper: Mapper<Scratch>,
}

impl ScratchFile {
    /// An empty file in `folder`, handed out in multiples of `granularity`, a power of two of at least a page.
    pub fn new(folder: &Path, granularity: Bytes) -> Result<Self, Error> {
        let (pieces, fallbacks) = Pieces::in_folder(folder, granularity)?;
        let scratch = Scratch { pieces, folder: folder.to_owned(), granularity, fallbacks };
        Ok(Self { mapper: Mapper::new(scratch) })
    }

    /// What the file takes of its disk now.
    pub fn occupied(&self) -> Result<Bytes, Error> {
        self.mapper.backing().pieces.occupied()
    }
}

source_by_mapper!(ScratchFile);

#[derive(Debug)]
struct Scratch {
    pieces: Pieces,
    folder: PathBuf,
    granularity: Bytes,
    fallbacks: Vec<String>,
}

impl Backing for Scratch {
    type Handle = Piece;
    type Queue = NoQueue;

    fn describe(&self) -> Description {
        Description {
            name: format!("scratch file in {}", self.folder.display()),
            granularity: self.granularity,
            capacity: None,
            aliases: true,
            relocates: true,
            host_visible: true,
            queued: false,
            fallbacks: self.fallbacks.clone(),
        }
    }

    fn queue(&self) -> &NoQueue {
        &NoQueue
    }

    fn reserve(&self, bytes: Bytes) -> Result<u64, Error> {
        self.pieces.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        Pieces::release(span)
    }

    fn create(&self, bytes: Bytes) -> Result<Piece, Error> {
        self.pieces.create(bytes)
    }

    fn destroy(&self, piece: Piece, bytes: Bytes) -> Result<(), Error> {
        self.pieces.destroy(piece, bytes)
    }

    fn map(&self, piece: Piece, span: Span) -> Result<(), Error> {
        self.pieces.map(piece, span)
    }

    fn unmap(&self, _piece: Piece, span: Span) -> Result<(), Error> {
        Pieces::unmap(span)
    }
}
