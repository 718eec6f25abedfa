//! `CPython`, by a broad selection of its own tests.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::collections::BTreeSet;
use std::process::{Command, Output};

use lowtide_testing::{programs, skip, thorough};

use crate::trial::{Trial, printed};

/// Tests of what allocates, copies, maps, forks and starts threads; a Python has most of them.
const TESTS: &str = "test_array test_ast test_binascii test_buffer test_bytes test_bz2 test_codecs test_collections \
    test_compile test_copy test_coroutines test_csv test_ctypes test_datetime test_decimal test_deque test_descr test_dict \
    test_difflib test_fileio test_float test_fork1 test_functools test_gc test_generators test_gzip test_hashlib test_heapq \
    test_int test_io test_itertools test_json test_list test_long test_lzma test_marshal test_memoryio test_memoryview test_mmap \
    test_ordered_dict test_pickle test_popen test_queue test_re test_select test_set test_shelve test_slice test_sort \
    test_sqlite3 test_statistics test_str test_strtod test_struct test_super test_thread test_threading_local \
    test_tracemalloc test_tuple test_typing test_unicode test_uuid test_weakref test_xml_etree test_xml_etree_c test_zlib";

/// Prints those of its arguments that are tests of this Python.
const HAS: &str = "import os, sys, test.support, test.libregrtest; folder = os.path.dirname(test.__file__); \
    names = {name.removesuffix('.py') for name in os.listdir(folder)}; \
    print(' '.join(name for name in sys.argv[1:] if name in names))";

/// Fewer are no broad selection.
const FEW: usize = 40;

#[test]
fn its_own_tests_pass_as_without_the_library() {
    if !thorough() {
        return;
    }
    let Some([python]) = programs(["python3"], &[]) else { return };
    let trial = Trial::new();
    let asked = trial.bare(&python).args(["-c", HAS]).args(TESTS.split_whitespace()).output();
    let selection = asked.map(|output| printed(&output)).unwrap_or_default();
    let selection: Vec<&str> = selection.split_whitespace().collect();
    if selection.len() < FEW {
        return skip("`python3` has not the package `test`, CPython's own tests");
    }
    let failed = failed(&run(trial.command(&python), &selection));
    if !failed.is_empty() {
        let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
        // Some depend on the time, and other programs run on the same processors.
        let again = self::failed(&run(trial.command(&python), &failed));
        let failed: Vec<&str> = failed.into_iter().filter(|&name| again.contains(name)).collect();
        let anyway = if failed.is_empty() { BTreeSet::new() } else { self::failed(&run(trial.bare(&python), &failed)) };
        let ours: Vec<&&str> = failed.iter().filter(|&&name| !anyway.contains(name)).collect();
        assert!(ours.is_empty(), "{ours:?} of CPython's tests fail under the library alone");
        if !failed.is_empty() {
            let failed = failed.join(" and ");
            skip(&format!("of CPython's own tests, {failed} fail without the library too"));
        }
    }
    trial.assert_served("python3");
}

fn run(mut command: Command, selection: &[&str]) -> Output {
    command.args(["-m", "test", "-j2", "--timeout", "120"]).args(selection).output().unwrap()
}

/// The tests that a run says have failed, behind a line that counts them; where it counts none, it must have ended well and
/// the library have said nothing.
fn failed(output: &Output) -> BTreeSet<String> {
    let text = printed(output);
    let mut lines = text.lines().skip_while(|line| !line.trim_end().ends_with(" failed:")).skip(1);
    let names = lines.by_ref().take_while(|line| line.starts_with(' ')).flat_map(str::split_whitespace);
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!words.contains("lowtide: ") && !text.contains("lowtide: "), "{text}\n{words}");
    assert!(!names.is_empty() || output.status.success(), "{}: {text}\n{words}", output.status);
    names
}
