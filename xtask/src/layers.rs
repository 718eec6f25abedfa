//! The layer rule: a crate may use only crates with a smaller number. The numbers are here and nowhere else; who uses
//! whom comes from `cargo metadata`. Dev-dependencies are free, because a test may look at a layer from above.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process;
use crate::repository::Repository;
use crate::step::Passed;

/// The crates from the bottom up, without the `lowtide-` that their packages begin with.
const LAYERS: [(&str, u8); 13] = [
    ("core", 0),
    ("plan", 1),
    ("formats", 1),
    ("memory", 1),
    ("report", 1),
    ("learn", 2),
    ("pool", 3),
    ("replay", 4),
    ("fit", 4),
    ("watch", 4),
    ("malloc", 5),
    ("cli", 5),
    ("python", 6),
];

/// Stands outside the layers: it may use any crate, and no crate may use it.
const OUTSIDE: &str = "xtask";

/// The packages of the workspace, and which of them use which.
#[derive(Debug, Default, Eq, PartialEq)]
struct Packages {
    names: Vec<String>,
    uses: Vec<(String, String)>,
}

/// Checks the layers of the workspace.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let mut command = process::cargo(repository, &["metadata", "--format-version", "1", "--no-deps"]);
    let output = command.output().context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let packages = packages(&serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?)?;
    let faults = faults(&packages);
    if !faults.is_empty() {
        bail!("{}\nhint: the numbers are in xtask/src/layers.rs", faults.join("\n"));
    }
    Ok(Passed { detail: format!("{} crates", packages.names.len()), notes: Vec::new() })
}

fn packages(metadata: &Value) -> Result<Packages> {
    let mut packages = Packages::default();
    for package in list(metadata, "packages")? {
        let user = text(package, "name")?;
        for dependency in list(package, "dependencies")? {
            let ours = dependency["path"].is_string();
            if ours && dependency["kind"] != "dev" {
                packages.uses.push((user.to_owned(), text(dependency, "name")?.to_owned()));
            }
        }
        packages.names.push(user.to_owned());
    }
    Ok(packages)
}

fn list<'value>(value: &'value Value, field: &str) -> Result<&'value Vec<Value>> {
    value[field].as_array().with_context(|| format!("cargo metadata has no list `{field}`"))
}

fn text<'value>(value: &'value Value, field: &str) -> Result<&'value str> {
    value[field].as_str().with_context(|| format!("cargo metadata has no text `{field}`"))
}

/// Every breach of the rule, one sentence each.
fn faults(packages: &Packages) -> Vec<String> {
    let unlisted = packages.names.iter().filter(|name| *name != OUTSIDE && layer(name).is_none());
    let unlisted = unlisted.map(|name| format!("`{name}` has no layer"));
    unlisted.chain(packages.uses.iter().filter_map(|(user, used)| fault(user, used))).collect()
}

/// What is wrong with `user` using `used`, if anything is. A user without a layer is a fault of its own.
fn fault(user: &str, used: &str) -> Option<String> {
    if user == OUTSIDE {
        return None;
    }
    let Some(below) = layer(used) else {
        return Some(format!("`{user}` uses `{used}`, which has no layer"));
    };
    let above = layer(user)?;
    (below >= above).then(|| format!("`{user}` (layer {above}) uses `{used}` (layer {below}), which is not below it"))
}

fn layer(package: &str) -> Option<u8> {
    let name = package.strip_prefix("lowtide-")?;
    LAYERS.iter().find(|(listed, _)| *listed == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_may_use_any_crate_below_it() {
        for (user, used) in
            [("plan", "core"), ("cli", "plan"), ("cli", "core"), ("python", "malloc"), ("fit", "memory")]
        {
            assert_eq!(fault(&format!("lowtide-{user}"), &format!("lowtide-{used}")), None, "{user} {used}");
        }
    }

    #[test]
    fn a_crate_may_not_use_one_above_it() {
        let fault = fault("lowtide-core", "lowtide-plan").unwrap();
        assert_eq!(fault, "`lowtide-core` (layer 0) uses `lowtide-plan` (layer 1), which is not below it");
    }

    #[test]
    fn a_crate_may_not_use_one_beside_it() {
        assert!(fault("lowtide-plan", "lowtide-formats").is_some());
        assert!(fault("lowtide-cli", "lowtide-malloc").is_some());
    }

    #[test]
    fn a_crate_without_a_layer_is_found_on_either_side() {
        let packages = Packages {
            names: vec!["lowtide-novel".into(), "lowtide-cli".into(), "xtask".into()],
            uses: vec![("lowtide-cli".into(), "lowtide-novel".into()), ("lowtide-cli".into(), "core".into())],
        };
        assert_eq!(
            faults(&packages),
            [
                "`lowtide-novel` has no layer",
                "`lowtide-cli` uses `lowtide-novel`, which has no layer",
                "`lowtide-cli` uses `core`, which has no layer",
            ]
        );
    }

    #[test]
    fn xtask_may_use_any_crate_and_none_may_use_it() {
        assert_eq!(fault("xtask", "lowtide-python"), None);
        assert!(fault("lowtide-python", "xtask").is_some());
    }

    #[test]
    fn only_our_own_normal_and_build_dependencies_count() {
        let metadata = json!({"packages": [{"name": "lowtide-plan", "dependencies": [
            {"name": "lowtide-core", "kind": null, "path": "/crates/core"},
            {"name": "lowtide-report", "kind": "build", "path": "/crates/report"},
            {"name": "lowtide-cli", "kind": "dev", "path": "/crates/cli"},
            {"name": "serde", "kind": null},
        ]}]});
        let uses = |used: &str| ("lowtide-plan".to_owned(), used.to_owned());
        let expected =
            Packages { names: vec!["lowtide-plan".into()], uses: vec![uses("lowtide-core"), uses("lowtide-report")] };
        assert_eq!(packages(&metadata).unwrap(), expected);
    }

    #[test]
    fn metadata_of_another_shape_is_an_error() {
        assert!(packages(&json!({"packages": [{"name": 1}]})).is_err());
        assert!(packages(&json!([])).is_err());
    }
}
