//! Links the library so that a process pays as little for it as can be: in two parts instead of four, and without what nothing in it calls.
//! GNU's linker is asked to, because others keep what unwinds the stack, and with it most of the standard library.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What the linker finds in place of the shared library for unwinding, which most programs do not load: the archive with the same functions,
/// of which none is needed.
const INSTEAD: &str = "INPUT(-lgcc_eh -lgcc)\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let is_gnu = env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && env::var("HOST") == env::var("TARGET");
    // Whoever chooses a linker, or tells it what to do, knows best.
    let is_usual = env::var_os("RUSTC_LINKER").is_none()
        && env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| !flags.contains("link") && !flags.contains("lto"));
    if !is_gnu || !is_usual {
        return;
    }
    if prints(&["-print-file-name=libgcc_eh.a"], "/") && fs::write(folder.join("libgcc_s.so"), INSTEAD).is_ok() {
        println!("cargo::rustc-cdylib-link-arg=-L{}", folder.display());
    }
    if prints(&["-fuse-ld=bfd", "-Wl,--version"], "GNU ld") {
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,noseparate-code,-z,norelro");
}

/// Whether the linker's own compiler, asked so, answers with words that begin so. It prints a bare name for a file that it has not.
fn prints(arguments: &[&str], start: &str) -> bool {
    let asked = Command::new("cc").args(arguments).output();
    asked.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().starts_with(start))
}
