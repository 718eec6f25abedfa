//! The libraries as they are built, and what processes under it leave behind. Shared by the tests that run programs.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

use lowtide_core::preload::SERVING;
use serde_json::Value;

/// The library that goes under programs. It lies where this test does, and the one that it opens beside it.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
        let library = folder.join("liblowtide_malloc.so");
        for needed in [&library, &library.with_file_name(SERVING)] {
            assert!(needed.exists(), "{} is missing", needed.display());
        }
        library
    })
}

/// What the processes wrote that have ended.
pub(crate) fn summaries(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let whole = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    whole.map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}
