//! The library that goes under a program: where it is, and how it gets there. The one that serves lies beside it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lowtide_core::options::LIBRARY;
use lowtide_core::preload::SERVING;

use crate::Failure;
use crate::console::show;

const FILE: &str = "liblowtide_malloc.so";

/// The library: the one that `LOWTIDE_LIBRARY` names, or the one beside this program, or beside the Python package that
/// `injection` is a folder of.
pub(crate) fn find(injection: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match env::var_os(LIBRARY.variable()).filter(|named| !named.is_empty()) {
        Some(named) => {
            let path = PathBuf::from(named);
            if !path.is_file() {
                let message = format!("{} is {}, which is not there", LIBRARY.variable(), show::path(&path));
                return Err(Failure::usage(message, "correct it, or leave it out"));
            }
            if path.file_name() == Some(OsStr::new(FILE)) && !is_whole(&path) {
                let message = format!("{SERVING} is not beside {}", show::path(&path));
                return Err(Failure::usage(message, format!("put it there, or leave {} out", LIBRARY.variable())));
            }
            path
        }
        None => places(injection).into_iter().find(|path| is_whole(path)).ok_or_else(|| {
            let message = format!("the libraries {FILE} and {SERVING} were not found");
            Failure::usage(
                message,
                format!("`cargo build --release` makes them beside the program; {} names another", LIBRARY.variable()),
            )
        })?,
    };
    std::path::absolute(&path).map_err(|error| Failure::access(show::path(&path), "open", error))
}

/// Whether the library is there, and beside it the one that it opens.
fn is_whole(path: &Path) -> bool {
    path.is_file() && path.with_file_name(SERVING).is_file()
}

fn places(injection: Option<&Path>) -> Vec<PathBuf> {
    let own = env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let beside = own.as_deref().and_then(Path::parent);
    let prefix = beside.and_then(Path::parent).map(|prefix| prefix.join("lib"));
    let package = injection.and_then(Path::parent);
    [beside.map(Path::to_owned), prefix, package.map(Path::to_owned)]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(FILE))
        .collect()
}

/// What `LD_PRELOAD` becomes: the `libraries`, and behind them what was there.
pub(crate) fn preload(libraries: &[&Path], before: Option<&OsStr>) -> Result<OsString, Failure> {
    let mut all = OsString::new();
    for library in libraries {
        if library.to_string_lossy().contains([' ', ':']) {
            let message = format!("{} cannot be loaded into a program", show::path(library));
            return Err(Failure::usage(message, "move it to a folder without blanks and colons"));
        }
        push(&mut all, library.as_os_str());
    }
    for word in words(before) {
        if !libraries.iter().any(|library| library.as_os_str() == OsStr::new(&word)) {
            push(&mut all, OsStr::new(&word));
        }
    }
    Ok(all)
}

/// The libraries of an `LD_PRELOAD`.
pub(crate) fn words(preloaded: Option<&OsStr>) -> Vec<String> {
    let text = preloaded.unwrap_or_default().to_string_lossy().into_owned();
    text.split([' ', ':']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn push(all: &mut OsString, library: &OsStr) {
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_behind() {
        let (own, below) = (Path::new("/l/own.so"), Path::new("/l/below.so"));
        let before = OsStr::new("/a.so /l/own.so:/b.so");
        assert_eq!(preload(&[own, below], Some(before)).unwrap(), "/l/own.so:/l/below.so:/a.so:/b.so");
        assert_eq!(preload(&[own], None).unwrap(), "/l/own.so");
        assert!(preload(&[Path::new("/with blank/x.so")], None).is_err());
    }
}
