//! The underlying allocator: what serves blocks that are too small for the arena, and where its library is on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::console::show;

/// An allocator that is known by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Known {
    Glibc,
    Jemalloc,
    Mimalloc,
    Tcmalloc,
}

/// Folders in which distributions keep libraries.
const FOLDERS: [&str; 7] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
];

impl Known {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Glibc, Self::Jemalloc, Self::Mimalloc, Self::Tcmalloc];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
            Self::Tcmalloc => "tcmalloc",
        }
    }

    /// The files that its library may be called, the best first.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::Glibc => &[],
            Self::Jemalloc => &["libjemalloc.so.2", "libjemalloc.so.1", "libjemalloc.so"],
            Self::Mimalloc => &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"],
            Self::Tcmalloc => &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so"],
        }
    }

    /// How to get it where it is not there.
    pub fn how_to_get(self) -> &'static str {
        match self {
            Self::Glibc => "it is part of the system",
            Self::Jemalloc => "apt-get install libjemalloc2",
            Self::Mimalloc => "apt-get install libmimalloc2.0",
            Self::Tcmalloc => "apt-get install libtcmalloc-minimal4",
        }
    }

    /// Its library on this machine; `None` where it is not there, and for glibc, which every program has.
    pub fn library(self) -> Option<PathBuf> {
        let listed = if self.files().is_empty() { String::new() } else { listed() };
        let of_loader = self.files().iter().find_map(|file| of_loader(&listed, file));
        of_loader.or_else(|| {
            let folders = folders();
            let paths = self.files().iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
            paths.into_iter().find(|path| path.is_file())
        })
    }

    /// The one that a library's file is of.
    pub fn of_file(path: &Path) -> Option<Self> {
        let file = path.file_name()?.to_string_lossy();
        Self::ALL.into_iter().skip(1).find(|known| file.contains(known.name()))
    }
}

/// What is to serve small blocks, and the library that is loaded for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Underlying {
    pub known: Known,
    /// None for glibc.
    pub library: Option<PathBuf>,
}

impl Underlying {
    /// The allocator by its name, or by the path of its library.
    pub fn find(text: &str) -> Result<Self, Failure> {
        if let Some(known) = Known::ALL.into_iter().find(|known| known.name() == text) {
            let library = known.library();
            if library.is_none() && known != Known::Glibc {
                return Err(Failure::usage(format!("no library of {text} is on this machine"), known.how_to_get()));
            }
            return Ok(Self { known, library });
        }
        let path = Path::new(text);
        let known = Known::of_file(path).filter(|_| text.contains('/'));
        match known {
            Some(known) if path.is_file() => {
                let library = std::path::absolute(path).map_err(|error| Failure::access(text, "open", error))?;
                Ok(Self { known, library: Some(library) })
            }
            Some(_) => Err(Failure::usage(format!("{} is not there", show::path(path)), "check the path")),
            None => Err(Failure::usage(
                format!("{} is no allocator that Lowtide knows", show::quoted(text)),
                "write glibc, jemalloc, mimalloc or tcmalloc, or the path of such a library",
            )),
        }
    }
}

/// What the loader knows, as `ldconfig -p` tells it.
fn listed() -> String {
    let output = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .iter()
        .filter_map(|program| Command::new(program).arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output().ok())
        .find(|output| output.status.success());
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The path of `file` for programs such as this one, in `\tlibx.so.2 (libc6,x86-64) => /lib/libx.so.2`.
fn of_loader(listed: &str, file: &str) -> Option<PathBuf> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "AArch64",
        _ => "",
    };
    listed.lines().find_map(|line| {
        let (name, rest) = line.trim().split_once(' ')?;
        let (kind, path) = rest.split_once(" => ")?;
        (name == file && kind.contains(architecture)).then(|| PathBuf::from(path))
    })
}

fn folders() -> Vec<PathBuf> {
    let searched = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let conda = env::var_os("CONDA_PREFIX").map(|prefix| Path::new(&prefix).join("lib"));
    let searched: Vec<PathBuf> = env::split_paths(&searched).filter(|folder| folder.is_absolute()).collect();
    searched.into_iter().chain(conda).chain(FOLDERS.map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_told_by_its_file() {
        let of = |path: &str| Known::of_file(Path::new(path));
        assert_eq!(of("/opt/libjemalloc.so.2"), Some(Known::Jemalloc));
        assert_eq!(of("/opt/libtcmalloc_minimal.so.4"), Some(Known::Tcmalloc));
        assert_eq!((of("/jemalloc/libx.so"), of("libc.so.6")), (None, None));
    }

    #[test]
    fn the_loaders_list_is_read_for_this_machine() {
        let kind = if env::consts::ARCH == "aarch64" { "AArch64" } else { "x86-64" };
        let listed =
            format!("2 libs found\n\tliba.so.2 (libc6) => /32/liba.so.2\n\tliba.so.2 (libc6,{kind}) => /64/a\n");
        assert_eq!(of_loader(&listed, "liba.so.2"), Some(PathBuf::from("/64/a")));
        assert_eq!(of_loader(&listed, "liba.so"), None);
    }

    #[test]
    fn what_is_no_allocator_is_refused_with_what_is() {
        for text in ["hoard", "jemalloc.so", "/not/there/libjemalloc.so.2", "/bin/sh", ""] {
            assert!(!Underlying::find(text).unwrap_err().hint().is_empty(), "{text}");
        }
        assert_eq!(Underlying::find("glibc").unwrap(), Underlying { known: Known::Glibc, library: None });
    }
}
