//! Files that are there in full or not at all: written beside their place under another name, then renamed.

use std::fs::{self, Permissions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use lowtide_formats::ErrorKind;
use tempfile::NamedTempFile;

use crate::Failure;
use crate::console::show;
use crate::input::source::Source;

/// A file to be written, checked as far as that is possible before there is anything to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    given: PathBuf,
    /// Where links lead to.
    real: PathBuf,
    folder: PathBuf,
}

impl Target {
    /// The file at `path`, which is none of `inputs` and lies in a folder that is there and can be written to.
    pub fn new(path: &Path, inputs: &[&Source]) -> Result<Self, Failure> {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = show::escaped(&path.to_string_lossy()).into_owned();
        if inputs.iter().filter_map(|input| input.path()).any(|input| is_same(input, &real)) {
            let message = "this is also the input, and would be overwritten";
            return Err(Failure::unfit(&name, message, "give another file for `-o`"));
        }
        if real.is_dir() {
            return Err(Failure::unfit(&name, "this is a folder", "give a file for `-o`"));
        }
        let folder = match real.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            let hint = format!("make it first: mkdir -p {}", show::path(&folder));
            return Err(Failure::unfit(&name, "the folder of the output is not there", hint));
        }
        let target = Self { given: path.to_owned(), real, folder };
        target.temporary().map_err(|error| Failure::access(&name, "write", error))?;
        Ok(target)
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.given
    }

    /// Puts what `write` writes in the file's place, or leaves everything as it was.
    pub fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), lowtide_formats::Error>,
    ) -> Result<(), Failure> {
        let name = show::escaped(&self.given.to_string_lossy()).into_owned();
        let failed = |error| Failure::access(&name, "write", error);
        let file = self.temporary().map_err(failed)?;
        let mut out = BufWriter::new(file);
        write(&mut out).map_err(|error| Failure::contents(&name, error))?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.persist(&self.real).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Puts `bytes` in the file's place, or leaves everything as it was.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let unwritable = |error| lowtide_formats::Error { row: None, kind: ErrorKind::Unwritable(error) };
        self.write(|out| out.write_all(bytes).map_err(unwritable))
    }

    /// An empty file in the same folder, with the permissions that the target has or would be made with.
    fn temporary(&self) -> std::io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lowtide-");
        match fs::metadata(&self.real) {
            Ok(metadata) => builder.permissions(metadata.permissions()).tempfile_in(&self.folder),
            Err(_) => builder.permissions(ordinary()).tempfile_in(&self.folder),
        }
    }
}

#[cfg(unix)]
fn ordinary() -> Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

fn is_same(input: &Path, real: &Path) -> bool {
    fs::canonicalize(input).is_ok_and(|input| input == real)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn listed(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[allow(clippy::unnecessary_wraps)] // it stands for writers that can fail
    fn after(out: &mut dyn Write) -> Result<(), lowtide_formats::Error> {
        out.write_all(b"after").unwrap();
        Ok(())
    }

    #[test]
    fn a_file_that_fails_half_way_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.csv");
        fs::write(&path, "before").unwrap();
        let target = Target::new(&path, &[]).unwrap();
        let failed = target.write(|out| {
            out.write_all(b"half").unwrap();
            Err(lowtide_formats::Input::read(io::empty()).unwrap_err())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(listed(folder.path()), ["plan.csv"]);
        target.write(after).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(listed(folder.path()), ["plan.csv"]);
    }

    #[test]
    fn the_input_is_not_written_over_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let (input, link) = (folder.path().join("in.csv"), folder.path().join("link.csv"));
        fs::write(&input, "").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let source = Source::new(Some(&input));
        for path in [&input, &link, &folder.path().join(".").join("in.csv")] {
            assert!(Target::new(path, &[&source]).is_err(), "{path:?}");
        }
        assert!(Target::new(&folder.path().join("out.csv"), &[&source]).is_ok());
    }

    #[test]
    fn a_link_stays_a_link_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.csv"), folder.path().join("link.csv"));
        fs::write(&real, "before").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Target::new(&link, &[]).unwrap().write(after).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "after");
    }
}
