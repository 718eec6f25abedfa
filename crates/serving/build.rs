//! Links what unwinds the stack into the library. A program that it serves would otherwise load `libgcc_s` too,
//! which most programs do not, and which costs as much as the library itself.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What the linker finds in place of the shared library: the archive with the same functions.
const INSTEAD: &str = "INPUT(-lgcc_eh -lgcc)\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let is_gnu = env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && env::var("HOST") == env::var("TARGET");
    if is_gnu && has_archive() && fs::write(folder.join("libgcc_s.so"), INSTEAD).is_ok() {
        println!("cargo::rustc-cdylib-link-arg=-L{}", folder.display());
    }
}

/// Whether the linker's own compiler has the archive; it prints a bare name where it has not.
fn has_archive() -> bool {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    asked.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().starts_with('/'))
}
