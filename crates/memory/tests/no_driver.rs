//! A machine without a CUDA driver, made by naming a library that is none.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use lowtide_memory::cuda::{self, CudaDevice, CudaPinned};
use lowtide_memory::{Error, HostOptions};

const VARIABLE: &str = "LOWTIDE_CUDA_DRIVER";

/// Does nothing unless another test runs it in a process of its own.
#[test]
fn inner() {
    let Some(named) = std::env::var_os("LOWTIDE_TEST_INNER") else { return };
    for error in [
        cuda::device_count().unwrap_err(),
        CudaDevice::new(0, None, &[]).unwrap_err(),
        CudaPinned::new(0, &HostOptions::default()).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::NoDriver { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(named.to_str().unwrap()) && text.contains(VARIABLE), "{text}");
    }
}

fn run_inner(library: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inner"])
        .env(VARIABLE, library)
        .env("LOWTIDE_TEST_INNER", library)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_library_that_is_not_there_is_no_driver() {
    run_inner(Path::new("/nowhere/libcuda.so.1"));
}

#[test]
fn a_file_that_is_no_library_is_no_driver() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "no library").unwrap();
    run_inner(file.path());
}
