//! The versions of what others wrote stand in one place, the workspace's `Cargo.toml`. What no crate uses any more must
//! not stay there.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use crate::repository::Repository;
use crate::step::Passed;

/// Checks that each dependency of the workspace is one of a crate.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let manifest = fs::read_to_string(repository.root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let listed = listed(&manifest)?;
    let metadata = repository.metadata()?;
    let dependencies = metadata.packages.iter().flat_map(|package| &package.dependencies);
    let used: BTreeSet<String> = dependencies.map(|dependency| dependency.name.clone()).collect();
    let unused: Vec<&str> = listed.difference(&used).map(String::as_str).collect();
    if !unused.is_empty() {
        bail!("no crate uses {}\nhint: remove it from [workspace.dependencies] in Cargo.toml", unused.join(", "));
    }
    Ok(Passed { detail: format!("{} dependencies", listed.len()), ..Passed::default() })
}

/// The packages that the workspace names versions of.
fn listed(manifest: &str) -> Result<BTreeSet<String>> {
    let manifest: Table = manifest.parse().context("Cargo.toml is no TOML")?;
    let dependencies = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let dependencies = dependencies.and_then(Value::as_table).context("Cargo.toml has no [workspace.dependencies]")?;
    let package = |(name, value): (&String, &Value)| {
        value.get("package").and_then(Value::as_str).map_or_else(|| name.clone(), str::to_owned)
    };
    Ok(dependencies.iter().map(package).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_listed_by_their_own_names() {
        let manifest =
            "[workspace.dependencies]\na = \"1\"\nb = { version = \"2\" }\nc = { package = \"d\", version = \"3\" }\n";
        assert_eq!(listed(manifest).unwrap(), ["a", "b", "d"].map(str::to_owned).into());
    }

    #[test]
    fn a_manifest_without_a_list_is_an_error() {
        assert!(listed("[workspace]\n").is_err());
    }
}
