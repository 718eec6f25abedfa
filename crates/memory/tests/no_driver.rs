//! A machine without a CUDA driver, made by naming a library that is none.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use lowtide_memory::cuda::{self, CudaDevice, CudaPinned};
use lowtide_memory::{Error, HostOptions};

const VARIABLE: &str = "LOWTIDE_CUDA_DRIVER";

/// Set in the process that the driver is missing for.
const INNER: &str = "LOWTIDE_TEST_INNER";

/// Runs `test` again in a process that is told to take `library` for the driver, and there makes sure that it takes none.
fn assert_no_driver(test: &str, library: &Path) {
    if let Some(named) = std::env::var_os(INNER) {
        return assert_errors_name(named.to_str().unwrap());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(VARIABLE, library).env(INNER, library);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(" 1 passed"), "{text}");
}

fn assert_errors_name(library: &str) {
    for error in [
        cuda::device_count().unwrap_err(),
        CudaDevice::new(0, None, &[]).unwrap_err(),
        CudaPinned::new(0, &HostOptions::default()).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::NoDriver { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(library) && text.contains(VARIABLE), "{text}");
    }
}

#[test]
fn a_library_that_is_not_there_is_no_driver() {
    assert_no_driver("a_library_that_is_not_there_is_no_driver", Path::new("/nowhere/libcuda.so.1"));
}

#[test]
fn a_file_that_is_no_library_is_no_driver() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "no library").unwrap();
    assert_no_driver("a_file_that_is_no_library_is_no_driver", file.path());
}
