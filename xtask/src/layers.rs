//! The layer rule: a crate may use only crates with a smaller number. The numbers are here and nowhere else; who uses
//! whom comes from `cargo metadata`. Dev-dependencies are free, because a test may look at a layer from above.

use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, Metadata};

use crate::repository::Repository;
use crate::step::Passed;

/// The crates from the bottom up, without the `lowtide-` that their packages begin with.
const LAYERS: [(&str, u8); 14] = [
    ("core", 0),
    ("plan", 1),
    ("formats", 1),
    ("memory", 1),
    ("malloc", 1),
    ("report", 1),
    ("learn", 2),
    ("pool", 3),
    ("replay", 4),
    ("fit", 4),
    ("watch", 4),
    ("serving", 5),
    ("cli", 5),
    ("python", 6),
];

/// Stand outside the layers: the developer commands, and what tests share. No crate may use them but in its tests.
const OUTSIDE: [&str; 2] = ["xtask", "lowtide-testing"];

/// The packages of the workspace, and which of them use which.
#[derive(Debug, Default, Eq, PartialEq)]
struct Packages {
    names: Vec<String>,
    uses: Vec<(String, String)>,
}

/// Checks the layers of the workspace.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let packages = Packages::of(&repository.metadata()?);
    let faults = faults(&packages);
    if !faults.is_empty() {
        bail!("{}\nhint: the numbers are in xtask/src/layers.rs", faults.join("\n"));
    }
    Ok(Passed { detail: format!("{} crates", packages.names.len()), ..Passed::default() })
}

impl Packages {
    fn of(metadata: &Metadata) -> Self {
        let mut packages = Self::default();
        for package in &metadata.packages {
            let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
            for used in ours.filter(|dependency| dependency.kind != DependencyKind::Development) {
                packages.uses.push((package.name.to_string(), used.name.clone()));
            }
            packages.names.push(package.name.to_string());
        }
        packages
    }
}

/// Every breach of the rule, one sentence each.
fn faults(packages: &Packages) -> Vec<String> {
    let unlisted = packages.names.iter().filter(|name| !stands_outside(name) && layer(name).is_none());
    let unlisted = unlisted.map(|name| format!("`{name}` has no layer"));
    unlisted.chain(packages.uses.iter().filter_map(|(user, used)| fault(user, used))).collect()
}

/// What is wrong with `user` using `used`, if anything is. A user without a layer is a fault of its own.
fn fault(user: &str, used: &str) -> Option<String> {
    if stands_outside(user) {
        return None;
    }
    let Some(below) = layer(used) else {
        return Some(format!("`{user}` uses `{used}`, which has no layer"));
    };
    let above = layer(user)?;
    (below >= above).then(|| format!("`{user}` (layer {above}) uses `{used}` (layer {below}), which is not below it"))
}

fn stands_outside(package: &str) -> bool {
    OUTSIDE.contains(&package)
}

fn layer(package: &str) -> Option<u8> {
    let name = package.strip_prefix("lowtide-")?;
    LAYERS.iter().find(|(listed, _)| *listed == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_may_use_any_crate_below_it() {
        for (user, used) in [("plan", "core"), ("cli", "plan"), ("cli", "core"), ("python", "malloc"), ("fit", "pool")]
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
        assert!(fault("lowtide-cli", "lowtide-serving").is_some());
    }

    #[test]
    fn a_crate_without_a_layer_is_found_on_either_side() {
        let packages = Packages {
            names: ["lowtide-novel", "lowtide-cli", "lowtide-testing", "xtask"].map(str::to_owned).into(),
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
    fn what_stands_outside_may_use_any_crate_and_none_may_use_it() {
        assert_eq!(fault("xtask", "lowtide-python"), None);
        assert_eq!(fault("xtask", "lowtide-testing"), None);
        assert!(fault("lowtide-python", "xtask").is_some());
        assert!(fault("lowtide-python", "lowtide-testing").is_some());
    }

    #[test]
    fn what_tests_alone_use_and_what_others_wrote_does_not_count() {
        let packages = Packages::of(&Repository::find().unwrap().metadata().unwrap());
        let uses = |user: &str, used: &str| packages.uses.contains(&(format!("lowtide-{user}"), used.to_owned()));
        assert!(uses("plan", "lowtide-core") && uses("cli", "lowtide-plan"), "{packages:?}");
        assert!(!uses("plan", "lowtide-testing") && !uses("formats", "csv"), "{packages:?}");
    }
}
