//! What a benchmark runs over: made problems, files, and the files of folders; and how each becomes a question.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use lowtide_core::{StepIndex, Trace};
use lowtide_formats::Input;

use crate::console::show;
use crate::input::question::{Part, Question, Terms};
use crate::input::source::Source;
use crate::verbs::bench::synthetic::Synthetic;
use crate::{Console, Failure};

/// One thing to plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Instance {
    Made(Synthetic),
    File {
        path: PathBuf,
        /// What the table calls it: the path below the folder that was given, and that folder's name.
        label: String,
    },
}

/// A question, and what the table says beside its file's name.
pub(super) struct Asked {
    pub question: Question,
    pub label: String,
    pub step: Option<u64>,
}

impl Instance {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Made(Synthetic { buffers, alive }) => format!("synthetic {buffers}:{alive}"),
            Self::File { path, .. } => Source::File(path.clone()).to_string(),
        }
    }

    /// Reads or makes the problem.
    pub fn ask(&self, terms: &Terms, seed: u64, console: &mut Console) -> Result<Asked, Failure> {
        match self {
            Self::Made(synthetic) => {
                let question = Question::made(self.name(), synthetic.problem(seed), terms)?;
                Ok(Asked { question, label: self.name(), step: None })
            }
            Self::File { path, label } => {
                let input = Source::File(path.clone()).read(console, Input::read)?;
                let step = match &input {
                    Input::Trace(trace) => terms.part.step.or_else(|| middle_step(trace)),
                    _ => None,
                };
                let question = Question::new(
                    self.name(),
                    input,
                    &Terms { part: Part { step, ..terms.part.clone() }, ..terms.clone() },
                )?;
                let label = show::escaped(label);
                let label = step.map_or_else(|| label.to_string(), |step| format!("{label} step {step}"));
                Ok(Asked { question, label, step })
            }
        }
    }
}

/// A step that is neither the first nor the last where there are others; none where no step is closed.
fn middle_step(trace: &Trace) -> Option<u64> {
    let steps: Vec<StepIndex> = trace.steps().map(|(step, _)| step).collect();
    steps.get(steps.len().saturating_sub(1) / 2).map(|step| step.0)
}

/// The files given and those in the folders given, each once, folders in order of their names.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<Instance>, Failure> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for root in paths {
        fs::metadata(root).map_err(|error| {
            let name = Source::File(root.clone()).to_string();
            Failure::unfit(&name, format!("cannot open: {error}"), "check the path; files and folders can be given")
        })?;
        let mut files = Vec::new();
        if root.is_dir() {
            collect(root, &mut files)?;
            files.sort();
        } else {
            files.push(root.clone());
        }
        let base = root.parent().unwrap_or(root);
        for path in files {
            if seen.insert(path.clone()) {
                let label = path.strip_prefix(base).unwrap_or(&path).to_string_lossy().into_owned();
                found.push(Instance::File { path, label });
            }
        }
    }
    Ok(found)
}

const ENDINGS: [&str; 4] = [".csv", ".csv.gz", ".json", ".json.gz"];

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error| Failure::access(folder.display(), "open", error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&entry.path(), found)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            found.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_through_and_files_are_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        for name in ["b.csv", "a.csv.gz", "note.md", "sub/c.json"] {
            fs::write(at(name), "").unwrap();
        }
        let found = find(&[folder.path().to_owned(), at("note.md"), at("b.csv")]).unwrap();
        let paths: Vec<PathBuf> = found
            .into_iter()
            .map(|instance| match instance {
                Instance::File { path, .. } => path,
                Instance::Made(_) => unreachable!("only files were given"),
            })
            .collect();
        assert_eq!(paths, ["a.csv.gz", "b.csv", "sub/c.json", "note.md"].map(at));
    }

    #[test]
    fn the_middle_step_is_neither_the_first_nor_the_last() {
        let trace = |count: u64| {
            let rows: Vec<String> = (1..=count).map(|step| format!("step,{step},,0\n")).collect();
            match Input::read(format!("event,id,bytes,stream\n{}", rows.concat()).as_bytes()).unwrap() {
                Input::Trace(trace) => trace,
                other => unreachable!("{other:?}"),
            }
        };
        let steps: Vec<_> = [0, 1, 3, 6].map(|count| middle_step(&trace(count))).into();
        assert_eq!(steps, [None, Some(1), Some(2), Some(3)]);
    }
}
