//! Where the repository is and what its surroundings offer. Steps get it as their only argument.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The variable that names the folder with benchmark data.
pub(crate) const DATA_VARIABLE: &str = "LOWTIDE_DATA";

/// The checkout that the steps look at.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// The folder with benchmark data, absolute because tests run in folders of their own.
    pub(crate) data: Option<PathBuf>,
}

impl Repository {
    /// The repository this program was built from, with the data folder that the environment names.
    pub(crate) fn find() -> Result<Self> {
        let own_folder =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = own_folder.parent().map(Path::to_path_buf).context("xtask does not lie in a workspace")?;
        let data = match env::var_os(DATA_VARIABLE) {
            Some(folder) if !folder.is_empty() => {
                Some(std::path::absolute(folder).with_context(|| format!("cannot resolve `{DATA_VARIABLE}`"))?)
            }
            _ => None,
        };
        Ok(Self { root, data })
    }
}
