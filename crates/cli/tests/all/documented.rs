//! What the documents show is what happens: every command of the README and of `docs`, and those in `tests/cmd`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{BINARY, Folder};

#[test]
fn commands_do_what_is_written() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").env("NO_COLOR", "1");
}

#[test]
fn the_readme_and_the_docs_show_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents: Vec<PathBuf> = vec![root.join("README.md")];
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    let mut ran = 0;
    for document in &documents {
        let folder = Folder::new();
        for name in ["examples", "crates"] {
            symlink(root.join(name).canonicalize().unwrap(), folder.at(name)).unwrap();
        }
        for example in examples(&fs::read_to_string(document).unwrap()) {
            example.check(&folder, document);
            ran += 1;
        }
    }
    assert!(ran >= 8, "only {ran} commands were found");
}

/// A command in a document, and what it is said to print.
struct Example {
    command: String,
    code: i32,
    /// Nothing for a block that shows commands only.
    shown: Option<String>,
}

impl Example {
    fn check(&self, folder: &Folder, document: &Path) {
        let bin = Path::new(BINARY).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let command = self.command.replace("cargo run --release --", "lowtide");
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path())
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout) + &text(&output.stderr);
        let place = format!("`{}` in {}", self.command, document.display());
        assert_eq!(output.status.code(), Some(self.code), "{place}\n{printed}");
        if let Some(shown) = &self.shown {
            assert_eq!(lasting(shown), lasting(&printed), "{place}");
        }
    }
}

/// The commands of a document: those after `$` in `console` blocks, and the lines of `sh` blocks. The test command
/// itself is left out.
fn examples(document: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut block = "";
    for line in document.replace("\\\n", "").lines() {
        match (block, line.strip_prefix("```")) {
            ("", Some("console")) => block = "console",
            ("", Some("sh")) => block = "sh",
            ("", Some("") | None) => {}
            ("", Some(_)) => block = "other",
            (_, Some(_)) => block = "",
            ("console", None) => push_console_line(&mut examples, line),
            ("sh", None) if !line.is_empty() && line != "cargo xtask test" => {
                examples.push(Example { command: line.to_owned(), code: 0, shown: None });
            }
            _ => {}
        }
    }
    examples
}

fn push_console_line(examples: &mut Vec<Example>, line: &str) {
    if let Some(command) = line.strip_prefix("$ ") {
        examples.push(Example { command: command.to_owned(), code: 0, shown: Some(String::new()) });
    } else if let Some(code) = line.strip_prefix("? ") {
        examples.last_mut().unwrap().code = code.parse().unwrap();
    } else if let Some(shown) = examples.last_mut().and_then(|example| example.shown.as_mut()) {
        shown.push_str(line);
        shown.push('\n');
    }
}

/// A text without what differs from machine to machine: times, and how many threads there are.
fn lasting(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let unit = words[at].split('\n').next().unwrap_or_default().to_owned();
        if ["ns", "ms", "s", "threads", "thread"].contains(&unit.as_str()) && words[at - 1].parse::<f64>().is_ok() {
            "N".clone_into(&mut words[at - 1]);
            words[at] = words[at].replacen(&unit, "UNIT", 1);
        }
    }
    let mut text = words.join(" ");
    for field in ["\"seconds\":", "\"threads\":", "\"ns_per_op\":"] {
        let values = text.split(field).enumerate().map(|(place, part)| match place {
            0 => part.to_owned(),
            _ => format!("N{}", &part[part.find([',', '}']).unwrap_or(0)..]),
        });
        text = values.collect::<Vec<_>>().join(field);
    }
    text
}
