//! Looks at the Rust files themselves. That `unsafe` needs an exception and a reason is a lint's to say; which crates may
//! make that exception no lint can: those that speak to an operating system, a driver or a foreign caller, and one `raw.rs`
//! of `pool`. Module files have one style, and long files are asked whether they are one thing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::repository::Repository;
use crate::step::Passed;

const UNSAFE_CRATES: [&str; 4] = ["crates/memory", "crates/malloc", "crates/serving", "crates/python"];

/// How an exception from the lint is written.
const EXCEPTIONS: [&str; 2] = ["allow(unsafe_code", "expect(unsafe_code"];

const LONG: usize = 400;

/// A Rust file, its path seen from the root.
struct Source {
    path: PathBuf,
    text: String,
}

/// Checks every Rust file of the repository.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let sources = read_sources(&repository.root)?;
    let faults = [unsafe_faults(&sources), module_faults(&sources)].concat();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(Passed { detail: format!("{} files", sources.len()), notes: long_files(&sources), ..Passed::default() })
}

fn read_sources(root: &Path) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    collect_rust_files(root, &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let path = path.strip_prefix(root).map(Path::to_path_buf).unwrap_or(path);
        Ok(Source { path, text })
    };
    paths.into_iter().map(read).collect()
}

fn collect_rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let context = || format!("cannot list `{}`", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(context)?);
        if kind.is_dir() && !is_made_by_tools(&entry.file_name().to_string_lossy()) {
            collect_rust_files(&path, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Build outputs, environments and version control: nobody wrote what lies there.
fn is_made_by_tools(folder: &str) -> bool {
    folder.starts_with('.') || ["target", "node_modules"].contains(&folder)
}

/// Every exception for `unsafe` where none may be, and each file of `pool` that has one after the first.
fn unsafe_faults(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut raw: Option<&Path> = None;
    for Source { path, text } in sources {
        let excepted = |line: &&str| EXCEPTIONS.iter().any(|exception| line.contains(exception));
        let Some(line) = text.lines().find(excepted) else { continue };
        if UNSAFE_CRATES.iter().any(|folder| path.starts_with(folder)) || path.starts_with("xtask") {
            continue;
        }
        match raw {
            None if may_be_raw(path) => raw = Some(path),
            Some(first) if may_be_raw(path) => {
                faults.push(format!("{}: `{}` already is the one raw file of `pool`", path.display(), first.display()));
            }
            _ => faults.push(format!("{}: `{}`: `unsafe` may not be here", path.display(), line.trim())),
        }
    }
    faults
}

/// A module `foo` with parts is `foo.rs` beside the folder `foo`.
fn module_faults(sources: &[Source]) -> Vec<String> {
    let files = sources.iter().map(|source| &source.path).filter(|path| path.ends_with("mod.rs"));
    let fault = |path: &PathBuf| {
        let folder = path.parent().unwrap_or(path);
        format!("{}: a module file is called `{}.rs` and lies beside its folder", path.display(), folder.display())
    };
    files.map(fault).collect()
}

fn may_be_raw(path: &Path) -> bool {
    path.starts_with("crates/pool/src") && path.ends_with("raw.rs")
}

fn long_files(sources: &[Source]) -> Vec<String> {
    let counts = sources.iter().map(|source| (source, source.text.lines().count()));
    let long = counts.filter(|(_, lines)| *lines > LONG);
    long.map(|(source, lines)| format!("note: {} has {lines} lines; is it one thing?", source.path.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        files.iter().map(|(path, text)| Source { path: path.into(), text: (*text).into() }).collect()
    }

    const EXCEPTION: &str = "//! Raw.\n#![expect(unsafe_code, reason = \"it must\")]\n";

    #[test]
    fn an_exception_for_unsafe_is_refused() {
        for exception in [EXCEPTION, "#[allow(unsafe_code)]\nfn a() {}\n"] {
            let faults = unsafe_faults(&sources(&[("crates/plan/src/lib.rs", exception)]));
            assert_eq!(faults.len(), 1);
            assert!(faults[0].ends_with("`unsafe` may not be here"), "{faults:?}");
        }
        assert!(unsafe_faults(&sources(&[("crates/plan/src/lib.rs", "#![forbid(unsafe_code)]\n")])).is_empty());
    }

    #[test]
    fn unsafe_is_at_home_in_three_crates_and_one_raw_file() {
        let homes =
            ["crates/memory/src/a.rs", "crates/malloc/src/lib.rs", "crates/python/src/b.rs", "crates/pool/src/raw.rs"];
        assert!(unsafe_faults(&sources(&homes.map(|path| (path, EXCEPTION)))).is_empty());
    }

    #[test]
    fn a_name_that_only_begins_like_a_home_is_none() {
        for path in ["crates/memory_model/src/lib.rs", "crates/pool/src/withdraw.rs", "crates/plan/src/raw.rs"] {
            assert_eq!(unsafe_faults(&sources(&[(path, EXCEPTION)])).len(), 1, "{path}");
        }
    }

    #[test]
    fn a_second_raw_file_is_refused() {
        let files = [("crates/pool/src/arena/raw.rs", EXCEPTION), ("crates/pool/src/raw.rs", EXCEPTION)];
        assert_eq!(
            unsafe_faults(&sources(&files)),
            ["crates/pool/src/raw.rs: `crates/pool/src/arena/raw.rs` already is the one raw file of `pool`"]
        );
    }

    #[test]
    fn module_files_have_one_style() {
        let files = sources(&[("crates/plan/src/solve/mod.rs", ""), ("crates/plan/src/model.rs", "")]);
        assert_eq!(
            module_faults(&files),
            [
                "crates/plan/src/solve/mod.rs: a module file is called `crates/plan/src/solve.rs` and lies beside its folder"
            ]
        );
    }

    #[test]
    fn a_file_is_long_from_the_line_after_the_limit() {
        let (at, over) = ("\n".repeat(LONG), "\n".repeat(LONG + 1));
        let notes = long_files(&sources(&[("at.rs", &at), ("over.rs", &over)]));
        assert_eq!(notes, ["note: over.rs has 401 lines; is it one thing?"]);
    }
}
