//! The files of a recording: one for CUDA, one for the CPU, made when there is something to write.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lowtide_cli::verbs::record::inserted;
use lowtide_formats::{TraceRow, TraceRows};

use super::Kind;
use super::writer::Writer;

/// How much text is gathered before it is handed on.
const PIECE: usize = 256 << 10;

pub(super) struct Files {
    path: PathBuf,
    /// Where the names of new files are told.
    list: Option<PathBuf>,
    cpu: Option<Output>,
    cuda: Option<Output>,
}

struct Output {
    path: PathBuf,
    rows: TraceRows,
    writer: Writer,
}

impl Files {
    /// Files beside `path`, whose folder is there.
    pub(super) fn new(path: PathBuf, list: Option<PathBuf>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        match path.parent() {
            Some(folder) if folder.is_dir() => Ok(Self { path, list, cpu: None, cuda: None }),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the folder of {} is not there\nhint: make it first", path.display()),
            )),
        }
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Cpu => self.cpu.is_some(),
            Kind::Cuda => self.cuda.is_some(),
        }
    }

    pub(super) fn push(&mut self, kind: Kind, row: &TraceRow<'_>) {
        if !self.has(kind) {
            self.open(kind);
        }
        let output = match kind {
            Kind::Cpu => &mut self.cpu,
            Kind::Cuda => &mut self.cuda,
        };
        if let Some(output) = output {
            output.rows.push(row);
            if output.rows.pending() >= PIECE {
                output.writer.send(output.rows.take());
            }
        }
    }

    /// Hands on what there is.
    pub(super) fn flush(&mut self) {
        for output in [&mut self.cpu, &mut self.cuda].into_iter().flatten() {
            output.writer.send(output.rows.take());
        }
    }

    /// Begins the file of a kind. What goes wrong is told at the end, when somebody asks.
    fn open(&mut self, kind: Kind) {
        let (path, slot) = match kind {
            Kind::Cpu => (inserted(&self.path, "cpu"), &mut self.cpu),
            Kind::Cuda => (self.path.clone(), &mut self.cuda),
        };
        let path = if self.list.is_some() { unused(&path) } else { path };
        if let Some(list) = &self.list {
            let told = OpenOptions::new().append(true).create(true).open(list).and_then(|mut file| {
                let line = format!("{}\t{}\t{}\n", std::process::id(), name(kind), path.display());
                file.write_all(line.as_bytes())
            });
            // Whoever made the list finds the file by its name too.
            let _ = told;
        }
        let is_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        *slot = Some(Output { writer: Writer::new(path.clone(), is_gzip), path, rows: TraceRows::default() });
    }

    /// Writes the rest, and says which files there are. Where there is only the CPU's and nobody was told of it, it gets
    /// the name that was asked for.
    pub(super) fn finish(mut self) -> io::Result<Vec<(Kind, &'static str, PathBuf)>> {
        self.flush();
        let mut files = Vec::new();
        let is_alone = self.cuda.is_none() && self.list.is_none();
        for (kind, output) in [(Kind::Cuda, self.cuda.take()), (Kind::Cpu, self.cpu.take())] {
            let Some(output) = output else { continue };
            output.writer.finish()?;
            let path = if kind == Kind::Cpu && is_alone {
                fs::rename(&output.path, &self.path)?;
                self.path.clone()
            } else {
                output.path
            };
            files.push((kind, name(kind), path));
        }
        Ok(files)
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cpu => "cpu",
        Kind::Cuda => "cuda",
    }
}

/// `path`, or where that is taken the same with a number.
fn unused(path: &Path) -> PathBuf {
    let numbered = (2..1000).map(|number: u32| inserted(path, &number.to_string()));
    std::iter::once(path.to_owned()).chain(numbered).find(|path| !path.exists()).unwrap_or_else(|| path.to_owned())
}
