//! The report page in a real browser: Chromium, driven from the tests in `tests/browser` by node's own test runner. They
//! make their pages with the binary.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::Message;

use crate::process;
use crate::repository::Repository;
use crate::step::{Need, Passed};
use crate::tally::Tally;

/// The variable that names the browser to use.
const BROWSER_VARIABLE: &str = "LOWTIDE_CHROMIUM";

/// What browsers are called on the search path.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// What the step cannot do without.
pub(crate) const NEED: Need = Need {
    what: "the report page was not tried in a browser: that needs Chromium, node 20 or later, and npm",
    how_to_get: "`apt-get install chromium nodejs npm`, or set `LOWTIDE_CHROMIUM` to a Chromium or Chrome",
    is_met: |_| browser().is_some() && node_version().is_some_and(|version| version >= 20) && find("npm").is_some(),
};

/// Runs the tests, after it has built the binary and installed what they import.
pub(crate) fn run(repository: &Repository) -> Result<Passed> {
    let binary = binary(repository)?;
    let folder = repository.root.join("tests/browser");
    if !is_installed(&folder) {
        process::output(command("npm", &["ci", "--no-audit", "--no-fund"], &folder))?;
    }
    // The tests of a file wait most of their time, for a picture to be drawn or an address to be written.
    let arguments = ["--test", "--test-reporter=tap", "--test-timeout=120000", "--test-concurrency=3"];
    let mut tests = command("node", &arguments, &folder);
    tests.env("LOWTIDE_BINARY", binary).env(BROWSER_VARIABLE, browser().context("there is no browser")?);
    let tests = tally(&process::output(tests)?).context("node did not say how many tests passed")?;
    ensure!(tests.passed > 0, "node ran no test");
    Ok(Passed { tests, ..Passed::default() })
}

/// The binary that the tests in Rust are run with: another profile would build everything once more.
fn binary(repository: &Repository) -> Result<PathBuf> {
    let arguments = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let output = process::output(process::cargo(repository, &arguments))?;
    executable(&output).context("cargo did not say where the binary is")
}

/// The binary among what cargo made, by its messages: one line of JSON each.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = Message::parse_stream(messages.as_bytes()).filter_map(Result::ok);
    let made = messages.filter_map(|message| match message {
        Message::CompilerArtifact(artifact) if artifact.target.is_bin() && !artifact.profile.test => Some(artifact),
        _ => None,
    });
    made.filter(|artifact| artifact.target.name == "lowtide").find_map(|artifact| artifact.executable).map(Into::into)
}

/// The browser that the environment names, or the first on the search path.
fn browser() -> Option<PathBuf> {
    match env::var_os(BROWSER_VARIABLE) {
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => BROWSERS.iter().find_map(|name| find(name)),
    }
}

fn node_version() -> Option<u64> {
    let output = Command::new("node").arg("--version").output().ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

/// 20 of `v20.11.0`.
fn major(version: &str) -> Option<u64> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn find(program: &str) -> Option<PathBuf> {
    let path: OsString = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether what the tests import was installed since the list of it last changed.
fn is_installed(folder: &Path) -> bool {
    let changed = |file: &str| fs::metadata(folder.join(file)).and_then(|file| file.modified()).ok();
    let (listed, installed) = (changed("package-lock.json"), changed("node_modules/.package-lock.json"));
    installed.is_some() && installed >= listed
}

fn command(program: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Reads the line `# pass 42`, and the lines `ok 3 - NAME # SKIP REASON`.
fn tally(output: &str) -> Option<Tally> {
    let passed = output.lines().find_map(|line| line.strip_prefix("# pass ")?.trim().parse().ok())?;
    let mut tally = Tally { passed, ..Tally::default() };
    for (test, reason) in output.lines().filter_map(|line| line.split_once(" # SKIP")) {
        let name = test.split_once(" - ").map_or(test, |(_, name)| name);
        tally.skip(name, reason.trim());
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_passed_are_counted_by_node_and_skips_have_their_reason() {
        let output = "ok 1 - a pass 3 of one\n    ok 2 - b # SKIP no moon\n# tests 43\n# pass 42\n# fail 0\n";
        let tally = tally(output).unwrap();
        assert_eq!(tally.passed, 42);
        assert_eq!(tally.skipped["no moon"], ["b"]);
        assert_eq!(super::tally("nothing"), None);
    }

    #[test]
    fn the_binary_is_where_cargo_says() {
        let made = |name: &str, kind: &str, is_test: bool| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"a\",\"features\":[],\"filenames\":[],\"fresh\":true,\
                 \"executable\":\"/target/{name}-{is_test}\",\"target\":{{\"name\":\"{name}\",\"kind\":[\"{kind}\"],\
                 \"crate_types\":[\"bin\"],\"src_path\":\"/a.rs\",\"edition\":\"2024\"}},\"profile\":{{\"opt_level\":\"1\",\
                 \"debuginfo\":0,\"debug_assertions\":true,\"overflow_checks\":true,\"test\":{is_test}}}}}\n"
            )
        };
        let messages = [
            "   Compiling lowtide-cli\n".to_owned(),
            made("all", "test", true),
            made("xtask", "bin", false),
            made("lowtide", "bin", true),
            made("lowtide", "bin", false),
        ];
        assert_eq!(executable(&messages.concat()), Some("/target/lowtide-false".into()));
        assert_eq!(executable("{}\n"), None);
    }

    #[test]
    fn the_version_of_node_is_known_by_its_first_number() {
        assert_eq!(major("v20.11.0\n"), Some(20));
        assert_eq!(major("no node"), None);
    }

    #[test]
    fn what_was_never_installed_is_not_installed() {
        assert!(!is_installed(Path::new("/no/such/folder")));
    }
}
