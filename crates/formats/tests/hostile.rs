//! Every file in `tests/hostile` is wrong in the way its name says, and is refused with the error and on the row
//! that the table here gives. A file without an entry fails, and so does an entry without a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lowtide_core::ProblemError;
use lowtide_formats::{Error, ErrorKind, Input, PlanFile};

/// `name => row, pattern` as a table of functions that tell whether an error is the expected one.
macro_rules! table {
    ($($name:literal => $row:expr, $pattern:pat,)*) => {
        [$(($name, $row, stringify!($pattern), (|kind| matches!(kind, $pattern)) as fn(&ErrorKind) -> bool)),*]
    };
}

use ErrorKind as Kind;

type Expectation = (&'static str, Option<u64>, &'static str, fn(&ErrorKind) -> bool);

#[rustfmt::skip]
fn expectations() -> Vec<Expectation> {
    table! {
        // Tables in general.
        "empty.csv" => None, Kind::Empty,
        "blank_lines_only.csv" => None, Kind::Empty,
        "missing_column.csv" => Some(1), Kind::MissingColumn { column: "upper", .. },
        "duplicate_column.csv" => Some(1), Kind::DuplicateColumn { .. },
        "unknown_header.csv" => Some(1), Kind::UnknownHeader { .. },
        "no_header.csv" => Some(1), Kind::UnknownHeader { .. },
        "nul_bytes.csv" => Some(1), Kind::UnknownHeader { .. },
        "ragged_row.csv" => Some(3), Kind::RaggedRow { found: 3, expected: 4 },
        "ragged_row_too_long.csv" => Some(2), Kind::RaggedRow { found: 5, expected: 4 },
        "not_utf8.csv" => Some(3), Kind::NotUtf8,
        "utf16.csv" => Some(1), Kind::NotUtf8,
        "unclosed_quote.csv" => Some(3), Kind::UnclosedQuote,
        "stray_quote.csv" => Some(2), Kind::StrayQuote,
        "truncated.csv.gz" => Some(200), Kind::TruncatedGzip,
        "header_of_gzip_only.csv.gz" => Some(1), Kind::TruncatedGzip,
        "damaged.csv.gz" => Some(402), Kind::CorruptGzip(_),

        // Lifetimes.
        "duplicate_id.csv" => Some(4), Kind::BadProblem(ProblemError::DuplicateBuffer { .. }),
        "negative_size.csv" => Some(3), Kind::OutOfRange { column: "size", .. },
        "overflowing_size.csv" => Some(2), Kind::OutOfRange { column: "size", .. },
        "fractional_size.csv" => Some(2), Kind::NotANumber { column: "size", .. },
        "sizes_sum_overflow.csv" => Some(3), Kind::BadProblem(ProblemError::TooLarge { .. }),
        "upper_before_lower.csv" => Some(3), Kind::BadProblem(ProblemError::BackwardLifetime { .. }),
        "overflowing_time.csv" => Some(2), Kind::OutOfRange { column: "upper", .. },
        "overflowing_inclusive_end.csv" => Some(2), Kind::OutOfRange { column: "end", .. },
        "empty_id.csv" => Some(3), Kind::MissingValue { column: "id" },
        "empty_size.csv" => Some(2), Kind::MissingValue { column: "size" },
        "upper_and_end.csv" => Some(1), Kind::DuplicateColumn { .. },
        "id_and_buffer.csv" => Some(1), Kind::DuplicateColumn { .. },
        "alignment_and_align.csv" => Some(1), Kind::DuplicateColumn { .. },
        "bad_gap.csv" => Some(3), Kind::BadGap { .. },
        "gap_outside_lifetime.csv" => Some(2), Kind::BadProblem(ProblemError::BadGap { .. }),
        "gap_window_outside_buffer.csv" => Some(2), Kind::BadProblem(ProblemError::BadGap { .. }),
        "zero_alignment.csv" => Some(3), Kind::ZeroAlignment,
        "misaligned_offset.csv" => Some(2), Kind::BadProblem(ProblemError::MisalignedPin { .. }),
        "negative_offset.csv" => Some(2), Kind::OutOfRange { column: "offset", .. },
        "unknown_class.csv" => Some(2), Kind::UnknownClass { .. },

        // Traces.
        "free_without_alloc.csv" => Some(3), Kind::NotAllocated { event: "free", .. },
        "done_without_alloc.csv" => Some(2), Kind::NotAllocated { event: "done", .. },
        "record_without_alloc.csv" => Some(2), Kind::NotAllocated { event: "record", .. },
        "done_before_free.csv" => Some(3), Kind::DoneBeforeFree { .. },
        "done_twice.csv" => Some(5), Kind::NotAllocated { event: "done", .. },
        "double_free.csv" => Some(4), Kind::FreedTwice { .. },
        "alloc_twice.csv" => Some(3), Kind::AllocatedTwice { .. },
        "negative_bytes.csv" => Some(2), Kind::OutOfRange { column: "bytes", .. },
        "overflowing_bytes.csv" => Some(2), Kind::OutOfRange { column: "bytes", .. },
        "free_of_other_bytes.csv" => Some(3), Kind::UnexpectedBytes { event: "free", bytes: 16 },
        "unknown_event.csv" => Some(3), Kind::UnknownEvent { .. },
        "steps_backwards.csv" => Some(3), Kind::StepOutOfOrder { step: 1, last: 2 },
        "step_zero.csv" => Some(2), Kind::StepZero,
        "step_without_number.csv" => Some(2), Kind::MissingValue { column: "id" },
        "stream_not_a_number.csv" => Some(2), Kind::NotANumber { column: "stream", .. },
        "trace_without_bytes.csv" => Some(1), Kind::MissingColumn { column: "bytes", .. },

        // Plans.
        "offset_not_a_number.plan.csv" => Some(3), Kind::NotANumber { column: "offset", .. },
        "duplicate_column.plan.csv" => Some(1), Kind::DuplicateColumn { .. },
        "offset_missing.plan.csv" => Some(3), Kind::MissingValue { column: "offset" },
        "no_offset_column.plan.csv" => Some(1), Kind::MissingColumn { column: "offset", .. },
        "offset_missing.plan.json" => Some(2), Kind::MissingValue { column: "offset" },
        "problem_as_a_plan.plan.json" => None, Kind::WrongKind { .. },

        // Problem JSON.
        "wrong_kind.json" => None, Kind::WrongKind { .. },
        "no_kind.json" => None, Kind::WrongKind { .. },
        "unknown_version.json" => None, Kind::UnknownVersion { .. },
        "version_is_a_list.json" => None, Kind::UnknownVersion { .. },
        "unknown_field.json" => Some(8), Kind::BadJson(_),
        "unknown_buffer_field.json" => Some(6), Kind::BadJson(_),
        "dangling_alias.json" => None, Kind::UnknownBuffer { .. },
        "dangling_may_share.json" => None, Kind::UnknownBuffer { .. },
        "dangling_contiguous.json" => None, Kind::UnknownBuffer { .. },
        "may_share_of_three.json" => Some(8), Kind::BadJson(_),
        "dangling_pool.json" => None, Kind::UnknownPool { .. },
        "dangling_spill.json" => None, Kind::UnknownPool { .. },
        "spill_circle.json" => None, Kind::BadProblem(ProblemError::BadPools(_)),
        "contradicting_aliases.json" => None, Kind::BadProblem(ProblemError::Contradiction { .. }),
        "duplicate_id.json" => None, Kind::BadProblem(ProblemError::DuplicateBuffer { .. }),
        "duplicate_field.json" => Some(8), Kind::BadJson(_),
        "negative_size.json" => Some(6), Kind::BadJson(_),
        "overflowing_size.json" => Some(6), Kind::BadJson(_),
        "zero_alignment.json" => Some(6), Kind::BadJson(_),
        "empty_id.json" => Some(6), Kind::BadJson(_),
        "truncated.json" => Some(5), Kind::BadJson(_),
        "trailing_text.json" => Some(9), Kind::BadJson(_),
        "not_utf8.json" => Some(6), Kind::BadJson(_),
        "deep_nesting.json" => Some(1), Kind::BadJson(_),
        "deep_nesting_array.json" => Some(1), Kind::BadJson(_),
        "buffer_as_a_list.json" => Some(5), Kind::BadJson(_),
        "list_of_problems.json" => Some(1), Kind::BadJson(_),
    }
    .into()
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// Reads a file as what its name says it is.
fn refusal(name: &str) -> Option<Error> {
    let bytes = fs::read(folder().join(name)).expect("the file is listed");
    if name.contains(".plan.") { PlanFile::read(bytes.as_slice()).err() } else { Input::read(bytes.as_slice()).err() }
}

#[test]
fn every_hostile_file_is_refused_as_the_table_says() {
    let mut wrong = Vec::new();
    for (name, row, pattern, is_expected) in expectations() {
        match refusal(name) {
            None => wrong.push(format!("{name} was read")),
            Some(error) if error.row == row && is_expected(&error.kind) => {}
            Some(error) => wrong.push(format!("{name}: expected {row:?} {pattern}, got {error:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_and_the_folder_name_the_same_files() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    let expected: BTreeSet<String> = expectations().iter().map(|&(name, ..)| name.to_owned()).collect();
    assert_eq!(files, expected);
}

#[test]
fn every_message_is_one_short_line_with_a_hint() {
    for (name, ..) in expectations() {
        let error = refusal(name).expect("it is refused");
        let message = error.to_string();
        assert!(!message.contains('\n') && message.chars().count() < 400, "{name}: {message}");
        assert!(!error.hint().is_empty() && !error.hint().ends_with('.'), "{name}: {}", error.hint());
    }
}

#[test]
fn hints_speak_of_what_the_column_holds() {
    for (name, hint) in [
        ("overflowing_time.csv", "a lifetime is given in events"),
        ("overflowing_inclusive_end.csv", "a lifetime is given in events"),
        ("overflowing_size.csv", "sizes and offsets are bytes"),
        ("step_zero.csv", "number the steps from 1 upwards"),
        ("step_without_number.csv", "that of a `step` row is its number"),
        ("offset_missing.plan.csv", "a plan has an offset for every buffer"),
        ("no_offset_column.plan.csv", "a plan has an offset for every buffer"),
    ] {
        let error = refusal(name).expect("it is refused");
        assert!(error.hint().contains(hint), "{name}: {}", error.hint());
    }
    assert_eq!(refusal("step_zero.csv").expect("it is refused").to_string(), "there is no step 0; steps count from 1");
}
