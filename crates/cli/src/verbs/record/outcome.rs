//! What became of a recording: the files of all processes, named as was asked for, and what is in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lowtide_core::{Action, Bytes, Trace};

use crate::atomic_file::Target;
use crate::console::show;
use crate::input::recorded::Recorded;
use crate::input::source::Source;
use crate::{Console, Failure};

/// A file that a process has written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Written {
    process: String,
    is_cuda: bool,
    path: PathBuf,
}

/// Tells of the files in the list that the processes left. Where there was only one process its files get the name of
/// `target`. Returns whether there are any.
pub(super) fn tell(listed: &str, target: &Target, console: &mut Console) -> Result<bool, Failure> {
    let mut written = parse(listed);
    written.retain(|file| file.path.is_file());
    let processes: BTreeSet<&str> = written.iter().map(|file| &*file.process).collect();
    let paths = if processes.len() == 1 { rename(&written, target)? } else { by_size(&written) };
    if processes.len() > 1 {
        console.say(format!("{} processes were recorded, each in files of its own", show::thousands(processes.len())));
    }
    let mut next = None;
    for path in &paths {
        let source = Source::new(Some(path));
        match Recorded::read(&source, console) {
            Ok(recorded) => {
                console.say(format!("wrote {}: {}", source.typed(), summary(&recorded.trace)));
                next.get_or_insert_with(|| source.typed());
            }
            Err(failure) => console.report(&failure),
        }
    }
    if let Some(next) = next {
        console.say(format!("next: `lowtide report {next}`"));
    }
    Ok(!paths.is_empty())
}

fn parse(listed: &str) -> Vec<Written> {
    listed
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, '\t');
            let (process, kind, path) = (fields.next()?, fields.next()?, fields.next()?);
            Some(Written { process: process.to_owned(), is_cuda: kind == "cuda", path: PathBuf::from(path) })
        })
        .collect()
}

/// Gives the files of one process their names: the target's for the first of CUDA, or of the CPU where that is all.
fn rename(written: &[Written], target: &Target) -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<&Written> = written.iter().collect();
    files.sort_by_key(|file| !file.is_cuda);
    let any_cuda = files.iter().any(|file| file.is_cuda);
    let mut names: Vec<PathBuf> = Vec::new();
    for file in files {
        let plain = if any_cuda && !file.is_cuda { inserted(target.path(), "cpu") } else { target.path().to_owned() };
        let numbered = (2_u32..).map(|number| inserted(&plain, &number.to_string()));
        let Some(name) = std::iter::once(plain.clone()).chain(numbered).find(|name| !names.contains(name)) else {
            continue;
        };
        fs::rename(&file.path, &name).map_err(|error| Failure::access(name.display(), "write", error))?;
        names.push(name);
    }
    Ok(names)
}

/// The files of several processes, the largest first, relative to here where they lie below.
fn by_size(written: &[Written]) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut files: Vec<(u64, PathBuf)> = written
        .iter()
        .map(|file| {
            let bytes = fs::metadata(&file.path).map_or(0, |metadata| metadata.len());
            (bytes, file.path.strip_prefix(&here).unwrap_or(&file.path).to_owned())
        })
        .collect();
    files.sort_by(|(left, first), (right, second)| right.cmp(left).then_with(|| first.cmp(second)));
    files.into_iter().map(|(_, path)| path).collect()
}

/// A trace's path with a word before its ending: `trace.cpu.csv.gz` for `trace.csv.gz`.
pub fn inserted(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cut = [".csv.gz", ".csv"].iter().find_map(|ending| name.strip_suffix(ending).map(|stem| (stem, *ending)));
    let (stem, ending) = cut.unwrap_or((&name, ""));
    path.with_file_name(format!("{stem}.{word}{ending}"))
}

/// Events, steps and the peak.
fn summary(trace: &Trace) -> String {
    let (mut alive, mut peak, mut short) = (Bytes::ZERO, Bytes::ZERO, 0);
    for event in &trace.events {
        match event.action {
            Action::Alloc { block } => alive += trace.block(block).bytes,
            Action::Free { block } => alive = alive.saturating_sub(trace.block(block).bytes),
            Action::OutOfMemory { .. } => short += 1,
            _ => {}
        }
        peak = peak.max(alive);
    }
    let (events, steps) = (show::counted(trace.events.len(), "event"), show::counted(trace.steps().count(), "step"));
    let short = if short > 0 { format!(" · out of memory {}", show::counted(short, "time")) } else { String::new() };
    format!("{events} · {steps} · peak {peak}{short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(folder: &Path) -> Target {
        Target::new(&folder.join("run.csv.gz"), &[]).unwrap()
    }

    #[test]
    fn the_files_of_one_process_get_the_name_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (cpu, cuda) = (folder.path().join("run.7.cpu.csv.gz"), folder.path().join("run.7.csv.gz"));
        fs::write(&cpu, "cpu").unwrap();
        fs::write(&cuda, "cuda").unwrap();
        let listed = format!("7\tcpu\t{}\n7\tcuda\t{}\n", cpu.display(), cuda.display());
        let names = rename(&parse(&listed), &target(folder.path())).unwrap();
        assert_eq!(names, [folder.path().join("run.csv.gz"), folder.path().join("run.cpu.csv.gz")]);
        assert_eq!(fs::read_to_string(&names[1]).unwrap(), "cpu");
    }

    #[test]
    fn the_cpu_alone_has_no_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = folder.path().join("run.7.cpu.csv.gz");
        fs::write(&cpu, "cpu").unwrap();
        let names = rename(&parse(&format!("7\tcpu\t{}\n", cpu.display())), &target(folder.path())).unwrap();
        assert_eq!(names, [folder.path().join("run.csv.gz")]);
    }
}
