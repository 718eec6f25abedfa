//! Which file a program's name stands for, looked at before anything is prepared for it: a name that stands for nothing
//! is the first thing that its user wants to know.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::Failure;
use crate::console::show;

/// The file that is run for `name`, or why none can be.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let candidates = candidates(name);
    if let Some(found) = candidates.iter().find(|path| is_executable(path)) {
        return Ok(found.clone());
    }
    match candidates.iter().find(|path| path.exists()) {
        None => Err(missing(name)),
        Some(path) if path.is_dir() => {
            Err(refused(name, "it is a folder", "give a program, and its arguments behind it"))
        }
        Some(_) => Err(refused(name, "it is not executable", &by_python(name))),
    }
}

/// Why the system did not start `name`.
pub(super) fn failure(name: &OsStr, error: &Error) -> Failure {
    match (find(name), error.kind()) {
        (Err(failure), ErrorKind::NotFound | ErrorKind::PermissionDenied) => failure,
        (Ok(_), ErrorKind::NotFound) => {
            let message = "the interpreter that its first line names is missing";
            refused(name, message, "mend the line that begins with `#!`")
        }
        (Ok(_), ErrorKind::PermissionDenied) => refused(name, "permission denied", &by_python(name)),
        _ => refused(name, &error.to_string(), "try the command alone"),
    }
}

fn missing(name: &OsStr) -> Failure {
    let program = shown(name);
    if name.as_encoded_bytes().starts_with(b"-") {
        let message = format!("{program} is neither an option nor a program");
        return Failure::usage(message, "`--help` has the options; the program and its arguments come behind them");
    }
    let message = if is_path(name) { "there is no such file" } else { "no folder of PATH has it" };
    let hint = format!("check the name; {}", by_python(name));
    Failure::Start { program, message: message.to_owned(), hint, exists: false }
}

fn refused(name: &OsStr, message: &str, hint: &str) -> Failure {
    Failure::Start { program: shown(name), message: message.to_owned(), hint: hint.to_owned(), exists: true }
}

fn by_python(name: &OsStr) -> String {
    format!("a Python program is run by `python {}`", shown(name))
}

fn shown(name: &OsStr) -> String {
    show::path(Path::new(name))
}

/// A name with a slash is a path; any other is looked for in the folders of `PATH`.
fn is_path(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

fn candidates(name: &OsStr) -> Vec<PathBuf> {
    if is_path(name) {
        return vec![PathBuf::from(name)];
    }
    // What the system searches where nothing is set.
    let folders = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    env::split_paths(&folders).map(|folder| folder.join(name)).collect()
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn code(name: &OsStr) -> Option<u8> {
        find(name).err().map(|failure| failure.code())
    }

    #[test]
    fn a_name_is_looked_for_as_a_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert_eq!(code(plain.as_os_str()), Some(126));
        assert_eq!(code(folder.path().as_os_str()), Some(126));
        assert_eq!(code(folder.path().join("none").as_os_str()), Some(127));
        assert_eq!((code(OsStr::new("sh")), code(OsStr::new("surely-not-there"))), (None, Some(127)));
        assert_eq!(code(OsStr::new("--tyop")), Some(2), "a mistyped option");
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(code(plain.as_os_str()), None);
    }

    #[test]
    fn a_script_without_its_interpreter_is_there_and_cannot_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/surely/not/there\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let failure = failure(script.as_os_str(), &ErrorKind::NotFound.into());
        assert_eq!(failure.code(), 126);
        assert!(failure.to_string().contains("interpreter"), "{failure}");
    }
}
