//! Programs that no library can serve by `LD_PRELOAD`, or must not: told by what the file says of its loader and its libraries, before it is
//! started.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{Endianness, ReadCache, elf};

use super::executable;

/// Why the library stays out of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unserved {
    /// It brings its own `malloc`, which has to come first.
    Sanitized,
    /// Its C library is musl.
    Musl,
    /// No loader reads `LD_PRELOAD` for it.
    Static,
    /// It is for 32 bits.
    For32Bits,
}

impl Unserved {
    /// What there is about the program that is run for `name`, where anything is; what is no ELF file has an interpreter of its own.
    pub fn of(name: &OsStr) -> Option<Self> {
        of_file(&executable::find(name).ok()?)
    }

    /// Whether it must not be started with the library; the others only take no notice of it, and programs that they start may be served.
    pub fn must_not_preload(self) -> bool {
        matches!(self, Self::Sanitized | Self::Musl)
    }

    /// In words, behind the program's name.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Sanitized => "is built with a sanitizer, which has a malloc of its own",
            Self::Musl => "is linked with musl and not with glibc",
            Self::Static => "is linked statically",
            Self::For32Bits => "is a program for 32 bits",
        }
    }
}

fn of_file(path: &Path) -> Option<Unserved> {
    let cache = ReadCache::new(File::open(path).ok()?);
    if object::FileKind::parse(&cache).ok()? == object::FileKind::Elf32 {
        return Some(Unserved::For32Bits);
    }
    let file = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let (endian, headers) = (file.endian(), file.elf_program_headers());
    let loader = headers.iter().find_map(|header| header.interpreter(endian, &cache).ok().flatten());
    let libraries = headers.iter().find_map(|header| header.dynamic(endian, &cache).ok().flatten()).unwrap_or_default();
    let Some(loader) = loader else {
        // A loader that is run as a program preloads what it is told to.
        let has_name = libraries.iter().any(|entry| entry.tag(endian) == elf::DT_SONAME);
        return (!has_name).then_some(Unserved::Static);
    };
    if contains(loader, b"ld-musl") {
        return Some(Unserved::Musl);
    }
    let strings = file
        .elf_section_table()
        .dynamic(endian, &cache)
        .ok()
        .flatten()
        .and_then(|(_, section)| file.elf_section_table().strings(endian, &cache, section).ok());
    let needed = libraries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    let mut names = needed.filter_map(|entry| entry.string(endian, strings?).ok());
    let is_sanitizer = |name: &[u8]| {
        [&b"libasan"[..], b"libhwasan", b"liblsan", b"libtsan", b"libclang_rt.asan", b"libclang_rt.tsan"]
            .iter()
            .any(|known| name.starts_with(known))
    };
    names.any(is_sanitizer).then_some(Unserved::Sanitized)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_program_and_a_script_are_served() {
        assert_eq!(Unserved::of(OsStr::new("sh")), None);
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("script", &b"#!/bin/sh\n"[..]), ("broken", b"\x7fELF\x02\x01\x01"), ("empty", b"")] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(of_file(&path), None, "{name}");
        }
    }
}
