//! Where the repository is and what its surroundings offer. Steps get it as their only argument.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{Metadata, MetadataCommand};
use lowtide_testing::DATA_VARIABLE;

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

    /// What cargo knows of the workspace, its own packages alone.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let mut command = MetadataCommand::new();
        Ok(command.current_dir(&self.root).no_deps().exec()?)
    }

    /// Where cargo builds.
    pub(crate) fn target(&self) -> Result<PathBuf> {
        Ok(self.metadata()?.target_directory.into())
    }
}
